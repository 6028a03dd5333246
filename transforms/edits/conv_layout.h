// Tensor cores multiply convolutions whose data has its channels last. Where it has them first, the
// library brings operands into that order and results back, by kernels of its own.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "transforms/analysis/op_work.h"
#include "transforms/core/editor.h"

namespace daydream {

// nchwToNhwcKernel and nhwcToNchwKernel of cuDNN, batched_transpose of MIOpen.
bool IsLayoutChange(std::string_view kernel);
// Convolutions that read channels last.
bool IsChannelsLast(std::string_view kernel);

struct LayoutChange {
  TaskId at;            // kernel of the convolution
  bool after = false;   // of its result, else of an operand
  double elements = 0;  // read and written
};

// What the convolutions of `kernels` need on tensor cores in 16 bit and do not have in the
// recording; nothing where their shapes were not recorded. Those with a window of 1 and a plane of
// a multiple of 8 positions are plain products of what is there (16 bytes, the alignment of tensor
// cores). The result of a forward convolution and the gradient of a weight are left out: many
// kernels write the order that is wanted. A trace with channels last everywhere needs nothing.
// O(tasks).
std::vector<LayoutChange> MissingLayoutChanges(const Graph& graph, OpWorkTable& works,
                                               std::span<const TaskId> kernels);

// A kernel and a launch for each: `bytes` for an element, each way, on the GPU that it runs on, and
// `floor` at least: the parameter of that name, where ends are asked for.
void AddLayoutChanges(Editor& edit, std::span<const LayoutChange> changes, double bytes,
                      Duration floor);

}  // namespace daydream
