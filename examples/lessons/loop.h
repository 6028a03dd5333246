// A training loop of a few kernels with times to choose, for lessons that fit on paper.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "examples/models.h"

namespace daydream::examples {

struct LoopKernel {
  std::string_view op, kernel;
  int64_t ns = 0;
  int stream = 0;
  int64_t host_ns = 20'000;  // of the operator, before its launch
  bool waits = false;        // its stream waits for the other one before it
  bool collective = false;   // an all-reduce
};

struct Loop {
  // Times are exact: no noise, unless it is asked for.
  MachineOptions machine{.noise_percent = 0};
  int steps = 6;
  int64_t load_ns = 0;        // the loader makes a batch in this time, while nothing is launched
  int64_t first_ns = 0;       // host work that only the first step has
  int64_t late_stall_ns = 0;  // ... that only the fourth has, inside of an operator
  // In every other step each kernel is done so much earlier, and the collective waits for the rest.
  int64_t peer_late_ns = 0;
  bool only_last = false;  // only the last step is recorded
  int memory_calls = 0;    // pairs of cudaMalloc and cudaFree in each step
  int64_t memory_call_ns = 0;
  std::vector<LoopKernel> kernels;
  bool item = true;  // reads the loss at the end of each step
};

// `count` kernels like `all`, each with its part of the time.
std::vector<LoopKernel> EqualKernels(int count, LoopKernel all);

absl::StatusOr<Played> PlayLoop(std::string_view name, const Loop& loop);

constexpr int64_t Ms(int64_t ms) { return ms * 1'000'000; }
constexpr int64_t Us(int64_t us) { return us * 1'000; }
constexpr double InMs(int64_t ns) { return static_cast<double>(ns) / 1e6; }

}  // namespace daydream::examples
