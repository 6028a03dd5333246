#include "transforms/parallel/rank_work.h"

#include <algorithm>

namespace daydream {

int32_t RankOf(const Graph& graph) {
  const Trace* trace = graph.tables().trace.get();
  return trace == nullptr || trace->ranks.empty() ? 0 : std::max(0, trace->ranks[0].rank);
}

void ScaleRank(Editor& edit, double host, double gpu) {
  const auto works = [](bool wanted, const Task& t) {
    if (IsGpu(t.kind)) return !wanted && t.kind != TaskKind::kCollective;
    return wanted && IsHost(t.kind) && t.kind != TaskKind::kWait;
  };
  for (const bool of_host : {true, false}) {
    const double factor = of_host ? host : gpu;
    if (factor == 1) continue;
    const std::vector<TaskId> tasks =
        edit.Select([&](const Graph& graph, TaskId t) { return works(of_host, graph.task(t)); });
    edit.Scale(tasks, factor);
    for (TaskId t : tasks) {
      const Duration gap = edit.graph().task(t).gap;
      if (of_host && gap > Duration{}) edit.SetGap(t, gap.Scaled(factor));
    }
  }
}

}  // namespace daydream
