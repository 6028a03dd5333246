// Names of kernels that cannot be those of the work that their operators do.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "report/questions/findings.h"

namespace daydream {

// One name for all kernels of many operators; kernels that multiply matrices by their names and
// were launched by operators that do not. O(edges).
std::vector<Finding> FindingsOfNames(const Graph& graph);

}  // namespace daydream
