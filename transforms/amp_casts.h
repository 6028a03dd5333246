// The casts that autocast inserts, and gradient scaling.
#pragma once

#include <span>
#include <string_view>

#include "costmodel/device.h"
#include "transforms/editor.h"

namespace daydream {

struct Cast {
  TaskId at;           // kernel whose input is cast, or whose output is
  bool after = false;  // after it
  std::string_view what;
  uint64_t elements = 0;  // 0 = not known
};

struct CastModel {
  Duration floor;  // shortest kernel
  DType dtype = DType::kBf16;
  double bandwidth = 0;  // bytes per second; 0 = not known
};

// Adds a kernel, its launch call and the host time of an op for each cast. O(casts + tasks).
void AddCasts(Editor& edit, std::span<const Cast> casts, const CastModel& model);

}  // namespace daydream
