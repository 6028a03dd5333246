// A Timeline is what a simulation predicts: when every task of a graph starts and ends, and what
// decided it. Immutable; indexed by TaskId.
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "graph/graph.h"

namespace daydream {

// What decided an instant. `edge` is an index into Graph::edges(), or one of the constants.
struct Blocker {
  static constexpr uint32_t kNothing = 0xffffffff;  // the task could start at its `earliest`
  static constexpr uint32_t kLane = 0xfffffffe;     // its lane predecessor
  static constexpr uint32_t kOwnWork = 0xfffffffd;  // ends only: the task's own duration
  TaskId task;  // the task that decided; None with kNothing; itself with kOwnWork
  uint32_t edge = kNothing;
};

struct Timeline {
  std::vector<Instant> start, end;
  // Empty unless SimulateOptions::blockers.
  std::vector<Blocker> start_blocker, end_blocker;
  Duration makespan;  // latest end minus 0
};

}  // namespace daydream
