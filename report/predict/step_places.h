// Which tasks of different steps are the same piece of work: the n-th of its name on its lane.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "graph/graph.h"

namespace daydream {

struct StepPlaces {
  static constexpr uint32_t kNone = 0xffffffff;
  std::vector<uint32_t> of_task;  // by TaskId; kNone where a task has no part in it
  uint32_t count = 0;             // places are 0 .. count - 1
};

// Tasks of one place have one lane and one name, and are in different steps: the n-th in each of
// them, counted along the lane. Tasks that do not count have no place. O(tasks), with a search for
// those that come behind one of a later step.
StepPlaces FindStepPlaces(const Graph& graph, absl::FunctionRef<bool(const Task&)> counts);

}  // namespace daydream
