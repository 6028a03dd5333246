// free-gpu: the bound in which only the host takes time.
#include <algorithm>
#include <optional>
#include <vector>

#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

bool OnGpu(const Graph& graph, TaskId t) {
  return graph.lane(graph.task(t).lane).lane.kind != LaneKind::kThread &&
         graph.task(t).kind != TaskKind::kData;
}

// From when work without a recorded launch may run: since the host begins; and where such work is
// the first of all on the GPU, not before it, as for every other option. Earlier, it would make
// the step longer at its front.
Instant Beginning(const Graph& graph, const std::vector<TaskId>& work) {
  std::optional<Instant> host;
  for (const GraphLane& lane : graph.lanes()) {
    if (lane.lane.kind != LaneKind::kThread || !lane.first.valid()) continue;
    const Instant begin = graph.task(lane.first).earliest;
    host = std::min(host.value_or(begin), begin);
  }
  const auto first =
      std::ranges::min_element(work, {}, [&](TaskId t) { return graph.task(t).recorded_start; });
  const Instant gpu = first == work.end() ? Instant{} : graph.task(*first).earliest;
  return std::max(host.value_or(Instant{}), gpu);
}

absl::Status RunFreeGpu(const Params&, Editor& edit) {
  edit.BeginCause("GPU work takes no time");
  const Graph& graph = edit.graph();
  const std::vector<TaskId> work = edit.Select(&OnGpu);
  const Instant begin = Beginning(graph, work);
  for (TaskId t : work) {
    edit.SetDuration(t, {});
    if (graph.task(t).gap != Duration{}) edit.SetGap(t, {});
    const bool launched = graph.task(t).earliest == Instant{};
    edit.SetEarliest(t, launched ? Instant{} : begin);
  }
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kFreeGpu = {
    .name = "free-gpu",
    .summary = "GPU work takes no time: the step is bound by the host",
    .bound = true,
    .apply = &RunFreeGpu,
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
