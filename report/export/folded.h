// Stacks with their time, one a line, as flamegraph.pl, inferno and speedscope read them:
//
//   CPU;thread 1 (main);ProfilerStep;aten::linear;aten::addmm;cudaLaunchKernel 48210
//   GPU;stream 7 of GPU 0;forward;encoder;encoder.0;aten::addmm;sgemm_128x64 910422
//
// The format is that of github.com/brendangregg/FlameGraph: frames from the outside in with ';'
// between them, a space, a count.
#pragma once

#include <string>

#include "graph/graph.h"
#include "simulator/timeline.h"

namespace daydream {

// Times are nanoseconds of one step: means over the counted steps (report/windows.h), rounded; what
// rounds to 0 is left out. Lines are sorted by their text.
//
// CPU: per thread the ranges, operators and functions around the work, then the call. Time that a
// call only waits is a frame of its own, "(waits)". Idle threads have no line. GPU: per stream the
// phase, the layers from the outside in, the operators and the kernel, copy or collective.
//
// ';' in a name becomes ':', hidden characters become '?'. O(tasks x depth of scopes).
std::string FoldedStacks(const Graph& graph, const Timeline& timeline);

}  // namespace daydream
