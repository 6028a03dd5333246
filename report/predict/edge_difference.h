// Which edges of a graph an edited copy has no more, or has otherwise.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "graph/graph.h"

namespace daydream {

struct KeyedEdge {
  using Key = std::tuple<uint32_t, uint32_t, Rule, Anchor, Anchor>;
  Key key;  // all but the lag
  int64_t lag;
  size_t index;
  bool operator<(const KeyedEdge& o) const { return std::tie(key, lag) < std::tie(o.key, o.lag); }
};

// Edges of two graphs that differ, each list sorted.
struct EdgeDifference {
  std::vector<KeyedEdge> before, after;
};
// O(edges), where edits dropped few together.
EdgeDifference Differ(std::span<const Edge> before, std::span<const Edge> after);

}  // namespace daydream
