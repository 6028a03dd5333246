// The casts that autocast inserts, and gradient scaling.
#pragma once

#include <span>

#include "costmodel/device.h"
#include "transforms/analysis/host_calls.h"
#include "transforms/core/editor.h"

namespace daydream {

struct Cast {
  TaskId at;            // kernel whose input is cast, or whose output is
  bool after = false;   // after it
  bool narrow = false;  // to fp8 or nvfp4, both layouts that its products need
  // The narrow format, or the 16-bit one on this side of it; bf16 beside narrow ones.
  DType dtype = DType::kBf16;
  uint64_t elements = 0;  // 0 = not known
};

// Adds a kernel, its launch call and the host time of an op for each cast. A cast takes what its
// bytes take on the GPU that it runs on, `floor` at least: the parameter of that name, where ends
// are asked for. O(casts).
void AddCasts(Editor& edit, std::span<const Cast> casts, const HostCosts& costs, Duration floor);

// Adds to every optimizer step a kernel that checks and unscales all gradients, taking `share` of
// the time of the optimizer's kernels, and a read of its result that the host waits for (not where
// a CUDA graph launches the optimizer). Returns the number of steps. Where ends are asked for,
// `share` and `floor` are the parameters `unscale` and `floor`. O(tasks).
size_t AddGradientScaling(Editor& edit, double share, Duration floor);

}  // namespace daydream
