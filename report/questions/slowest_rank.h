// What it costs that ranks of one program differ in speed: collectives wait for the slowest.
#pragma once

#include <optional>

#include "graph/graph.h"

namespace daydream {

// How many times as long the step of `ranks` gets whose own work differs by `sd` (relative standard
// deviation), against ranks that are alike, in the mean: 64 draws for few ranks to 4 for many, each
// with all of them side by side; what they add is scaled by how slow the slowest of so many is in
// the mean, against the slowest ones drawn. Nothing for more than 16384 ranks, and where lanes may
// reorder. O(tasks x ranks x draws).
std::optional<double> SlowestOf(const Graph& graph, int ranks, double sd);

}  // namespace daydream
