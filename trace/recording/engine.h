// Threads of the autograd engine in a recording: PyTorch runs a backward pass on a thread of its
// own for each GPU, while the thread that called it waits. In a recording nothing but the calls
// and marks of that thread are there, so this is told from where they lie.
#pragma once

#include <span>
#include <vector>

#include "trace/recording/marks.h"

namespace daydream {

// A call of the CUDA API.
struct CallSpan {
  LaneId lane;
  Instant begin, end;
};

// A span kEngineRange for each backward pass (a range kBackwardRange of `spans`) and each other
// thread that works on it: one with marks of backward layers, or nine tenths of whose calls lie
// in backward passes of other threads. It reaches from the first of its calls and layers in the
// pass to the end of the last. O(n log n).
std::vector<MarkedSpan> EngineSpans(std::span<const MarkedSpan> spans,
                                    std::span<const CallSpan> calls, StringPool& names);

}  // namespace daydream
