#include <algorithm>
#include <optional>

#include "base/median.h"
#include "graph/facts.h"
#include "graph/host_lead.h"
#include "graph/step_windows.h"
#include "simulator/lone_step.h"
#include "simulator/simulate.h"

namespace daydream {
Duration WholeLength(const Timeline& timeline) {
  if (timeline.start.empty()) return {};
  return *std::max_element(timeline.end.begin(), timeline.end.end()) -
         *std::min_element(timeline.start.begin(), timeline.start.end());
}

namespace {

// By the windows alone.
std::vector<Duration> PeriodsOf(std::span<const StepExtent> extents) {
  const std::vector<StepWindow> windows = StepWindows(extents);
  std::vector<Duration> periods;
  for (size_t i = 1; i < windows.size(); ++i) periods.push_back(windows[i].length());
  return periods;
}

Duration HostPeriod(const Graph& graph, std::span<const GraphStep> steps, const HostLead& lead) {
  Graph alone = graph;
  for (size_t i = 0; i < alone.size(); ++i) {
    if (!OnStream(alone, TaskId(i))) continue;
    alone.SetDuration(TaskId(i), {});
    alone.SetGap(TaskId(i), {});
  }
  const absl::StatusOr<Timeline> timeline = Simulate(alone);
  if (!timeline.ok()) return {};  // the replay that is asked about fails likewise, and says so
  const std::vector<StepExtent> extents = StepExtents(alone, timeline->start, timeline->end);
  return lead.HostPeriod(extents, StepTimeOf(steps, PeriodsOf(extents)));
}

bool AnyCounts(std::span<const GraphStep> steps) {
  return std::ranges::any_of(steps, &GraphStep::measured);
}

// With what is used up of a lead in those of `steps`, the graph's own or fewer, that count.
std::vector<Duration> PeriodsOf(const Graph& graph, std::span<const GraphStep> steps,
                                std::span<const StepExtent> extents,
                                std::span<const Instant> start) {
  std::vector<Duration> periods = PeriodsOf(extents);
  const auto lead = AnyCounts(steps) ? HostLead::Of(graph) : std::nullopt;
  if (!lead.has_value()) return periods;
  HostLead::Starts starts;
  for (size_t i = 0; i < starts.size() && !lead->one_step(); ++i) {
    starts[i] = start[lead->tasks()[i].index()];
  }
  const Duration used_up = lead->UsedUp(starts, extents, StepTimeOf(steps, periods));
  AddUsedUp(
      steps, used_up, [&] { return HostPeriod(graph, steps, *lead); }, periods);
  return periods;
}

// None where the rounds cannot be played.
struct LoneCycle {
  std::optional<Duration> length;
};

}  // namespace

std::vector<Duration> StepPeriods(const Graph& graph, std::span<const StepExtent> extents,
                                  std::span<const Instant> start) {
  const std::optional<size_t> lone = LoneStepOf(graph);
  if (!lone.has_value()) return PeriodsOf(graph, graph.steps(), extents, start);
  std::vector<Duration> periods = PeriodsOf(graph, StepsBehind(graph, *lone), extents, start);
  // That of the recorded graph is asked for more than once.
  const auto cycle = FactOf<LoneCycle>(graph, [&] { return LoneCycle{CycleOfLone(graph, *lone)}; });
  if (cycle->length.has_value()) periods[*lone - 1] = *cycle->length;
  return periods;
}

std::vector<Duration> StepPeriods(const Graph& graph, const Timeline& timeline) {
  if (graph.steps().size() <= 1) return {WholeLength(timeline)};
  return StepPeriods(graph, StepExtents(graph, timeline.start, timeline.end), timeline.start);
}

std::vector<Duration> StepPeriodsBeside(const Graph& graph, const Timeline& timeline) {
  if (graph.steps().size() <= 1) return {WholeLength(timeline)};
  return PeriodsOf(graph, graph.steps(), StepExtents(graph, timeline.start, timeline.end),
                   timeline.start);
}

void AddUsedUp(std::span<const GraphStep> steps, Duration used_up,
               absl::FunctionRef<Duration()> host_period, std::span<Duration> periods) {
  if (used_up <= Duration{}) return;
  const Duration each = std::min(used_up, host_period() - StepTimeOf(steps, periods));
  for (size_t i = 0; i < periods.size() && each > Duration{}; ++i) {
    if (steps[i + 1].measured) periods[i] += each;
  }
}

Duration StepTime(const Graph& graph, const Timeline& timeline) {
  return StepTime(graph, StepPeriods(graph, timeline));
}

Duration StepTime(const Graph& graph, std::span<const Duration> periods) {
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
