// The finding about loader processes that the step waits for.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "report/questions/findings.h"

namespace daydream {

// One finding where the waits of report/loader_workers.h are a twentieth of `step`, which is the
// mean of `steps` steps; `counts` says which. It is about predictions where the waits are too few
// to tell how often steps wait (FindFewWaits()), or where only a step that does not count waited.
// O(tasks).
std::vector<Finding> FindingsOfLoader(const Graph& graph, const std::vector<bool>& counts,
                                      size_t steps, Duration step);

}  // namespace daydream
