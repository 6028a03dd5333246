// free-comm: the bound in which collectives cost nothing.
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

bool Communicates(const Graph& graph, TaskId t) {
  return graph.task(t).kind == TaskKind::kCollective;
}

absl::Status RunFreeComm(const Params&, Editor& edit) {
  edit.BeginCause("communication takes no time");
  for (TaskId t : edit.Select(&Communicates)) {
    edit.SetDuration(t, {});
    if (edit.graph().task(t).gap != Duration{}) edit.SetGap(t, {});
    // The delay before a collective is its own: it waited for room beside other kernels.
    TaskId before = edit.graph().task(t).lane_prev;
    if (before.valid() && edit.graph().task(before).kind == TaskKind::kDelay) {
      edit.SetDuration(before, {});
    }
  }
  if (!edit.changes().any()) edit.changes().notes.push_back("no collective in this trace");
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kFreeComm = {
    .name = "free-comm",
    .summary = "Collectives take no time and every peer is always ready",
    .bound = true,
    .apply = &RunFreeComm,
    .model =
        "All collective kernels (NCCL, RCCL) take no time: neither the transfer nor the "
        "waiting for other ranks that is recorded as part of them.",
    .ignores =
        "The kernels that run beside collectives would be faster without them; launching "
        "the collectives still costs host time.",
    .sources = "a limit: follows from the graph alone",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: only times change.",
};

}  // namespace daydream
