#include "transforms/amp_casts.h"

#include <algorithm>

#include "transforms/host_calls.h"

namespace daydream {
namespace {

// A cast reads 4 bytes an element and writes 2, or the other way round.
constexpr double kBytesPerElement = 6;

}  // namespace

void AddCasts(Editor& edit, std::span<const Cast> casts, const CastModel& model) {
  edit.BeginCause("casts added");
  const Graph& graph = edit.graph();
  const HostCosts costs = MeasureHostCosts(graph);
  const NameId op_name = edit.graph().AddName("aten::to (autocast)");
  const NameId call_name = edit.graph().AddName("cudaLaunchKernel");
  const NameId kernel_name = edit.graph().AddName(
      model.dtype == DType::kBf16 ? "cast_elementwise_bf16" : "cast_elementwise_fp16");
  for (const Cast& cast : casts) {
    TaskId launch = edit.LaunchOf(cast.at);
    const Task kernel = graph.task(cast.at);
    Duration time = model.floor;
    if (cast.elements > 0 && model.bandwidth > 0) {
      time = std::max(time, Duration::FromDouble(kBytesPerElement * 1e9 / model.bandwidth *
                                                 static_cast<double>(cast.elements)));
    }
    Task cast_kernel{.recorded_start = kernel.recorded_start, .duration = time,
                     .name = kernel_name, .lane = kernel.lane, .scope = kernel.scope,
                     .layer = kernel.layer, .step = kernel.step, .kind = TaskKind::kKernel,
                     .phase = kernel.phase};
    TaskId added = cast.after ? edit.InsertAfter(cast.at, cast_kernel)
                              : edit.InsertBefore(cast.at, cast_kernel);
    if (!launch.valid()) continue;
    const Task host = graph.task(launch);
    Task call{.recorded_start = host.recorded_start, .duration = costs.launch, .name = call_name,
              .lane = host.lane, .scope = host.scope, .layer = host.layer, .step = host.step,
              .kind = TaskKind::kCall, .phase = host.phase};
    Task op = call;
    op.kind = TaskKind::kHost;
    op.name = op_name;
    op.duration = costs.op - costs.launch;
    // A graph launch replays casts with everything else.
    bool replayed = graph.Name(host.name).find("GraphLaunch") != std::string_view::npos;
    TaskId cast_launch = launch;
    if (!replayed) {
      cast_launch = cast.after ? edit.InsertAfter(launch, call) : edit.InsertBefore(launch, call);
      edit.InsertBefore(cast_launch, op);
    }
    edit.AddEdge(cast_launch, added, {}, Rule::kLaunch);
  }
}

}  // namespace daydream
