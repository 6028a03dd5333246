// One half of a before/after picture.
#pragma once

#include <string>

#include "graph/graph.h"
#include "simulator/timeline.h"

namespace daydream {

struct Side {
  std::string name;         // "before: replayed", "after: amp + fuse"
  std::string description;  // "simulated, not measured"
  const Graph* graph = nullptr;
  const Timeline* timeline = nullptr;  // with blockers, for the critical path
  bool edited = false;                 // some of it was never recorded
};

}  // namespace daydream
