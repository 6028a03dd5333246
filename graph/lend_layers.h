// Layers for the steps of a recording in which none were marked.
#pragma once

#include "graph/builder.h"

namespace daydream {

// Marking layers takes time, so a recording does it in a few steps only and counts others. The
// calls of a step without marks take layer and phase from the calls at the same place of a step
// with: per thread, the two sequences of (call, first kernel, its launch shape) are laid side by
// side, by their longest common subsequence where they differ. What has no counterpart but lies
// between two calls of one layer belongs to it. GPU work takes the layer of its call.
//
// Needs steps and the layers of the steps with marks; does nothing when there are none. O(calls)
// per step where the steps are equal; at most O(calls * kMostEdits) where not.
void LendLayers(Builder& b);

}  // namespace daydream
