// Work that its GPU cannot do in the recorded time: shapes or times are not those of this run.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "report/questions/findings.h"

namespace daydream {

// One finding where a fifth of the GPU time is in kernels that take no longer than the data sheet
// of their GPU allows for the shapes of their operator; one where a fifth of the time of copies is
// in such as are faster than its link to the host, or its memory. Empty without shapes or bytes, or
// a known GPU. O(tasks).
std::vector<Finding> FindingsOfLimits(const Graph& graph);

}  // namespace daydream
