// What makes some steps longer than others.
#pragma once

#include <optional>
#include <string>

#include "graph/graph.h"

namespace daydream {

// One kind of work whose time goes up and down with the length of the step.
struct UnequalWork {
  std::string name;      // "enumerate(DataLoader)#...", "aten::copy_", a kernel
  double share = 0;      // of the variance of the steps: covariance with their length over it
  Duration least, most;  // of it in a counted step
};

// The host work of one name (operators' and calls' own time, fetches of a batch) or
// the GPU work of one name that explains most of the variance of the recorded periods, when that is
// a fifth or more; or all GPU work together, where that explains four fifths and more than twice as
// much as any name. None with fewer than two counted steps. O(tasks + names x steps).
std::optional<UnequalWork> WhatMakesStepsUnequal(const Graph& graph);

}  // namespace daydream
