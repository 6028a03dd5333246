// What PyTorch calls the optimizer of a trace.
#pragma once

#include <string>

#include "graph/graph.h"

namespace daydream {

// "SGD" of the range "Optimizer.step#SGD.step"; empty: not recorded. O(scopes).
std::string OptimizerName(const Graph& graph);

}  // namespace daydream
