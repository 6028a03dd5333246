// The least time of kernels whose work is known, by the data sheet of their GPU.
#pragma once

#include <optional>

#include "transforms/analysis/kernel_table.h"
#include "transforms/analysis/op_work.h"
#include "transforms/analysis/precision.h"

namespace daydream {

// Valid while the graph lives and has the durations that it was made with.
class RooflineTimes {
 public:
  explicit RooflineTimes(const Graph& graph);
  // An op's bound is shared out to its kernels by their times; never more than these. Nothing where
  // shapes or GPU are not known, or the GPU has no rate for `format`: that of arithmetic and
  // operands; kUnknown: the fastest in which it may have run, operands as recorded. REQUIRES: `t`
  // is a live kernel. Amortised O(1).
  std::optional<Duration> Of(TaskId t, DType format = DType::kUnknown);

 private:
  const Graph& graph_;
  OpWorkTable works_;
  KernelTable kernels_;
  KnownDevices devices_;
};

}  // namespace daydream
