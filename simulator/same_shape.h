// Whether a replay and the windows of its steps see a difference between two graphs, other than
// what tasks take.
#pragma once

#include "graph/graph.h"

namespace daydream {

bool SameShape(const Graph& a, const Graph& b);  // all but tasks; O(edges)
bool SamePlace(const Task& x, const Task& y);

}  // namespace daydream
