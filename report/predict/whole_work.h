// What all tasks of an outcome together take, as rows of a sweep are put beside one another by it.
#pragma once

#include "graph/graph.h"
#include "report/predict/what_if.h"

namespace daydream {

// Of an edited copy of `recorded`. O(retimed()) where only times were set, else O(tasks + edges).
WholeWork WorkOf(const Graph& recorded, const Graph& outcome);

}  // namespace daydream
