// Records that are lost, and records that contradict what a GPU and its calls can do, though each
// of them can be read: the same work twice, a kernel that a copy launched, operators that all begin
// at once.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "report/questions/findings.h"

namespace daydream {

// What is common (a tenth of the calls, a hundredth of the kernels; operators only where nine in
// ten share their begin) is damage: a file merged of two, written twice, or changed by a script.
// Fewer may be the rounding of a recorder. Empty for a graph without a trace. O(rows log rows).
std::vector<Finding> FindingsOfRecords(const Graph& graph);

}  // namespace daydream
