// One step, played over and over: the steady state that a long run of this step would reach. Used
// where a trace holds one usable step, and to ask whether a step predicts the next one.
#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace daydream {

// A graph of `times` copies of step `step`, one after the other on every lane. An edge from a task
// of an earlier step comes from the same place that many copies before; queue edges are computed
// anew (graph/queue.h). The period of the last copy is the steady period (reached after one or two
// copies in all traces measured; 4 copies are plenty).
// InvalidArgument when there is no such step. O(tasks of the step x times + edges).
absl::StatusOr<Graph> RepeatStep(const Graph& graph, uint16_t step, int times);

}  // namespace daydream
