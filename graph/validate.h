// Every invariant of a Graph, as one Status.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "graph/graph.h"

namespace daydream {

// Checks: ids in range; lane lists consistent in both directions and complete; durations and
// non-GPU gaps >= 0; no edge from or to a missing task; kWait tasks have duration 0; no cycle.
// FailedPrecondition names the first violation. O(tasks + edges).
absl::Status Validate(const Graph& graph);

// The same without the search for cycles, which costs most of it: for graphs that are simulated
// next, since the simulator finds and names a cycle itself.
absl::Status ValidateButCycles(const Graph& graph);

// What a replay of the graph can take at the most, in ns, up to 2^60.
struct ReplayBound {
  uint64_t ns = 0;
};
ReplayBound BoundReplay(const Graph& graph);  // O(tasks + edges)

// ValidateButCycles() of a graph for which it held when its structure() was named, with `then` as
// its BoundReplay() at any time since. O(retimed()), but for graphs with mistakes.
absl::Status ValidateRetimed(const Graph& graph, ReplayBound then);

// Of these, that a replay cannot take more than 36 years: no instant comes near the end of int64.
absl::Status FitsReplay(const Graph& graph);

}  // namespace daydream
