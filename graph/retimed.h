// The tasks of a copy whose times were set.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace daydream {

// Calls `each` for each of Graph::retimed() once. O(tasks / 64 + retimed()).
template <class Each>
void ForEachRetimed(const Graph& graph, Each each) {
  std::vector<bool> seen(graph.size());
  for (TaskId t : graph.retimed()) {
    if (seen[t.index()]) continue;
    seen[t.index()] = true;
    each(t);
  }
}

}  // namespace daydream
