// A second opinion on what a graph means, written from the definition in graph/graph.h (and for
// lanes that may reorder, simulator/schedule.h) without any cleverness. Quadratic or worse; for
// small graphs.
#pragma once

#include "graph/graph.h"
#include "simulator/timeline.h"

namespace daydream {

// Without blockers. REQUIRES: Validate(graph) is OK.
Timeline OracleTimeline(const Graph& graph);

}  // namespace daydream
