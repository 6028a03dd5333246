#include <algorithm>

#include "transforms/transform.h"

namespace daydream {
namespace {

bool OnHost(const Task& task) { return IsHost(task.kind) || task.kind == TaskKind::kData; }

absl::Status Run(const Params&, Editor& edit) {
  edit.BeginCause("host work takes no time");
  Graph& graph = edit.graph();
  for (TaskId t : edit.Select([](const Graph&g, TaskId id) { return OnHost(g.task(id)); })) {
    edit.SetDuration(t, {});
    if (graph.task(t).gap != Duration{}) edit.SetGap(t, {});
  }
  // Boundary conditions are host time as well: when a thread, or a launch that was not recorded,
  // came first.
  for (size_t i = 0; i < graph.size(); ++i) graph.mutable_task(TaskId(i)).earliest = {};
  for (size_t i = 0; i < graph.edges().size(); ++i) {
    const Edge& e = graph.edges()[i];
    if (e.rule == Rule::kHandOff) edit.SetLag(i, std::min(e.lag, Duration{}));
  }
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kFreeHost = {
    .name = "free-host",
    .summary = "Host code and API calls take no time: the step is bound by the GPU",
    .bound = true,
    .apply = &Run,
    .model =
        "All CPU work, gaps between it, API calls and hand-offs between threads take no "
        "time. What is left is the critical path of the GPU: its work, the order of its "
        "streams and the latencies of launches and waits.",
    .ignores =
        "A limit for changes of the host only: dead time between kernels and launch latencies "
        "stay, "
        "and what shortens those (graphs) can go below it.",
    .sources = "a limit: follows from the graph alone",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: only times change.",
};

}  // namespace daydream
