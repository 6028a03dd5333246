// The gradients of each step in the order in which backward made them ready: what data parallelism
// exchanges.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "transforms/parallel/buckets.h"

namespace daydream {

struct Gradient {
  GradientSize size;
  TaskId last;          // of the host in the scope that hands the parameter its gradient
  Duration host;        // own work of the host there
  bool hooked = false;  // a hook of DistributedDataParallel ran behind it
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
  size_t frozen = 0;                 // scopes without a size, which have nothing to exchange
};

// From torch::autograd::AccumulateGrad and its recorded shapes; without these from the shapes of an
// op of the optimizer that is there once for each gradient. E0815 when neither tells the sizes.
// O(tasks + scopes).
absl::StatusOr<GradientList> FindGradients(const Graph& graph);

}  // namespace daydream
