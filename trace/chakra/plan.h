// When nodes of a Chakra trace would run: it has durations and dependencies, no times.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"

namespace daydream {

struct PlannedNode {
  uint32_t lane = 0;
  Duration duration;
  Instant start;  // made by Plan()
};

// Nodes by number, and (before, after) pairs of them.
struct NodePlan {
  std::vector<PlannedNode> nodes;
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  // ---- made by Plan() ----
  std::vector<uint32_t> order;  // nodes as they start; what is before a node is before it here
  size_t dropped = 0;           // edges that closed a circle; they are gone from `edges`
};

// Each node starts as soon as what it depends on has ended and its lane is free; of several, the
// one that could start first, then the one with the lower number. O((nodes + edges) log).
void Plan(NodePlan& plan);

}  // namespace daydream
