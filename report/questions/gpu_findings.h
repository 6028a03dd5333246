// A GPU that is not the one that the file names, and memory that it does not have.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "report/questions/findings.h"

namespace daydream {

// O(rows of the trace).
std::vector<Finding> FindingsOfGpus(const Graph& graph);

}  // namespace daydream
