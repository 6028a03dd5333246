// Launches that stood still at a full launch queue, where the recording does not tell behind what.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"
#include "report/questions/findings.h"

namespace daydream {

// Rule Q (graph/queue.h) takes what a full queue adds out of a launch: on a faster GPU it returns
// sooner. Where operations were lost, or the GPU's clock is some microseconds off, it no longer
// knows which operation made room, and the wait stays as the host's own work. Told where such waits
// take a twentieth of the step. O(tasks + edges).
std::optional<Finding> FindingOfQueues(const Graph& graph, const std::vector<bool>& counts,
                                       size_t steps, Duration step);

}  // namespace daydream
