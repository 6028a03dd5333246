// Rule Q4: which streams share a launch queue. A program may have more streams than the driver has
// queues, and nothing that is recorded says which of them go together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"

namespace daydream {

// What took a place in the queue of a stream: when it was submitted (Instant::Min() before the
// recording) and when it started (later than all of it: not in the recording). Both in order.
struct StreamPlaces {
  std::vector<Instant> submitted, started;
};

// A launch that took long.
struct LongCall {
  Instant start, end;
};

// More streams are not looked at: the search takes streams * sharers * calls.
constexpr size_t kMostStreams = 128;

// The streams that fill one queue of `depth` places together whenever one of `calls` returns, so
// that this is why those took long; `blocked` are those that they submit to. To `blocked` we add
// the stream that brings what is in flight nearest to the depth, and again, while that helps.
// Empty: three of four calls have to return within eight places of the depth, or nothing is known.
// Which of several streams that were used alike it is cannot be told: the first.
std::vector<size_t> StreamsOfOneQueue(std::span<const StreamPlaces> streams,
                                      std::span<const size_t> blocked,
                                      std::span<const LongCall> calls, uint32_t depth);

}  // namespace daydream
