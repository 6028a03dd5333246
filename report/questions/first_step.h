// Where the first counted step begins. Steps last from one end of GPU work to the next; where no
// GPU work is known before the first, nobody saw for how long the GPU waited for it, and what the
// others waited stands in for it. What the host does before GPU work differs from step to step
// where it waits for a batch.
#pragma once

#include <string>

#include "graph/graph.h"

namespace daydream {

struct FirstStep {
  Duration by;       // how far off the mean of the counted steps may be
  Duration fetch;    // the longest wait for a batch that counts
  size_t steps = 0;  // that count
  std::string name;  // of the wait
};

// `by` is 0 without waits for batches, where GPU work before the first step is known, with one
// step, whose host tells where it began, and with three steps or more, whose mean hardly depends on
// the begin of one. Else nothing says how much such waits differ, so that all of one may be too
// much or missing; in the mean that is shared by all steps. O(tasks).
FirstStep BeginOfFirstStep(const Graph& graph);

}  // namespace daydream
