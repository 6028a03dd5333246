// The edges into each task.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "graph/facts.h"
#include "graph/graph.h"

namespace daydream {

// Indices into Graph::edges() by target task t: edge[begin[t] .. begin[t + 1]), in index order.
struct EdgesInto {
  // O(tasks + edges).
  explicit EdgesInto(const Graph& g) : begin(g.size() + 1), edge(g.edges().size()) {
    for (const Edge& e : g.edges()) ++begin[e.to.index()];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    // The ends of ranges; each goes down to its begin as edges find their places, the last first.
    for (size_t i = edge.size(); i-- > 0;) {
      edge[--begin[g.edges()[i].to.index()]] = static_cast<uint32_t>(i);
    }
  }
  // Found once for all graphs of a wiring(), and for those that share facts (graph/facts.h).
  static std::shared_ptr<const EdgesInto> Of(const Graph& g) {
    return FactOfWiring<EdgesInto>(g, [&] { return EdgesInto(g); });
  }
  std::vector<uint32_t> begin, edge;
};

}  // namespace daydream
