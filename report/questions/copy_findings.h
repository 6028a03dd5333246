// Steps that mostly carry data from the host to the GPU, such as weights that are kept there.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "report/questions/findings.h"

namespace daydream {

// One finding where such copies take half of a step. `counts` says by step whether it is looked at,
// `steps` how many these are, `step` is what they take on average. O(tasks).
std::vector<Finding> FindingsOfCopies(const Graph& graph, const std::vector<bool>& counts,
                                      size_t steps, Duration step);

}  // namespace daydream
