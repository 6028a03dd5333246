// Times that may be damage though no rule for reading a file can tell: long stretches in which
// nothing was recorded, GPU work that takes longer than all other work together, or no time.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "report/questions/findings.h"

namespace daydream {

// `counts` says by step whether it is looked at; `step` is what they take on average.
// O(tasks + rows of the trace).
std::vector<Finding> FindingsOfTimes(const Graph& graph, const std::vector<bool>& counts,
                                     Duration step);

struct TimelessWork {
  size_t without = 0, all = 0;  // GPU operations that take 0 ns; of how many
};
TimelessWork WithoutTime(const Graph& graph);  // O(tasks)

}  // namespace daydream
