// What a recording holds, for the screen at the end of `daydream trace`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace daydream {

// Median and half the middle half of some step times.
struct StepTimes {
  size_t steps = 0;
  Duration median, spread;
};

struct RecordingReport {
  std::string path;
  uint64_t bytes = 0;
  int64_t rank = -1;  // -1: not one of several
  uint64_t kernels = 0, copies = 0, calls = 0, syncs = 0, ranges = 0;
  uint64_t lost = 0;  // events that the recorder counted as lost
  std::string loss;   // the largest of them, in words
  size_t marked_steps = 0;
  std::string gpu, software;
  StepTimes recorded;    // steps with recorded GPU work that count
  StepTimes unrecorded;  // steps in which nothing but the marks was recorded
  bool before = true;    // the unrecorded ones came before the recorded ones

  uint64_t gpu_work() const { return kernels + copies; }
  // Share by which recording made a step longer; none with too few steps to tell.
  std::optional<double> Overhead() const;
};

// Reads the recording at `path`. Takes as much memory as reading it for any other purpose.
absl::StatusOr<RecordingReport> ReadRecording(const std::string& path);

// The lines of the screen, for all recordings of a session.
std::string RecordingScreen(const std::vector<RecordingReport>& reports);

}  // namespace daydream
