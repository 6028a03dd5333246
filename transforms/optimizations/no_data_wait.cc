// no-data-wait: the bound in which batches are always ready.
#include "transforms/analysis/loader.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

absl::Status RunNoDataWait(const Params&, Editor& edit) {
  edit.BeginCause("the next batch is always ready");
  const Graph& graph = edit.graph();
  LoaderScopes loader(graph);
  for (TaskId t : edit.Select([&](const Graph&g, TaskId id) {
         const Task& task = g.task(id);
         return task.kind == TaskKind::kData ||
                (IsHost(task.kind) && loader.Around(task.scope).valid());
       })) {
    edit.SetDuration(t, {});
    const Task& task = graph.task(t);
    bool gap = task.kind == TaskKind::kData || loader.OwnsGapOf(task);
    if (gap && task.gap != Duration{}) edit.SetGap(t, {});
  }
  if (!edit.changes().any()) {
    edit.changes().notes.push_back("no range named after a DataLoader in this trace");
  }
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kNoDataWait = {
    .name = "no-data-wait",
    .summary = "The next batch is always ready",
    .bound = true,
    .apply = &RunNoDataWait,
    .model =
        "The host takes no time in ranges named after a data loader (PyTorch marks them "
        "enumerate(DataLoader)), whether it works there or waits for workers.",
    .ignores =
        "Copies of the batch to the GPU stay. Loaders that the profiler does not mark are "
        "not seen.",
    .sources = "a limit: follows from the graph alone",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: only times change.",
};

}  // namespace daydream
