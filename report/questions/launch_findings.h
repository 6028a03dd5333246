// What the recording lacks on the GPU: launches whose work has no record, work without a launch,
// and work that only a gap tells of (CUDA graphs without records of their kernels).
#pragma once

#include <vector>

#include "graph/graph.h"
#include "report/questions/findings.h"

namespace daydream {

// `counts` says by step whether it counts, `steps` how many do; `step` is what they take on
// average. O(tasks + edges).
std::vector<Finding> FindingsOfLaunches(const Graph& graph, const std::vector<bool>& counts,
                                        size_t steps, Duration step);

}  // namespace daydream
