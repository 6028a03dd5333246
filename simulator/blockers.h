// What decided each instant of a finished timeline. Internal to simulator/.
#pragma once

#include <span>

#include "graph/graph.h"
#include "simulator/timeline.h"

namespace daydream {

// Fills start_blocker and end_blocker of `timeline`, whose instants are final. Of several
// constraints that allow the same instant the first counts: the lane, then edges by index.
// `order` holds every task; those of one lane in the order in which they ran. O(tasks + edges).
void FindBlockers(const Graph& graph, std::span<const TaskId> order, Timeline& timeline);

}  // namespace daydream
