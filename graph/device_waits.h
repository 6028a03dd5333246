// Waits for the whole device: cudaDeviceSynchronize and cudaFree wait for the last work of every
// stream. An edge from each stream to each wait would be streams times waits, so a wait only has
// edges from the streams that had work since the wait of the same thread and kind before it. The
// order of the thread keeps the rest: 5,000 streams and 5,000 waits are 15,000 edges, not 25
// million.
//
// Whoever takes such a wait out of a graph passes its edges on to the next one that stays.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "graph/graph.h"

namespace daydream {

struct AwaitedWork {
  std::map<LaneId, TaskId> last;  // of each stream that a wait awaits
  // Streams of which another is awaited since the visitor emptied this, or since the first wait;
  // in any order, some more than once. A visitor that looks at no others is done in O(edges).
  std::vector<LaneId> news;
};

// Visits every task that waits for GPU work (rule kHostWait), thread by thread and in order, with
// all that it awaits: for a wait for the whole device also what earlier ones have the edges of.
// `visit` may add edges, lanes, and tasks to these. O(tasks + edges), besides what it does.
void VisitWaits(const Graph& graph,
                const std::function<void(TaskId wait, AwaitedWork& awaited)>& visit);

// An edge that a wait gets in place of one that goes.
struct PassedEdge {
  Edge edge;
  TaskId by;  // the wait that goes
};

// The edges that waits which stay need when those go for which `gone` holds: one from each stream
// that the next wait of the same thread and kind has no edge from. O(tasks + edges).
std::vector<PassedEdge> EdgesPassedOn(const Graph& graph, const std::function<bool(TaskId)>& gone);

}  // namespace daydream
