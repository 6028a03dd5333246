#include "graph/text_words.h"

#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

namespace daydream {
namespace {

struct TimeUnit {
  std::string_view suffix;
  int64_t ns;
  size_t decimals;
};
constexpr TimeUnit kUnits[] = {
    {"ns", 1, 0}, {"us", 1000, 3}, {"ms", 1000000, 6}, {"s", 1000000000, 9}};
constexpr int64_t kLongest = int64_t{1} << 60;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::optional<Duration> ParseTime(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") return Duration{};
  size_t digits = 0;
  while (digits < text.size() && (IsDigit(text[digits]) || text[digits] == '.')) ++digits;
  const TimeUnit* unit = nullptr;
  for (const TimeUnit& u : kUnits) {
    if (text.substr(digits) == u.suffix) unit = &u;
  }
  if (unit == nullptr || digits == 0 || !IsDigit(text[0])) return std::nullopt;
  int64_t value = 0;
  size_t decimals = 0;
  bool point = false;
  for (char c : text.substr(0, digits)) {
    if (c == '.') {
      if (point) return std::nullopt;
      point = true;
      continue;
    }
    if (point && ++decimals > unit->decimals) return std::nullopt;
    if (value > kLongest / 10 - 1) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  if (point && decimals == 0) return std::nullopt;
  for (; decimals < unit->decimals; ++decimals) {
    if (value > kLongest / 10 - 1) return std::nullopt;
    value *= 10;
  }
  return Duration::Ns(negative ? -value : value);
}

std::string FormatTime(Duration d) {
  if (d.ns == 0) return "0";
  const TimeUnit* best = &kUnits[0];
  const uint64_t ns = d.ns < 0 ? ~static_cast<uint64_t>(d.ns) + 1 : static_cast<uint64_t>(d.ns);
  for (const TimeUnit& u : kUnits) {
    const auto size = static_cast<uint64_t>(u.ns);
    // Microseconds at least; a larger unit only where it needs no decimals.
    if (size == 1000 ? ns >= size : size > 1000 && ns % size == 0) best = &u;
  }
  const auto size = static_cast<uint64_t>(best->ns);
  std::string text = fmt::format("{}{}", d.ns < 0 ? "-" : "", ns / size);
  if (ns % size != 0) {
    std::string fraction = fmt::format("{:0{}}", ns % size, best->decimals);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    text += "." + fraction;
  }
  return text.append(best->suffix);
}

StreamName ParseStreamName(std::string_view name) {
  StreamName parsed;
  if (!name.starts_with("gpu")) return {};
  const char* end = name.data() + name.size();
  auto device = std::from_chars(name.data() + 3, end, parsed.device);
  if (device.ec != std::errc() || device.ptr == end || *device.ptr != '.') return {};
  auto number = std::from_chars(device.ptr + 1, end, parsed.number);
  if (number.ec != std::errc() || number.ptr != end) return {};
  return parsed;
}

}  // namespace daydream
