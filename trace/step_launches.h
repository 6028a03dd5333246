// What each thread hands to the GPU, and when: the evidence by which steps are found and judged.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace daydream {

// A call that made the GPU do something, or, in a trace without GPU work, an operator.
struct Launch {
  Instant start;
  LaneId lane;
  uint32_t tasks = 0;            // GPU tasks that carry its correlation
  uint64_t what = 0;             // equal for equal work: name and shape of its first task
  Instant gpu_begin{INT64_MAX};  // first start of its GPU tasks, or the last instant without any
};

// In order of start. O(rows).
std::vector<Launch> FindLaunches(const Trace& trace);

// Chosen: a step that takes so many times what others do is clearly slower.
inline constexpr double kSlowerStep = 1.15;
// How many of the first steps take clearly longer, each, than all behind them but one that takes
// clearly longer still, as a step with a stall does: from their begin to their last launch, for
// what comes behind that is time of the next step. At most half, and three are left. REQUIRES:
// steps in order, none of which overlap. O(steps log launches).
size_t SlowerAtFirst(std::span<const std::pair<Instant, Instant>> steps,
                     std::span<const Launch> launches);

// The smallest p such that `sequence` repeats itself every p entries, at least three times and
// with hardly an exception, or 0. O(n) for each of a few candidates.
size_t FindPeriod(const std::vector<uint64_t>& sequence);

}  // namespace daydream
