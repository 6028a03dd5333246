#include "report/questions/busy_before.h"

#include <utility>

#include "graph/step_windows.h"

namespace daydream {

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

Graph AsLoneStep(Graph graph) {
  GraphStep before = graph.steps()[0];
  graph.AddStep(before);
  before.measured = false;
  before.label = kBeforeTheFirstStep;
  graph.mutable_step(0) = std::move(before);
  for (size_t i = 0; i < graph.size(); ++i) graph.mutable_task(TaskId(i)).step = 1;
  return graph;
}

}  // namespace daydream
