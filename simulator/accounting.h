// Where the time of each lane goes, to the nanosecond: busy + gap + idle = makespan.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "simulator/timeline.h"

namespace daydream {

// Each moment of [0, makespan] is one of busy, gap and idle. Tasks that overlap count once, and a
// negative gap counts as nothing.
struct LaneAccount {
  LaneId lane;
  Duration busy;     // some task is between its start and its end
  Duration waiting;  // the part of busy without own work: ends held up by an edge
  Duration gap;      // not busy, but after a task and before the lane may go on
  Duration idle;     // nothing to do, or waiting for another lane before a start
};

// One account a lane, by LaneId. O(tasks); sorts lanes whose starts are not in lane order.
std::vector<LaneAccount> Account(const Graph& graph, const Timeline& timeline);

}  // namespace daydream
