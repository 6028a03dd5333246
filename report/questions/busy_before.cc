#include "report/questions/busy_before.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "graph/call_kind.h"
#include "graph/step_windows.h"
#include "report/lane_rows.h"
#include "report/text/format.h"

namespace daydream {
namespace {

constexpr double kMuchEarlier = 0.05;  // of the step

Finding Cut(const Graph& graph, TaskId first, Duration time, Duration step, std::string text) {
  const Task& task = graph.task(first);
  return {.kind = FindingKind::kCutStep,
          .about = About::kStep,
          .text = std::move(text) + ": the GPU still did earlier work",
          .where = fmt::format("{} on {}", graph.TaskName(first), LaneTitle(graph, task.lane)),
          .time = time,
          .share = time.seconds() / step.seconds(),
          .fix = "record several steps, with marks: daydream explain steps"};
}

// Whether the end of the window cuts off what its calls launched, as its begin cuts off earlier
// calls: then a window is as long as its GPU work, with what was launched before.
bool EndsAmidWork(const Graph& graph) {
  std::vector<bool> launches(graph.size());
  for (const Edge& e : graph.edges()) {
    if (e.rule == Rule::kLaunch) launches[e.from.index()] = true;
  }
  size_t calls = 0, without = 0;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (t.kind != TaskKind::kCall || t.removed) continue;
    if (ClassifyCall(graph.Name(t.name)) != CallKind::kLaunch) continue;
    ++calls;
    without += launches[i] ? 0 : 1;
  }
  return without * 10 > calls;
}

std::optional<Finding> FindingOfEarlierWork(const Graph& graph, Duration step) {
  const std::vector<TaskId> earlier = FindEarlierWork(graph);
  TaskId first;
  Instant end;
  size_t operations = 0;
  for (TaskId t : earlier) {
    const Task& task = graph.task(t);
    if (!IsGpu(task.kind) || task.removed) continue;
    ++operations;
    if (!first.valid() || task.recorded_start < graph.task(first).recorded_start) first = t;
    const Instant its = task.recorded_start + task.duration;
    end = operations == 1 ? its : std::max(end, its);
  }
  if (!first.valid()) return std::nullopt;
  Instant begin = graph.task(first).recorded_start;
  for (const Task& t : graph.tasks()) begin = std::min(begin, t.recorded_start);
  const Duration time = end - begin;
  if (time <= step.Scaled(kMuchEarlier)) return std::nullopt;
  if (EndsAmidWork(graph)) return std::nullopt;
  return Cut(graph, first, time, step,
             fmt::format("the first {} GPU operations, up to {} into it, were launched before "
                         "the recording",
                         FormatCount(operations), FormatTime(time)));
}

}  // namespace

std::optional<BusyBefore> FindBusyBefore(const Graph& graph) {
  BusyBefore busy;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (!IsGpu(t.kind) || t.event == Id<void>::kNoneValue) continue;
    if (!busy.first.valid() || t.recorded_start < graph.task(busy.first).recorded_start) {
      busy.first = TaskId(i);
    }
  }
  if (!busy.first.valid()) return std::nullopt;
  for (size_t i = 0; i < graph.edges().size(); ++i) {
    const Edge& e = graph.edges()[i];
    if (e.rule != Rule::kLaunch || e.to != busy.first) continue;
    const Task& call = graph.task(e.from);
    busy.launch = i;
    busy.wait = graph.task(busy.first).recorded_start - (call.recorded_start + call.duration);
    return busy;
  }
  return std::nullopt;
}

std::vector<TaskId> FindEarlierWork(const Graph& graph) {
  std::vector<bool> launched(graph.size());
  std::optional<Instant> first;
  for (const Edge& e : graph.edges()) {
    if (e.rule != Rule::kLaunch || !IsGpu(graph.task(e.to).kind)) continue;
    launched[e.to.index()] = true;
    first =
        std::min(first.value_or(graph.task(e.to).recorded_start), graph.task(e.to).recorded_start);
  }
  std::vector<TaskId> earlier;
  if (!first.has_value()) return earlier;
  for (const GraphLane& lane : graph.lanes()) {
    if (lane.lane.kind != LaneKind::kStream) continue;
    std::vector<TaskId> head;
    TaskId t = lane.first;
    while (t.valid() && !launched[t.index()]) {
      head.push_back(t);
      t = graph.task(t).lane_next;
    }
    const bool all = !t.valid();
    for (TaskId h : head) {
      if (!all || graph.task(h).recorded_start < *first) earlier.push_back(h);
    }
  }
  return earlier;
}

Graph AsLoneStep(Graph graph) {
  const std::vector<TaskId> earlier = FindEarlierWork(graph);
  GraphStep before = graph.steps()[0];
  graph.AddStep(before);
  before.measured = false;
  before.label = kBeforeTheFirstStep;
  graph.mutable_step(0) = std::move(before);
  for (size_t i = 0; i < graph.size(); ++i) graph.mutable_task(TaskId(i)).step = 1;
  for (TaskId t : earlier) graph.mutable_task(t).step = 0;
  return graph;
}

std::optional<Finding> FindingOfBusyBefore(const Graph& graph, const std::vector<bool>& counts,
                                           Duration step) {
  const auto busy = FindBusyBefore(graph);
  if (!busy.has_value()) {
    const bool marked = graph.steps().size() != 1;  // then it is the step before, already
    return marked ? std::nullopt : FindingOfEarlierWork(graph, step);
  }
  const size_t of = graph.task(graph.edges()[busy->launch].from).step;
  if (of >= counts.size() || !counts[of] || busy->wait <= step.Scaled(kMuchEarlier)) {
    return std::nullopt;
  }
  Finding f = Cut(graph, busy->first, busy->wait, step,
                  fmt::format("the first GPU operation starts {} after its launch with nothing "
                              "recorded before it",
                              FormatTime(busy->wait)));
  // The host may be several steps ahead.
  if (busy->wait < step) {
    f.text += fmt::format("; where steps follow each other, one may take {}",
                          FormatTime(step - busy->wait));
  }
  return f;
}

}  // namespace daydream
