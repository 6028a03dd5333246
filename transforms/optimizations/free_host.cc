// free-host: the bound in which only the GPU takes time.
#include <algorithm>

#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

bool OnHost(const Task& task) { return IsHost(task.kind) || task.kind == TaskKind::kData; }

// Time of a stream that no rule explains; waiting for processors that another one holds stays.
bool IsUnexplained(const Graph& graph, const Task& task) {
  return task.kind == TaskKind::kDelay && task.detail >= graph.size();
}

absl::Status RunFreeHost(const Params&, Editor& edit) {
  edit.BeginCause("host work takes no time");
  const Graph& graph = edit.graph();
  for (TaskId t : edit.Select([](const Graph&g, TaskId id) { return OnHost(g.task(id)); })) {
    edit.SetDuration(t, {});
    if (graph.task(t).gap != Duration{}) edit.SetGap(t, {});
  }
  edit.BeginCause("kernels follow each other without dead time");
  for (TaskId t : edit.Select([](const Graph&g, TaskId id) { return !OnHost(g.task(id)); })) {
    const Task& task = graph.task(t);
    if (IsUnexplained(graph, task)) edit.SetDuration(t, {});
    if (task.gap > Duration{}) edit.SetGap(t, {});
  }
  // Boundary conditions are host time as well: when a thread, or a launch that was not recorded,
  // came first.
  for (size_t i = 0; i < graph.size(); ++i) edit.SetEarliest(TaskId(i), {});
  for (size_t i = 0; i < graph.edges().size(); ++i) {
    const Rule rule = graph.edges()[i].rule;
    if (rule != Rule::kTransform && rule != Rule::kCollective) {
      edit.SetLag(i, std::min(graph.edges()[i].lag, Duration{}));
    }
  }
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kFreeHost = {
    .name = "free-host",
    .summary = "The host and what it costs the GPU take no time: kernels follow each other",
    .bound = true,
    .apply = &RunFreeHost,
    .model =
        "All CPU work, gaps between it, API calls and hand-offs between threads take no "
        "time, nor do the latencies of launches and waits, dead time between kernels, and "
        "delays of streams that nothing explains. What is left is the critical path of the GPU: "
        "its work, the order of its streams, and waiting for processors that other work holds.",
    .ignores =
        "A limit for whatever changes only the host, the launches and the time between kernels "
        "(graphs, aot, no-sync, prefetch, cache). What shortens or removes kernels, or runs them "
        "beside each other, can go below it.",
    .sources = "a limit: follows from the graph alone",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: only times change.",
};

}  // namespace daydream
