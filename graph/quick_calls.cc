#include "graph/quick_calls.h"

#include "base/median.h"
#include "graph/queue_places.h"

namespace daydream {

QuickCalls::QuickCalls(const Builder& b) : b_(b), usual_(b.trace.names->size()) {
  std::vector<std::vector<Duration>> samples(usual_.size());
  for (const HostThread& thread : b.threads) {
    for (TaskId t : thread.tasks) {
      if (MayBlock(b.KindOf(t)) || b.KindOf(t) == CallKind::kEventRecord) {
        samples[b.graph.task(t).name.index()].push_back(b.RecordedDuration(t));
      }
    }
  }
  for (size_t i = 0; i < usual_.size(); ++i) {
    if (!samples[i].empty()) usual_[i] = Ranked(samples[i], samples[i].size() / 4);
  }
}

}  // namespace daydream
