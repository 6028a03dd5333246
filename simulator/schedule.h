// Discrete-event replay for graphs with lanes that may reorder: whenever such a lane is free, it
// takes the ready task with the highest priority, then the one that was ready first, then the
// lowest TaskId. Lanes of fixed order behave as on the linear path. Internal to simulator/.
#pragma once

#include "base/status.h"
#include "graph/graph.h"
#include "simulator/simulate.h"

namespace daydream {

// On graphs without such lanes the answer is that of Plan, to the bit.
// FailedPrecondition on a cycle. O((tasks + edges) log tasks).
absl::StatusOr<Timeline> Schedule(const Graph& graph, SimulateOptions options = {});

}  // namespace daydream
