// The gradients of each step in the order in which backward made them ready: what data parallelism
// exchanges.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "transforms/parallel/buckets.h"

namespace daydream {

// What data_parallel.h calls the calls behind backward that copy gradients out of their buckets.
inline constexpr std::string_view kCopyBackCall = "copy a gradient back";

struct Gradient {
  GradientSize size;
  TaskId last;          // of the host in the scope that hands the parameter its gradient
  Duration host;        // own work of the host there
  bool hooked = false;  // a hook of DistributedDataParallel ran behind it
  TaskId call;          // last of the hook on its thread, and of the exchange that it launches
  TaskId copy;          // on the GPU, back out of its bucket; None: not recorded
};

struct StepGradients {
  uint16_t step = 0;
  std::vector<Gradient> ready;
  // Of a step with several backward passes the last, as under no_sync(); how many there are.
  size_t passes = 1;
};

struct GradientList {
  std::vector<StepGradients> steps;  // those with gradients, in order
  bool width_assumed = false;        // types were not recorded: 4 bytes an element
  bool order_assumed = false;        // sizes are the optimizer's, in the opposite order
  bool copied = false;               // sizes are those of the copies out of recorded buckets
  size_t frozen = 0;                 // scopes without a size, which have nothing to exchange
};

// From torch::autograd::AccumulateGrad and its recorded shapes; without these from the bytes that
// DistributedDataParallel copied back out of its buckets, which hold gradients in the order in
// which they become ready; else from the shapes of an op of the optimizer that is there once for
// each gradient of a pass. E0815 when nothing tells the sizes. O(tasks + scopes).
absl::StatusOr<GradientList> FindGradients(const Graph& graph);

}  // namespace daydream
