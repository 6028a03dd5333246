// Whether a replay and the windows of its steps see a difference between two graphs, other than
// what tasks take.
#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace daydream {

bool SameShape(const Graph& a, const Graph& b);  // all but tasks; O(edges)
bool SamePlace(const Task& x, const Task& y);

// A number, not 0, that graphs of one shape, with all tasks in the same places, have in common: two
// others have the same one by chance only, once in 2^63 pairs. O(tasks + edges).
uint64_t NumberOfShape(const Graph& graph);

}  // namespace daydream
