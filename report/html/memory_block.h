// GPU memory over one step, before and after.
#pragma once

#include <span>
#include <string>

#include "report/export/side.h"
#include "transforms/core/editor.h"

namespace daydream {

// {"step", "sides", "recorded"}. A side has "name", "window_ns", "always_bytes" (parameters,
// gradients and optimizer state) and "points": [ns since the window began, bytes from then on]. The
// bytes are an estimate from shapes: what is always there, and what is kept for backward from the
// op that makes it to the work that uses it (transforms/analysis/saved_tensors.h). A side without
// shapes, or whose step does not train, has no points. "recorded" has "window_ns", "total" (false:
// its bytes count from their lowest point) and the points of what the framework had allocated in
// the same step of the recording, or is null. Of points that lie near each other the first,
// the highest and the last are kept. O(tasks + allocations).
//
// `changes` are those of the prediction; what is kept for backward is told by the graph of its
// side.
std::string MemoryJson(std::span<const Side> sides, std::span<const MemoryChange> changes);

}  // namespace daydream
