// Which clock the times of CUPTI's records are of, told by the records: whether a clock that CUPTI
// took is used for them, and whether cuptiGetTimestamp() follows it, is not documented.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "tracer/cupti_decoder.h"

namespace daydream::tracer {

// When something that a buffer tells of began.
struct CuptiTime {
  int64_t start_ns = 0;
  // A call of the host; else GPU work, whose times CUPTI converts from another clock.
  bool call = false;
};

// Of the first call in the buffer, else of its first GPU work with a time; none: it has neither.
std::optional<CuptiTime> FirstTime(const CuptiDecoding& cupti, uint8_t* buffer, size_t valid);

// What to add to `time` so that it lies between `begin_ns` and `now_ns` of CLOCK_MONOTONIC:
// nothing, `offset_ns` or what CLOCK_REALTIME is ahead by, CUPTI's default (cupti_activity.h). None
// fits: none.
std::optional<int64_t> OffsetThatFits(int64_t time_ns, int64_t begin_ns, int64_t now_ns,
                                      int64_t offset_ns, int64_t realtime_ahead_ns);

}  // namespace daydream::tracer
