#include "report/predict/quick_host.h"

#include <algorithm>
#include <vector>

namespace daydream {

bool HostIsStretched(const Graph& graph) {
  const Trace* trace = graph.tables().trace.get();
  return trace != nullptr && trace->provenance.importer == "kineto";
}

std::optional<Duration> OverQuickHost(const Graph& graph, Replays& replays) {
  const Replays::Lent batch = replays.Batch(graph);
  if (batch == nullptr) return std::nullopt;
  std::vector<StepBatch::Longer> host;
  host.reserve(graph.size());
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (t.removed || !IsHost(t.kind)) continue;
    const Duration gap = std::max(t.gap, Duration{}), time = t.duration + gap;
    if (time <= Duration{}) continue;
    const double left = std::max(0.0, 1 - kMostAdded.seconds() / time.seconds());
    host.push_back({TaskId(i), t.duration.Scaled(left) - t.duration, gap.Scaled(left) - gap});
  }
  return batch->StepWith(host);
}

}  // namespace daydream
