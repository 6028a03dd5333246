#include "transforms/edits/inserted_kernel.h"

namespace daydream {

TaskId InsertKernel(Editor& edit, const InsertedKernel& kernel, const HostCosts& costs) {
  const Graph& graph = edit.graph();
  const TaskId launch = edit.LaunchOf(kernel.at);
  const Task beside = graph.task(kernel.at);
  const Task task{.recorded_start = beside.recorded_start,
                  .duration = kernel.duration,
                  .gap = kernel.gap,
                  .name = kernel.name,
                  .lane = beside.lane,
                  .scope = beside.scope,
                  .layer = beside.layer,
                  .step = beside.step,
                  .kind = TaskKind::kKernel,
                  .phase = beside.phase};
  const TaskId added =
      kernel.after ? edit.InsertAfter(kernel.at, task) : edit.InsertBefore(kernel.at, task);
  if (!launch.valid()) return added;
  const Task host = graph.task(launch);
  const Task call = CallBeside(host, kernel.call, costs.launch);
  Task op = call;
  op.kind = TaskKind::kHost;
  op.name = kernel.op;
  op.duration = costs.op - costs.launch;
  TaskId own = launch;
  if (!IsGraphLaunch(graph, host)) {
    own = kernel.after ? edit.InsertAfter(launch, call) : edit.InsertBefore(launch, call);
    if (kernel.op.valid()) edit.InsertBefore(own, op);
  }
  edit.AddEdge(own, added, {}, Rule::kLaunch);
  return added;
}

}  // namespace daydream
