#include "transforms/scenario/effort.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/text.h"

namespace daydream {
namespace {

// What is left of a gain that may not come: a judgement, not measured. Mild: it costs memory or
// time to start, and nothing else.
constexpr double kMildRisk = 0.85, kRisk = 0.6;
// Lines of code that work stands for which nobody can count, like new kernels: a judgement, too.
constexpr double kUncounted = 1000;
// "~20 lines x 7": at seven places.
constexpr std::string_view kTimes = " x ";

constexpr double kUnknown = std::numeric_limits<double>::infinity();

}  // namespace

std::vector<std::string_view> RisksOf(std::string_view text) {
  std::vector<std::string_view> risks;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    risks.push_back(StripSpaces(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return risks;
}

double LinesOf(std::string_view effort) {
  if (effort.starts_with('~')) effort.remove_prefix(1);
  double number = 0;
  const char* end = effort.data() + effort.size();
  auto [rest, error] = std::from_chars(effort.data(), end, number);
  if (error != std::errc() || !(number >= 0)) return kUnknown;
  std::string_view unit = StripSpaces({rest, static_cast<size_t>(end - rest)});
  if (const size_t times = unit.find(kTimes); times != std::string_view::npos) {
    const std::string_view places = unit.substr(times + kTimes.size());
    unsigned count = 0;
    const char* last = places.data() + places.size();
    if (std::from_chars(places.data(), last, count).ptr != last) return kUnknown;
    number *= count;
    unit = unit.substr(0, times);
  }
  if (unit == "line" || unit == "lines") return number;
  const bool small = unit == "word" || unit == "number" || unit == "variable" || unit == "command";
  return small ? 1 : kUnknown;
}

Advice AdviceFor(const Advice& advice, const Changes& changes) {
  Advice own = advice;
  if (!changes.risk.empty()) own.risk = changes.risk;
  if (!changes.how.empty()) own.how = changes.how;
  return own;
}

std::string EffortOf(const Advice& advice, const Changes& changes) {
  if (!changes.effort.empty()) return changes.effort;
  if (changes.places < 2) return std::string(advice.effort);
  if (advice.effort == "1 line") return fmt::format("~{} lines", changes.places);
  return fmt::format("{}{}{}", advice.effort, kTimes, changes.places);
}

double EaseOf(const Advice& advice) {
  double ease = 1 / std::sqrt(std::clamp(LinesOf(advice.effort), 1.0, kUncounted));
  for (std::string_view risk : RisksOf(advice.risk)) {
    if (risk == "none") continue;
    const bool mild = risk == "memory" || risk == "host memory" || risk == "more memory" ||
                      risk == "compile time" || risk == "values are seen later";
    ease *= mild ? kMildRisk : kRisk;
  }
  return ease;
}

}  // namespace daydream
