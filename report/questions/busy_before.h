// GPU work from before the recording, which a recording of one step shows only by its end.
#pragma once

#include <optional>

#include "graph/graph.h"

namespace daydream {

// The first GPU operation was launched in the recording and began long after, with nothing recorded
// before it: the GPU was busy with what was launched earlier.
struct BusyBefore {
  TaskId first;
  size_t launch = 0;  // edge
  Duration wait;      // from the end of the launch to the start
};

// O(tasks + edges). None where the first operation has no recorded launch.
std::optional<BusyBefore> FindBusyBefore(const Graph& graph);

// The window of a recording without marks as one step behind others, as if it were marked: as long
// as its GPU work, or its host work where that is longer (graph/step_windows.h). REQUIRES: one
// step.
Graph AsLoneStep(Graph graph);

}  // namespace daydream
