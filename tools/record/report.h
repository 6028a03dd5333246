// What a recording holds, for the screen at the end of `daydream trace`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "report/text/json_writer.h"
#include "trace/trace.h"

namespace daydream {

struct RecordingReport {
  std::string path;
  uint64_t bytes = 0;
  int64_t rank = -1;  // -1: not one of several
  uint64_t kernels = 0, copies = 0, calls = 0, syncs = 0, ranges = 0;
  bool disk_full = false;  // some of it because the disk took no more
  uint64_t lost = 0;       // counted losses
  std::string loss;        // what they were, a line each
  std::string gpu, software;
  std::string without_cupti;  // why CUPTI was not used; empty when it was
  RecordingCost cost;

  // GPU work that can be understood: without the calls that launched it, it cannot.
  uint64_t gpu_work() const { return calls > 0 ? kernels + copies : 0; }
};

// The share by which recording made a step longer, and how far that may be off; nothing when there
// are too few steps to tell, or the others differ for another reason.
struct Overhead {
  double share = 0, error = 0;
};
std::optional<Overhead> OverheadOf(const RecordingCost& cost);

// "182.1 ms ± 1.3 ms (n=8) while recording, 181.0 ms ± 0.9 ms (n=20) otherwise: overhead 0.6 % ±
// 0.4 %", or why there is none to tell.
std::string CostText(const RecordingCost& cost);

// "a launch 4.1 us ± 0.2 us (its call 3.0 us ± 0.2 us, its GPU work 1.1 us ± 0.1 us)", and a mark
// of a layer; empty when the steps do not tell.
std::string CostOfEachText(const RecordingCost& cost);
// "recording": what it cost.
void WriteCost(const RecordingCost& cost, JsonWriter& json);

// Reads the recording at `path`. Takes as much memory as reading it for any other purpose.
absl::StatusOr<RecordingReport> ReadRecording(const std::string& path);

// The lines of the screen, for all recordings of a session.
std::string RecordingScreen(const std::vector<RecordingReport>& reports);

}  // namespace daydream
