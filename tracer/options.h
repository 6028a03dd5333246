// What the recorder was told in DAYDREAM_RECORD: "key=value;key=value" (docs/recorder.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace daydream::tracer {

enum class Capture {
  kSteps,     // the steps [warmup - labels, warmup + steps); all, when no step is marked
  kNone,      // everything
  kProfiler,  // between cudaProfilerStart and cudaProfilerStop
  kNvtx,      // while the range `range` is open
  kTime,      // from delay_ms on, for duration_ms (0: to the end)
};

struct Options {
  Capture capture = Capture::kSteps;
  std::string range;
  int64_t warmup = 10, steps = 8, labels = 3;
  // Steps are recorded so many times; each time begins `every` steps after the one before at the
  // earliest, and with kDetachedSteps between them (tracer/window.h).
  int64_t windows = 1, every = 0;
  int64_t delay_ms = 0, duration_ms = 0;
  bool stop_after = false;    // end the program when the window closes
  bool whole_graphs = false;  // one record for a graph launch, not one for each of its nodes
  bool nvtx = true, nccl = true, quiet = false;
  bool whole_command = false;  // the file keeps the command line as it is
  std::vector<int64_t> ranks;  // that are recorded; empty: all
  int64_t max_events = 20'000'000;
  int64_t flush_ms = 100;
  int64_t buffer_bytes = int64_t{1} << 20;
  int64_t pool_bytes = int64_t{512} << 20;
};

// Unknown keys are ignored. A value that makes no sense leaves the default and adds a sentence to
// `problems`.
Options ParseOptions(std::string_view text, std::vector<std::string>& problems);

}  // namespace daydream::tracer
