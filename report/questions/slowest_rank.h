// What it costs that ranks of one program differ in speed: collectives wait for the slowest.
#pragma once

#include <optional>

#include "graph/graph.h"

namespace daydream {

// How many times as long the step of `ranks` gets whose own work differs by `sd` (relative standard
// deviation), against ranks that are alike, in the mean: 64 draws for few ranks to 4 for many. Of
// each draw the slowest rank is played, which stands for all of them exactly; what draws add is
// scaled by how slow the slowest of so many is in the mean, against the slowest ones drawn. Nothing
// where lanes may reorder. O((tasks + ranks) x draws).
std::optional<double> SlowestOf(const Graph& graph, int ranks, double sd);

}  // namespace daydream
