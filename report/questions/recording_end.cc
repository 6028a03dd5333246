#include "report/questions/recording_end.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "graph/host_lead.h"
#include "graph/step_windows.h"
#include "report/stalls.h"
#include "report/text/format.h"

namespace daydream {
namespace {

constexpr Duration kShortEnd = Duration::Ms(1);  // as of stalls: noise of the host

// As recorded: what of a step's host and GPU comes first and last.
struct Extent {
  Instant host_begin{INT64_MAX}, launched = Instant::Min(), gpu_end = Instant::Min();
};

Extent ExtentOf(const Graph& graph, size_t step) {
  Extent e;
  for (const Task& t : graph.tasks()) {
    if (t.step != step || t.removed) continue;
    if (IsHost(t.kind)) e.host_begin = std::min(e.host_begin, t.recorded_start);
    if (IsGpu(t.kind)) e.gpu_end = std::max(e.gpu_end, t.recorded_start + t.duration);
  }
  for (const Edge& edge : graph.edges()) {
    const Task& call = graph.task(edge.from);
    if (edge.rule != Rule::kLaunch || call.step != step) continue;
    e.launched = std::max(e.launched, call.recorded_start + call.duration);
  }
  return e;
}

}  // namespace

std::optional<Finding> LeaveOutEnd(Graph& graph) {
  const auto lone = StepMarks::LoneOf(graph);
  if (!lone.has_value() || !StepMarks::OnlyOne(graph)) return std::nullopt;
  const GraphStep step = graph.steps()[*lone];
  if (step.recorded_host <= Duration{}) return std::nullopt;
  const Extent of = ExtentOf(graph, *lone);
  Instant begin = of.host_begin + step.recorded_host;
  const Instant end = begin;
  TaskId longest;
  std::vector<TaskId> idle;
  for (const GraphLane& lane : graph.lanes()) {
    if (lane.lane.kind != LaneKind::kThread) continue;
    for (TaskId t = lane.last; t.valid(); t = graph.task(t).lane_prev) {
      const Task& task = graph.task(t);
      if (task.removed || task.step != *lone) continue;
      const bool outside = IsOutsideOfOperators(graph, t);
      if (!outside || task.recorded_start < of.launched) break;
      idle.push_back(t);
      begin = std::min(begin, task.recorded_start);
      if (!longest.valid() || graph.task(longest).duration < task.duration) longest = t;
    }
  }
  const Duration time = end - begin;
  if (time <= kShortEnd || end <= of.gpu_end + kShortEnd || !longest.valid()) return std::nullopt;
  for (TaskId t : idle) {
    graph.mutable_task(t).duration = {};
    graph.mutable_task(t).gap = {};
  }
  const Duration host = step.recorded_host - time;
  const Duration least = step.recorded_period + step.recorded_period / kPartsThatDiffer;
  graph.mutable_step(*lone).recorded_host = host > least ? host : Duration{};
  return Finding{.kind = FindingKind::kPause,
                 .about = About::kPredictions,
                 .text = fmt::format("the host goes on for {} behind the step's last launch, which "
                                     "the step before did not do: it is taken as the end of the "
                                     "recording",
                                     FormatTime(time)),
                 .where = std::string(graph.TaskName(longest)),
                 .time = time,
                 .share = std::min(time.seconds() / step.recorded_period.seconds(), 1.0),
                 .fix = "record more steps"};
}

}  // namespace daydream
