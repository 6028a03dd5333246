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

// What the tasks of a copy take less (negative) or more than those of `recorded`.
inline Duration RetimedBy(const Graph& recorded, const Graph& copy) {
  Duration by;
  ForEachRetimed(copy, [&](TaskId t) {
    const Task &was = recorded.task(t), &is = copy.task(t);
    by += is.duration - was.duration + (is.gap - was.gap);
  });
  return by;
}

}  // namespace daydream
