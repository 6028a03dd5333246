// A trace of another profiler, written again as `daydream trace` would have recorded the same run:
// GPU work, calls and waits as CUPTI's records, annotations and module frames as marks. Framework
// operators are left out; a recorder does not see them.
#pragma once

#include <string>
#include <vector>

#include "trace/trace.h"

namespace daydream::tracer {

// A mark at a chosen time, which the interface of the recorder does not have.
struct TimedMark {
  int64_t time_ns = 0;  // of the trace
  uint32_t thread = 0;
  uint32_t kind = 0;  // daydream_mark_kind
  std::string name;
  int64_t value = 0;
};

struct RerecordOptions {
  bool event_sync_ids = true;  // as CUPTI of CUDA 12.8 and newer
  bool annotations = true;
  bool calls_backwards = false;  // CUPTI's records in reverse order
};

// Writes `path`, which must not exist.
void Rerecord(const Trace& trace, const std::vector<TimedMark>& marks,
              const RerecordOptions& options, const std::string& path);

}  // namespace daydream::tracer
