// Two recorded programs on one GPU: how long the steps of both take, together and alone.
#pragma once

#include <array>

#include "base/status.h"
#include "graph/graph.h"
#include "transforms/edits/neighbour.h"

namespace daydream {

struct ColocatedProgram {
  Duration alone, together;  // steady periods of its typical step
  Duration recorded;         // the period that it was recorded with
  double gpu_busy = 0;       // kernels' share of the step, alone
  size_t steps = 0;          // behind `together`
  double slowdown() const {
    return alone.ns > 0 ? static_cast<double>(together.ns) / static_cast<double>(alone.ns) : 1;
  }
};

struct Colocation {
  std::array<ColocatedProgram, 2> programs;
  double kept = 1;  // share of their time for which kernels keep others away
  // Work done in a second, against one program after the other: 1 = nothing gained, 2 = they do not
  // notice each other.
  double throughput() const { return 1 / programs[0].slowdown() + 1 / programs[1].slowdown(); }
};

// Plays the typical step of both over and over, side by side, and measures while both run.
// E0812: recorded on different GPUs, or steps that cannot be repeated. E0814: a step played over
// and over by itself takes more than 10 % more or less than it was recorded to take.
absl::StatusOr<Colocation> PredictColocation(const Graph& first, const Graph& second,
                                             GpuPolicy policy, const ShareRules& rules);

}  // namespace daydream
