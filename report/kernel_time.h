// The time of a step's kernels alone, collectives excluded: what can be compared where two
// recordings have other hosts or other numbers of ranks.
#pragma once

#include "report/what_if.h"

namespace daydream {

// Mean of the measured steps; of everything when none is measured. O(tasks).
Duration KernelTime(const Graph& graph);
// Of the kernels alone that take in `after`, a copy of `before`, what they were recorded with.
Duration UnchangedKernelTime(const Graph& before, const Graph& after);
// Kernel times step by step. They are as measured: no replay can be wrong about them.
ReplayCheck MeasuredKernelTimes(const Graph& graph);

}  // namespace daydream
