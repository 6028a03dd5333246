// The clocks of host and GPU, compared by what cannot be. A recorder reads both and may be wrong by
// some microseconds to milliseconds; what waited for what is then told by times that lie.
#pragma once

#include <memory>
#include <vector>

#include "base/time.h"
#include "graph/builder.h"

namespace daydream {

// Late: a copy to the host, or all that was launched, ends after the call that waited for it
// returned. Early: an operation starts before the call that launched it. Only where one of twenty
// such copies, all such waits, or one of a hundred operations, are out by about as much, never
// both, and only where no other time would become impossible. Those GPUs that are off. REQUIRES:
// calls and operations are there (AddStreams()). O(calls + operations).
std::vector<ClockOffset> FindClockOffsets(const Builder& b);

// The trace with the GPU's side moved by that much. O(rows).
std::shared_ptr<const Trace> WithClocksSet(const Trace& trace,
                                           const std::vector<ClockOffset>& offsets);

}  // namespace daydream
