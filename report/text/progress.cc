#include "report/text/progress.h"

#include <cmath>

#include <fmt/format.h>

#include "report/text/format.h"

namespace daydream {
namespace {

constexpr double kEnough = 0.5;  // seconds of which a rate says something

std::string Left(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  if (seconds < 2 * kMinute) return fmt::format("{:.0f} s left", std::ceil(seconds));
  if (seconds < 2 * kHour) return fmt::format("{:.0f} min left", std::ceil(seconds / kMinute));
  return fmt::format("{:.0f} h left", std::ceil(seconds / kHour));
}

}  // namespace

std::string ProgressText(std::string_view what, Counted counted, uint64_t done, uint64_t total,
                         uint64_t before, double seconds) {
  if (total == 0) return std::string(what);
  std::string text = fmt::format("{} {:.0f} %", what,
                                 100 * static_cast<double>(done) / static_cast<double>(total));
  if (seconds < kEnough || done <= before) return text;
  const double rate = static_cast<double>(done - before) / seconds;
  if (counted == Counted::kBytes) {
    text += fmt::format(", {} a second", FormatBytes(static_cast<uint64_t>(rate)));
  } else if (rate >= 1) {
    text += fmt::format(", {} a second", FormatCount(static_cast<uint64_t>(rate)));
  }
  if (done >= total) return text;
  return text + ", " + Left(static_cast<double>(total - done) / rate);
}

}  // namespace daydream
