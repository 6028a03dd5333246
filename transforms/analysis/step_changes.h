// Whether the steps of a trace launch the same work: what is replayed has to.
#pragma once

#include <span>

#include "graph/graph.h"

namespace daydream {

struct StepChanges {
  size_t kernels = 0;  // that one measured step has, with this launch shape, and another has not
  TaskId first;        // one of them
};

// `work` comes step by step; what is no GPU work does not count. O(work).
StepChanges FindStepChanges(const Graph& graph, std::span<const TaskId> work);

}  // namespace daydream
