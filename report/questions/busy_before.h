// GPU work from before the recording, which a recording of one step shows only by its end.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"
#include "report/questions/findings.h"

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

// What streams did before the first operation whose launch was recorded: their order says that it
// was launched earlier. Of a stream without any such operation, what began before the first on the
// others. Empty where no launch was recorded. O(tasks + edges).
std::vector<TaskId> FindEarlierWork(const Graph& graph);

// The window of a recording without marks as one step behind others, as if it were marked: as long
// as its GPU work, without FindEarlierWork(), or its host work where that is longer
// (graph/step_windows.h). REQUIRES: one step.
Graph AsLoneStep(Graph graph);

// What of both takes a twentieth of the only step that counts: it is no part of it. O(tasks +
// edges).
std::optional<Finding> FindingOfBusyBefore(const Graph& graph, const std::vector<bool>& counts,
                                           Duration step);

}  // namespace daydream
