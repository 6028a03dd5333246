#include "report/text/progress.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/text/format.h"

namespace daydream {
namespace {

constexpr double kEnough = 0.5;  // seconds of which a rate says something

std::string Time(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  if (seconds < 2 * kMinute) return fmt::format("{:.0f} s", std::ceil(seconds));
  if (seconds < 2 * kHour) return fmt::format("{:.0f} min", std::ceil(seconds / kMinute));
  return fmt::format("{:.0f} h", std::ceil(seconds / kHour));
}

std::string SoFar(double seconds) {
  return seconds < 1 ? "" : fmt::format(", {} so far", Time(std::floor(seconds)));
}

std::string HowMuch(const Doing& doing) {
  if (doing.total == 0) {
    return doing.done == 0 ? "" : fmt::format(", {} done", FormatCount(doing.done));
  }
  if (doing.counted == Counted::kPieces) {
    return fmt::format(" {} of {}", FormatCount(doing.done), FormatCount(doing.total));
  }
  return fmt::format(" {:.0f} %",
                     100 * static_cast<double>(doing.done) / static_cast<double>(doing.total));
}

}  // namespace

std::string ProgressText(const Doing& doing, const DoingSince& since) {
  std::string text = std::string(doing.what) + HowMuch(doing);
  if (since.seconds < kEnough || doing.done <= since.before) return text + SoFar(since.seconds);
  const double rate = static_cast<double>(doing.done - since.before) / since.seconds;
  if (doing.counted == Counted::kBytes) {
    text += fmt::format(", {} a second", FormatBytes(static_cast<uint64_t>(rate)));
  } else if (rate >= 1) {
    text += fmt::format(", {} a second", FormatCount(static_cast<uint64_t>(rate)));
  }
  if (doing.done >= doing.total) return text + SoFar(since.seconds);
  const double left = static_cast<double>(doing.total - doing.done) / rate;
  // One piece that takes longer than all that are left would at this rate.
  if (since.still > std::max(left, 1.0)) return text + SoFar(since.seconds);
  return fmt::format("{}, {} left{}", text, Time(left), doing.last ? "" : " of this");
}

}  // namespace daydream
