// How near each class of kernels comes to the data sheet of its GPU.
#pragma once

#include <string>

#include "graph/graph.h"

namespace daydream {

// {"device", "memory_gb_per_s", "tflops": {"fp32": ...}, "time_ns", "known_time_ns", "classes"};
// null when no GPU is known. A class has "name", "format", "kernels", "time_ns", "flops" and
// "bytes" of the kernels whose op has recorded shapes (transforms/analysis/op_work.h), in all
// steps: FLOP/s is flops / time, and bytes count each operand once. An op's work is shared out to
// its kernels by their times. "time_ns" is that of all kernels. "format" is that in which matrix
// kernels multiply,
// "" for other classes. O(tasks).
std::string RooflineJson(const Graph& graph);

}  // namespace daydream
