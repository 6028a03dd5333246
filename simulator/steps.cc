#include <algorithm>

#include "base/median.h"
#include "graph/step_windows.h"
#include "simulator/simulate.h"

namespace daydream {
Duration WholeLength(const Timeline& timeline) {
  if (timeline.start.empty()) return {};
  return *std::max_element(timeline.end.begin(), timeline.end.end()) -
         *std::min_element(timeline.start.begin(), timeline.start.end());
}

std::vector<Duration> StepPeriods(const Graph& graph, const Timeline& timeline) {
  const size_t steps = graph.steps().size();
  if (steps <= 1) return {WholeLength(timeline)};
  const std::vector<StepWindow> windows = StepWindows(graph, timeline.start, timeline.end);
  std::vector<Duration> periods;
  for (size_t i = 1; i < steps; ++i) periods.push_back(windows[i].length());
  return periods;
}

Duration StepTime(const Graph& graph, const Timeline& timeline) {
  const std::vector<Duration> periods = StepPeriods(graph, timeline);
  if (graph.steps().size() <= 1) return periods.front();
  return StepTimeOf(graph.steps(), periods);
}

Duration MeanOf(std::span<const Duration> durations) {
  double sum = 0;  // in whole nanoseconds exact up to 104 days, and cannot overflow beyond
  for (Duration d : durations) sum += static_cast<double>(d.ns);
  if (durations.empty()) return {};
  return Duration::FromDouble(sum / static_cast<double>(durations.size()));
}

Duration StepTimeOf(std::span<const GraphStep> steps, std::span<const Duration> periods) {
  std::vector<Duration> measured;
  for (size_t i = 0; i < periods.size(); ++i) {
    if (steps[i + 1].measured) measured.push_back(periods[i]);
  }
  return MeanOf(measured.empty() ? periods : measured);
}

}  // namespace daydream
