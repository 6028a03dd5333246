// Collectives and compute that share a GPU slow each other down: a collective holds processors and
// memory bandwidth that compute would have, and the other way round.
#pragma once

#include <vector>

#include "costmodel/network/fabric.h"
#include "transforms/core/editor.h"

namespace daydream {

// The stream with the most kernel time; None without kernels. O(tasks).
LaneId ComputeStream(const Graph& graph);

// What is left of both sides' rate while they run together: `overlap` of the fabric, else the
// processors that a collective leaves, 1 when neither is known.
double RateTogether(const Graph& graph, const Fabric& fabric);

// Gives the work on `compute` and the collectives on `exchange` the time that they take when both
// go at `rate` (0 to 1] of their speed while both run, step by step. Kernels begin as recorded, or
// later where one before them is longer now; what waits for the other side by an edge begins
// behind it; collectives of several streams run one after the other. What the work takes alone is
// kept in Graph::alone(). One pass: waits of the host are not in it. O(tasks + edges).
void ShareGpu(Editor& edit, LaneId compute, const std::vector<LaneId>& exchange, double rate);

// Takes all of that back, before the exchange is edited again. False: there was nothing.
bool UnshareGpu(Editor& edit);
// The same as ShareGpu() for the streams that transforms gave collectives, on the graph's fabric.
void ShareAgain(Editor& edit);

}  // namespace daydream
