#include <algorithm>
#include <optional>

#include "simulator/simulate.h"

namespace daydream {
namespace {

Duration WholeLength(const Timeline& timeline) {
  if (timeline.start.empty()) return {};
  return *std::max_element(timeline.end.begin(), timeline.end.end()) -
         *std::min_element(timeline.start.begin(), timeline.start.end());
}

Duration Median(std::vector<Duration> values) {
  if (values.empty()) return {};
  const size_t middle = values.size() / 2;
  std::sort(values.begin(), values.end());
  if (values.size() % 2 == 1) return values[middle];
  return values[middle - 1] + (values[middle] - values[middle - 1]) / 2;
}

}  // namespace

std::vector<Duration> StepPeriods(const Graph& graph, const Timeline& timeline) {
  const size_t steps = graph.steps().size();
  if (steps <= 1) return {WholeLength(timeline)};
  // Removed tasks count: they take no time, but their end still marks how far the step got.
  std::vector<std::optional<Instant>> gpu_end(steps), any_end(steps);
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (t.step >= steps) continue;
    const Instant end = timeline.end[i];
    if (any_end[t.step] < end) any_end[t.step] = end;
    if (IsGpu(t.kind) && gpu_end[t.step] < end) gpu_end[t.step] = end;
  }
  std::vector<Duration> periods;
  std::optional<Instant> before;
  for (size_t i = 0; i < steps; ++i) {
    std::optional<Instant> end = gpu_end[i] ? gpu_end[i] : any_end[i] ? any_end[i] : before;
    if (i > 0) periods.push_back(before && end ? *end - *before : Duration{});
    before = end;
  }
  return periods;
}

Duration StepTime(const Graph& graph, const Timeline& timeline) {
  const std::vector<Duration> periods = StepPeriods(graph, timeline);
  if (graph.steps().size() <= 1) return periods.front();
  std::vector<Duration> measured;
  for (size_t i = 0; i < periods.size(); ++i) {
    if (graph.steps()[i + 1].measured) measured.push_back(periods[i]);
  }
  return Median(measured.empty() ? periods : measured);
}

}  // namespace daydream
