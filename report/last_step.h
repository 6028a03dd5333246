// Where the last counted step ends. Steps last from one beginning of GPU work to the next, and what
// the host does before that work differs from step to step where it waits for a batch: the wait of
// the step behind the last one is not in the recording.
#pragma once

#include <string>

#include "graph/graph.h"

namespace daydream {

struct LastStep {
  Duration by;       // how far off the mean of the counted steps may be
  Duration fetch;    // the longest wait for a batch that counts
  size_t steps = 0;  // that count
  std::string name;  // of the wait
};

// `by` is 0 without waits for batches, and with three steps or more, whose mean hardly depends on
// the end of one. With fewer nothing says how much such waits differ, so that all of one may be too
// much or missing; in the mean that is shared by all steps. O(tasks).
LastStep EndOfLastStep(const Graph& graph);

}  // namespace daydream
