#include "graph/quick_calls.h"

#include "base/median.h"
#include "graph/queue_places.h"

namespace daydream {

std::vector<Duration> QuickCalls(const Builder& b) {
  std::vector<std::vector<Duration>> samples(b.trace.names->size());
  for (const HostThread& thread : b.threads) {
    for (TaskId t : thread.tasks) {
      if (MayBlock(b.KindOf(t)) || b.KindOf(t) == CallKind::kEventRecord) {
        samples[b.graph.task(t).name.index()].push_back(b.RecordedDuration(t));
      }
    }
  }
  std::vector<Duration> quick(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!samples[i].empty()) quick[i] = Ranked(samples[i], samples[i].size() / 4);
  }
  return quick;
}

}  // namespace daydream
