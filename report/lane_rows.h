// Slices of a lane arranged in rows without partial overlap, as viewers need them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "simulator/timeline.h"

namespace daydream {

struct Slice {
  TaskId task;
  Instant begin, end;
};

// For every lane, in lane order, its rows: tasks that take time, by start. The first row of a lane
// holds all of them unless tasks of the lane overlap. O(tasks log tasks).
std::vector<std::vector<std::vector<Slice>>> SlicesByLane(const Graph& graph,
                                                          const Timeline& timeline);

// "GPU 0 stream 7", "thread 1234 (pt_autograd_0)", "channel allreduce", "loader worker 0".
std::string LaneTitle(const Graph& graph, LaneId lane);

}  // namespace daydream
