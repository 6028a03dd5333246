// What an edit of a graph can save at the most.
#pragma once

#include "base/time.h"
#include "graph/graph.h"

namespace daydream {

// By how much a step of `after`, an edited copy of `before`, can be shorter, also where other work
// of both takes another time: by all that the edit takes away from tasks and lags of all steps, as
// a mean over the counted ones, whose windows may begin and end with any of it. What it adds, and
// edges that come, make no path shorter. Duration::Max() where an order or a wait is gone, which
// may have held up anything. Queue edges count as new: a place behind more work is free no
// earlier. O(tasks + edges).
Duration MostSaved(const Graph& before, const Graph& after);

}  // namespace daydream
