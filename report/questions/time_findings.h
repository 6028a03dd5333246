// Times that may be damage though no rule for reading a file can tell: long stretches in which
// nothing was recorded, and GPU work that takes longer than all other work together.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "report/questions/findings.h"

namespace daydream {

// `counts` says by step whether it is looked at; `step` is what they take on average.
// O(tasks + rows of the trace).
std::vector<Finding> FindingsOfTimes(const Graph& graph, const std::vector<bool>& counts,
                                     Duration step);

}  // namespace daydream
