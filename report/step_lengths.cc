#include "report/step_lengths.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "simulator/simulate.h"

namespace daydream {
namespace {

constexpr double kUneven = 0.10;

Duration Quantile(const std::vector<Duration>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const Duration apart = sorted[above] - sorted[below];
  return sorted[below] + apart.Scaled(at - static_cast<double>(below));
}

}  // namespace

bool StepLengths::uneven() const { return longest - shortest > mean.Scaled(kUneven); }

StepLengths LengthsOf(std::span<const Duration> steps) {
  if (steps.empty()) return {};
  std::vector<Duration> sorted(steps.begin(), steps.end());
  std::sort(sorted.begin(), sorted.end());
  return {.shortest = sorted.front(),
          .lower = Quantile(sorted, 0.25),
          .median = Quantile(sorted, 0.5),
          .upper = Quantile(sorted, 0.75),
          .longest = sorted.back(),
          .mean = MeanOf(steps)};
}

std::string Sparkline(std::span<const Duration> steps, size_t width) {
  constexpr std::string_view kLevels = "_.:-=+*#";
  if (steps.empty() || width == 0) return "";
  const auto [low, high] = std::minmax_element(steps.begin(), steps.end());
  const double range = static_cast<double>((*high - *low).ns);
  const size_t each = (steps.size() + width - 1) / width;
  std::string line;
  for (size_t i = 0; i < steps.size(); i += each) {
    const auto part = steps.subspan(i, std::min(each, steps.size() - i));
    const Duration most = *std::max_element(part.begin(), part.end());
    const double level = range > 0 ? static_cast<double>((most - *low).ns) / range : 0;
    line += kLevels[static_cast<size_t>(std::lround(level * (kLevels.size() - 1)))];
  }
  return line;
}

}  // namespace daydream
