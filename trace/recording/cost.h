// What recording cost a program: its steps with more and with less of it against each other.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "trace/trace.h"

namespace daydream {

// A step from mark to mark, and what of it is in the recording.
struct SeenStep {
  Duration time;
  bool recorded = false;  // its calls are
  bool labelled = false;  // its layers were marked, which costs time
  uint64_t calls = 0, work = 0, layer_marks = 0;
  Duration gpu;  // of the work
};

// `steps` of a program in their order, without the one in which the recording ended. O(n).
RecordingCost CostOfRecording(const std::vector<SeenStep>& steps);

}  // namespace daydream
