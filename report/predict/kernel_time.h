// The time of a step's kernels alone, collectives excluded: what can be compared where two
// recordings have other hosts or other numbers of ranks.
#pragma once

#include <span>
#include <string>

#include "report/predict/what_if.h"

namespace daydream {

// Mean of the measured steps; of everything when none is measured. O(tasks).
Duration KernelTime(const Graph& graph);
// The same of LeastTimes() (report/predict/intervals.h).
Duration LeastKernelTime(const Graph& after, std::span<const Duration> least);
// Kernel times step by step. They are as measured: no replay can be wrong about them.
ReplayCheck MeasuredKernelTimes(const Graph& graph);
// What the last optimization, which made `after`, did to the kernels: one more of the causes of
// `p`.
void NoteKernelTime(const Graph& after, Duration recorded, const std::string& opt, Prediction& p);

}  // namespace daydream
