#include "graph/quick_calls.h"

#include <utility>

#include "base/median.h"
#include "graph/large_pages.h"
#include "graph/queue_places.h"

namespace daydream {

QuickCalls::QuickCalls(const Builder& b) : usual_(b.trace.names->size()) {
  std::vector<std::vector<Duration>> samples(usual_.size());
  for (size_t i = 0; i < usual_.size(); ++i) {
    const CallKind kind = b.call_kind[i];
    if (MayBlock(kind) || kind == CallKind::kEventRecord) {
      ReserveLarge(samples[i], b.calls_of_name[i]);
    }
  }
  for (const HostCall& call : b.calls) {
    if (MayBlock(call.kind) || call.kind == CallKind::kEventRecord) {
      samples[call.name.index()].push_back(call.duration());
    }
  }
  for (size_t i = 0; i < usual_.size(); ++i) {
    if (samples[i].empty()) continue;
    const size_t rank = samples[i].size() / 4;
    usual_[i] = Ranked(std::move(samples[i]), rank);
  }
}

}  // namespace daydream
