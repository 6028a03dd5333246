// How much of what the forward pass keeps is on the GPU at once.
#pragma once

#include <functional>
#include <span>

#include "transforms/analysis/saved_tensors.h"

namespace daydream {

// The largest sum of `of(op)` over the ops of one pass.
double MostInAPass(std::span<const ForwardOp> ops,
                   const std::function<double(const ForwardOp&)>& of);

// The most that is on the GPU for backward at once: what is kept, at the end of the forward pass or
// during backward, with what was computed or fetched again by then (OpChange in
// graph/model_changes.h).
// O(ops log ops).
double PeakOfKept(std::span<const ForwardOp> ops);

}  // namespace daydream
