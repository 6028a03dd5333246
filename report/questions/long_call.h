// One piece of host work that takes more than half of a step.
#pragma once

#include <optional>
#include <vector>

#include "base/time.h"
#include "graph/graph.h"
#include "report/questions/findings.h"

namespace daydream {

// The longest call, operator, wait in next() or stretch of the program's own time in steps that
// count (`counts`, by step), where it takes half of `step` or more; none: it does not. Not of tasks
// that other findings tell of (`told`, by task), of fetches of batches that are waits for loader
// workers over and over, of what lies outside of all steps' periods, and of the own time of threads
// that call nothing of the GPU: they wait for work. O(tasks).
std::optional<Finding> FindingOfLongCall(const Graph& graph, const std::vector<bool>& counts,
                                         const std::vector<bool>& told, Duration step);

}  // namespace daydream
