// Places that graphs have of their own: they read their inputs from where they were captured.
//
// That is what a step copies to the GPU, and with a graph for each layer what one layer hands to
// the next (torch.cuda.make_graphed_callables). All else is at a fixed place already: an earlier
// graph left it there, or it is a parameter that is updated in place.
#pragma once

#include <span>

#include "transforms/core/editor.h"

namespace daydream {

// Captured GPU work and the layer whose graph it is in.
struct LayerWork {
  TaskId task;
  LayerId layer;
};

// Both are upper limits: the program may have had a place for its inputs already. O(tasks).
MemoryChange InputBuffersOfSteps(const Graph& graph);
// `work`: in the order of its launches.
MemoryChange InputBuffersOfLayers(const Graph& graph, std::span<const LayerWork> work);

}  // namespace daydream
