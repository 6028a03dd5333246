// What decided each instant of a finished timeline. Internal to simulator/.
#pragma once

#include <span>

#include "graph/graph.h"
#include "simulator/timeline.h"

namespace daydream {

// Fills start_blocker and end_blocker of `timeline`, whose instants are final. Of several
// constraints that allow the same instant the first counts: the lane, then edges by index.
// `ran_before[t]` is the task that ran before t on its lane, for lanes that may reorder; may be
// empty when there are none. O(tasks + edges).
void FindBlockers(const Graph& graph, std::span<const TaskId> ran_before, Timeline& timeline);

}  // namespace daydream
