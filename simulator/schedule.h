// Discrete-event replay for graphs with lanes that may reorder: whenever such a lane is free, it
// takes the ready task with the highest priority, then the one that was ready first, then the
// lowest TaskId. Lanes of fixed order behave as on the linear path. Internal to simulator/.
//
// On a lane that may reorder, a task can be chosen once all that its edges come from has been
// played. It starts when the lane is free, never before the task that ran before it, and
// Task::overlaps has no meaning. Lanes of fixed order play as far as they can before each choice;
// choices are made in order of time, at one instant by LaneId.
#pragma once

#include "base/status.h"
#include "graph/graph.h"
#include "simulator/simulate.h"

namespace daydream {

// On graphs without such lanes the answer is that of Plan, to the bit.
// FailedPrecondition on a cycle. O((tasks + edges) log tasks).
absl::StatusOr<Timeline> Schedule(const Graph& graph, SimulateOptions options = {});

}  // namespace daydream
