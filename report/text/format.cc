#include "report/text/format.h"

#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

namespace daydream {
namespace {

double UnitNs(TimeUnit unit) {
  switch (unit) {
    case TimeUnit::kNs:
      return 1;
    case TimeUnit::kUs:
      return 1e3;
    case TimeUnit::kS:
      return 1e9;
    case TimeUnit::kAuto:
    case TimeUnit::kMs:
      break;
  }
  return 1e6;
}

// Three significant digits below 10, else one decimal; whole numbers for ns and large us. Below ten
// seconds as much is shown in seconds as in milliseconds.
int DecimalsFor(double value, TimeUnit unit) {
  double size = std::fabs(value);
  if (unit == TimeUnit::kNs) return 0;
  if (unit == TimeUnit::kS && size < 10) return 3 + DecimalsFor(value * 1e3, TimeUnit::kMs);
  if (unit == TimeUnit::kUs) return size < 10 ? 1 : 0;
  return size < 10 ? 2 : 1;
}

std::string Signed(double value, int decimals) {
  std::string text = fmt::format("{:+.{}f}", value, decimals);
  // A rounded nothing has no sign.
  if (text.find_first_not_of("+-0.") == std::string::npos) text[0] = ' ';
  return text[0] == ' ' ? text.substr(1) : text;
}

}  // namespace

TimeUnit UnitFor(Duration d, TimeUnit wish) {
  if (wish != TimeUnit::kAuto) return wish;
  double ns = std::fabs(static_cast<double>(d.ns));
  if (ns < 1e3) return TimeUnit::kNs;
  if (ns < 1e6) return TimeUnit::kUs;
  if (ns < 1e10) return TimeUnit::kMs;
  return TimeUnit::kS;
}

std::string_view UnitName(TimeUnit unit) {
  switch (unit) {
    case TimeUnit::kNs:
      return "ns";
    case TimeUnit::kUs:
      return "us";
    case TimeUnit::kS:
      return "s";
    case TimeUnit::kAuto:
    case TimeUnit::kMs:
      break;
  }
  return "ms";
}

TimeUnit ParseTimeUnit(std::string_view name) {
  for (const TimeUnit unit : {TimeUnit::kNs, TimeUnit::kUs, TimeUnit::kMs, TimeUnit::kS}) {
    if (name == UnitName(unit)) return unit;
  }
  return TimeUnit::kAuto;
}

std::string TimeIn(Duration d, TimeUnit unit, int decimals) {
  const double value = static_cast<double>(d.ns) / UnitNs(unit);
  if (unit == TimeUnit::kNs) decimals = 0;
  if (unit == TimeUnit::kS && std::fabs(value) < 10) decimals += 3;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string FormatTime(Duration d, TimeUnit unit) {
  if (unit == TimeUnit::kAuto) unit = UnitFor(d);
  double value = static_cast<double>(d.ns) / UnitNs(unit);
  return fmt::format("{:.{}f} {}", value, DecimalsFor(value, unit), UnitName(unit));
}

std::string FormatChange(Duration d, TimeUnit unit) {
  if (unit == TimeUnit::kAuto) unit = UnitFor(d);
  double value = static_cast<double>(d.ns) / UnitNs(unit);
  return fmt::format("{} {}", Signed(value, DecimalsFor(value, unit)), UnitName(unit));
}

std::string FormatCount(uint64_t n) {
  std::string digits = fmt::format("{}", n), text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string FormatPercent(double share, int decimals) {
  return fmt::format("{:.{}f} %", share * 100, decimals);
}

std::string FormatSignedPercent(double share, int decimals) {
  return Signed(share * 100, decimals) + " %";
}

std::string FormatSpeedup(double factor) {
  if (factor >= 100 && factor < 1e15) {
    return FormatCount(static_cast<uint64_t>(std::llround(factor))) + "x";
  }
  return fmt::format("{:.2f}x", factor);
}

std::string FormatBytes(uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  for (std::string_view unit : {"kB", "MB", "GB"}) {
    value /= 1000;
    if (value < 999.95) return fmt::format("{:.1f} {}", value, unit);
  }
  return fmt::format("{:.1f} TB", value / 1000);
}

std::string Plural(uint64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", FormatCount(n), noun, n == 1 ? "" : "s");
}

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  for (unsigned char c : text) width += (c & 0xC0) != 0x80;
  return width;
}

namespace {

// `head` columns from the beginning; REQUIRES: 3 + head <= width, which is less than the text's.
std::string CutAfter(std::string_view text, size_t head, size_t width) {
  const size_t tail = width - 3 - head;
  size_t begin = 0, end = text.size();
  auto is_lead = [&](size_t i) { return (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80; };
  for (size_t seen = 0; begin < text.size(); ++begin) {
    if (is_lead(begin) && seen++ == head) break;
  }
  for (size_t seen = 0; end > begin && seen < tail;) seen += is_lead(--end);
  return fmt::format("{}...{}", text.substr(0, begin), text.substr(end));
}

std::string CutWith(std::string_view text, size_t head, size_t width) {
  return DisplayWidth(text) <= width ? std::string(text) : CutAfter(text, head, width);
}

}  // namespace

std::string CutMiddle(std::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width <= 3) return std::string("...").substr(0, width);
  return CutAfter(text, (width - 2) / 2, width);
}

std::vector<std::string> CutApart(const std::vector<std::string>& texts, size_t width) {
  std::vector<std::string> out;
  std::map<std::string, std::set<std::string>> alike;  // by what they are cut to
  for (const std::string& text : texts)
    alike[out.emplace_back(CutMiddle(text, width))].insert(text);
  if (width <= 6) return out;
  for (const auto& same : alike) {
    const std::set<std::string>& group = same.second;
    if (group.size() < 2) continue;
    // From the middle outwards.
    const size_t keep = width - 3, middle = (width - 2) / 2;
    std::map<std::string, std::string> better;
    const auto differ = [&](size_t head) {
      std::set<std::string> seen;
      for (const std::string& text : group) {
        better[text] = CutWith(text, head, width);
        seen.insert(better[text]);
      }
      return seen.size() == group.size();
    };
    bool found = false;
    for (size_t off = 1; off <= keep && !found; ++off) {
      found =
          (off <= middle && differ(middle - off)) || (middle + off <= keep && differ(middle + off));
    }
    size_t number = 0;
    for (const std::string& text : group) {
      const std::string mark = fmt::format("#{}", ++number);
      if (!found && mark.size() + 6 < width)
        better[text] = CutMiddle(text, width - mark.size()) + mark;
    }
    for (size_t i = 0; i < texts.size(); ++i) {
      if (out[i] == same.first && better.contains(texts[i])) out[i] = better[texts[i]];
    }
  }
  return out;
}

}  // namespace daydream
