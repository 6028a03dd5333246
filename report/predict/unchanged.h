// A scenario that changes nothing, as `speedup(kernel:.,by=1)`: its answer is that of the baseline.
#pragma once

#include "graph/graph.h"
#include "report/predict/what_if.h"

namespace daydream {

// Whether both have the same tasks and edges with the same times, so that every replay is the same.
// REQUIRES: where `b` has a structure(), `a` is as the graph that was named. O(retimed()) then,
// else O(tasks + edges).
bool PlaysAlike(const Graph& a, const Graph& b);

// The step is known as well as that of `baseline`, and the speed-up is 1 and nothing else.
void AnswerAs(const Prediction& baseline, Prediction& p);

}  // namespace daydream
