// Where the time of each lane goes, to the nanosecond: busy + gap + idle = makespan.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "simulator/timeline.h"

namespace daydream {

struct LaneAccount {
  LaneId lane;
  Duration busy;  // union of the tasks' own work and waits inside tasks (overlaps count once)
  Duration waiting;  // part of busy: ends held up by an edge (blocking calls)
  Duration gap;   // after tasks, while the lane may not go on
  Duration idle;  // nothing to do, or waiting for another lane before a start
};

// One account a lane, in lane order. O(tasks).
std::vector<LaneAccount> Account(const Graph& graph, const Timeline& timeline);

}  // namespace daydream
