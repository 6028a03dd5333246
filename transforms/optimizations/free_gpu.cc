// free-gpu: the bound in which only the host takes time.
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

bool OnGpu(const Graph& graph, TaskId t) {
  return graph.lane(graph.task(t).lane).lane.kind != LaneKind::kThread &&
         graph.task(t).kind != TaskKind::kData;
}

absl::Status Run(const Params&, Editor& edit) {
  edit.BeginCause("GPU work takes no time");
  const Graph& graph = edit.graph();
  for (TaskId t : edit.Select(&OnGpu)) {
    edit.SetDuration(t, {});
    if (graph.task(t).gap != Duration{}) edit.SetGap(t, {});
    edit.SetEarliest(t, {});
  }
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kFreeGpu = {
    .name = "free-gpu",
    .summary = "GPU work takes no time: the step is bound by the host",
    .bound = true,
    .apply = &Run,
    .model =
        "Kernels, copies, collectives, the dead time between them and their unexplained "
        "delays take no time. Blocking calls keep their own cost. What is left is the CPU "
        "time of the step.",
    .ignores = "Latencies of launches and completions stay; they are microseconds.",
    .sources = "a limit: follows from the graph alone",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: only times change.",
};

}  // namespace daydream
