// What DistributedDataParallel broadcasts before each forward pass: the buffers of modules, which
// are those of batch norms where shapes of ops are all that is known.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace daydream {

struct NormBuffers {
  double statistics = 0;  // bytes of running means and variances
  double counters = 0;    // bytes of num_batches_tracked
};

// By step, from the recorded shapes of aten::batch_norm in forward passes. O(tasks + scopes).
std::vector<NormBuffers> FindNormBuffers(const Graph& graph);

}  // namespace daydream
