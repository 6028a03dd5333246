// Host work that happened once, step by step.
#pragma once

#include <string>

#include "graph/graph.h"
#include "report/stalls.h"

namespace daydream {

// {"time_ns", "taken_ns", "all"}; a stall has "place" (of its step among those that count, null
// where its step does not count), "step", "kind", "what", "time_ns" and "taken_ns", which is what
// predictions are made without. `graph` may have them taken out already.
std::string StallsJson(const Graph& graph, const Stalls& stalls);

}  // namespace daydream
