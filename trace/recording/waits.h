// Which cudaEventRecord a wait of a recording means.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/trace.h"

namespace daydream {

// One call of cudaEventRecord.
struct EventRecord {
  uint32_t correlation = 0;  // of that call
  uint32_t context = 0;
  int64_t event = -1;       // CUDA event id, unique within the context
  uint64_t event_sync = 0;  // counts records of all events; 0 = not known (before CUDA 12.8)
  int64_t stream = -1;      // on which it was recorded
};

// A wait for an event, with what its record says about the event.
struct EventWait {
  uint32_t correlation = 0;
  uint32_t context = 0;
  uint64_t event_sync = 0;
  SyncDetail* detail = nullptr;  // event is filled; gets record_correlation and wait_on_stream
};

// Fills `detail` of all waits whose record is there: the one with the same number or, without
// numbers, the last one of the event before the wait. Correlations count modulo 2^32. Returns how
// many waits have none. O((n + m) log n).
uint64_t JoinWaits(std::vector<EventRecord> records, std::span<const EventWait> waits);

}  // namespace daydream
