#include "simulator/lone_step.h"

#include <algorithm>

#include "graph/repeat.h"
#include "simulator/simulate.h"

namespace daydream {

std::optional<size_t> LoneStepOf(const Graph& graph) {
  if (graph.tables().trace == nullptr) return std::nullopt;
  const std::optional<size_t> lone = StepMarks::LoneOf(graph);
  if (!lone.has_value() || graph.steps()[*lone].recorded_host > Duration{}) return std::nullopt;
  if (StepMarks::UnknownBefore(graph, *lone)) return lone;
  const std::span<const GraphStep> behind = graph.steps().subspan(*lone + 1);
  const bool ends = !behind.empty() && behind[0].begin.call.valid() && behind[0].begin.work.valid();
  return ends ? std::nullopt : lone;
}

std::vector<GraphStep> StepsBehind(const Graph& graph, size_t lone) {
  std::vector<GraphStep> steps(graph.steps().begin(), graph.steps().end());
  steps[lone].measured = false;
  return steps;
}

namespace {

// The last collective of each stream that nothing of its step waits for, on the stream or
// elsewhere.
std::vector<TaskId> Unawaited(const Graph& graph, size_t step) {
  std::vector<bool> awaited(graph.size(), false);
  for (const Edge& e : graph.edges()) {
    if (graph.task(e.to).step == step) awaited[e.from.index()] = true;
  }
  std::vector<TaskId> found;
  for (const GraphLane& lane : graph.lanes()) {
    if (lane.lane.kind != LaneKind::kStream) continue;
    for (TaskId t = lane.last; t.valid(); t = graph.task(t).lane_prev) {
      const Task& task = graph.task(t);
      if (task.step != step || task.removed) continue;
      if (awaited[t.index()]) break;
      if (task.kind != TaskKind::kCollective) continue;
      found.push_back(t);
      break;
    }
  }
  return found;
}

// GPU work of each stream, the first of its step.
std::vector<TaskId> FirstOfStreams(const Graph& graph, size_t step) {
  std::vector<TaskId> found;
  for (const GraphLane& lane : graph.lanes()) {
    if (lane.lane.kind != LaneKind::kStream) continue;
    TaskId t = lane.first;
    while (t.valid() && (graph.task(t).step != step || !IsGpu(graph.task(t).kind))) {
      t = graph.task(t).lane_next;
    }
    if (t.valid()) found.push_back(t);
  }
  return found;
}

}  // namespace

std::vector<Awaited> AwaitedByNext(const Graph& graph, size_t step) {
  const std::vector<TaskId> unawaited = Unawaited(graph, step);
  if (unawaited.empty()) return {};
  std::vector<Awaited> found;
  for (TaskId to : FirstOfStreams(graph, step)) {
    for (TaskId from : unawaited) {
      if (graph.task(from).lane != graph.task(to).lane) found.emplace_back(from, to);
    }
  }
  return found;
}

LoneStep::LoneStep(const Graph& graph, size_t step) {
  const StepRepeater repeater(graph);
  const std::span<const TaskId> tasks = repeater.TasksOf(static_cast<uint16_t>(step));
  tasks_.assign(tasks.begin(), tasks.end());
  rounds_ = repeater.Repeat({.first = step}, static_cast<int>(kRounds));
  const std::vector<uint32_t> lanes = repeater.LanesOf(static_cast<uint16_t>(step));
  const auto in_round = [&](size_t k, TaskId t) {
    return TaskId(k * tasks_.size() + repeater.PlaceOf(t, lanes));
  };
  for (const auto& [from, to] : AwaitedByNext(graph, step)) {
    for (size_t k = 1; k < kRounds; ++k) {
      rounds_.AddEdge({.from = in_round(k - 1, from), .to = in_round(k, to)});
    }
  }
}

std::optional<Duration> CycleOfLone(const Graph& graph, size_t step) {
  const auto number = static_cast<uint16_t>(step);
  const std::vector<Awaited> also = AwaitedByNext(graph, step);
  std::optional<StepRepeater> own;
  const auto repeater = [&]() -> const StepRepeater& { return own ? *own : own.emplace(graph); };
  const auto played = also.empty() ? *RoundsOf(graph, number, repeater)
                                   : PlayRounds(repeater(), number, kRounds, also);
  if (played.has_value()) return CycleOf(StepWindows(played->extents), played->host_ends);
  own.reset();
  const LoneStep lone(graph, step);
  const auto rounds = Simulate(lone.rounds());
  if (!rounds.ok()) return std::nullopt;
  return CycleOf(lone.rounds(), rounds->start, rounds->end);
}

Duration CycleOf(std::span<const StepWindow> windows,
                 std::span<const std::optional<Instant>> host_ends) {
  const size_t last = windows.size() - 1;
  const Duration by_gpu = windows[last].length();
  if (!host_ends[last].has_value() || !host_ends[last - 1].has_value()) return by_gpu;
  return std::max(by_gpu, *host_ends[last] - *host_ends[last - 1]);
}

Duration CycleOf(const Graph& rounds, std::span<const Instant> start,
                 std::span<const Instant> end) {
  std::vector<std::optional<Instant>> host_ends(rounds.steps().size());
  for (size_t i = 0; i < rounds.size(); ++i) {
    const Task& task = rounds.tasks()[i];
    if (!IsHost(task.kind)) continue;
    std::optional<Instant>& latest = host_ends[task.step];
    latest = std::max(latest.value_or(end[i]), end[i]);
  }
  return CycleOf(StepWindows(rounds, start, end), host_ends);
}

}  // namespace daydream
