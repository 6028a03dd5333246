// Where a prediction and a later recording differ: GPU time per step by kernel family and by phase.
#pragma once

#include <string>
#include <vector>

#include "graph/build.h"
#include "report/summary.h"

namespace daydream {

struct Miss {
  std::string by;                        // "class" (of kernels) or "phase"
  std::string name;                      // "gemm"
  Duration before, predicted, measured;  // per counted step
};

// The `most` groups of `predicted` (the graph of the scenario) and `measured` that differ most,
// largest first. Differences below a thousandth of the measured GPU time are left out.
std::vector<Miss> LargestMisses(const Graph& before, const Graph& predicted, const Graph& measured,
                                size_t most);

}  // namespace daydream
