// The chain of instants that made a timeline as long as it is, walked back through its blockers.
#pragma once

#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "graph/graph.h"
#include "simulator/timeline.h"

namespace daydream {

// kData: whatever is done for the phase "data", so that it agrees with the sum by phase.
enum class Resource : uint8_t { kGpu, kCpu, kComm, kData };

Resource ResourceOf(TaskKind kind);
// Of the lag of an edge to a task of that kind.
Resource ResourceOfLag(Rule rule, TaskKind delayed);

// One stretch of the critical path. Segments touch: each begins where the one before ends, and
// none is empty. A negative lag shortens the work before it: only the part of that work that had
// to be done is on the path.
struct PathSegment {
  Instant begin, end;
  TaskId task;       // whose work it is, or the task that a lag leads to
  Rule rule;         // kLaneOrder for work and gaps, the edge's rule for lags
  bool lag = false;  // true: hardware latency or gap, not work
  Resource resource;
};

// Whether CriticalPath() can be asked: a timeline with blockers, or of lanes that keep their order.
bool HasPath(const Graph& graph, const Timeline& timeline);

// REQUIRES: HasPath() of a timeline of this graph. Ends at the end of `until` (None: at the last
// end of all). First segment first. O(length of the path), and where blockers are to be found
// O(tasks + edges).
std::vector<PathSegment> CriticalPath(const Graph& graph, const Timeline& timeline,
                                      TaskId until = TaskId::None());
// The same without room for all of it: calls `take` for each segment, the last first.
void WalkCriticalPath(const Graph& graph, const Timeline& timeline, TaskId until,
                      absl::FunctionRef<void(const PathSegment&)> take);

// Share of the path by resource; the four sum to its length.
struct BoundBy {
  Duration gpu, cpu, comm, data;
  Duration& Of(Resource resource);
};
BoundBy SumByResource(std::span<const PathSegment> path);

}  // namespace daydream
