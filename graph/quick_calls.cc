#include "graph/quick_calls.h"

#include "base/median.h"
#include "graph/queue_places.h"

namespace daydream {

QuickCalls::QuickCalls(const Builder& b) : usual_(b.trace.names->size()) {
  std::vector<std::vector<Duration>> samples(usual_.size());
  for (const HostCall& call : b.calls) {
    if (MayBlock(call.kind) || call.kind == CallKind::kEventRecord) {
      samples[call.name.index()].push_back(call.duration());
    }
  }
  for (size_t i = 0; i < usual_.size(); ++i) {
    if (!samples[i].empty()) usual_[i] = Ranked(samples[i], samples[i].size() / 4);
  }
}

}  // namespace daydream
