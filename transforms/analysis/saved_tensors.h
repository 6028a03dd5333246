// What the forward pass keeps for the backward pass, op by op, from shapes as they are by now: what
// transforms made of an op (OpChange in graph/model_changes.h) is in it.
//
// Which operand an op keeps is PyTorch's (tools/autograd/derivatives.yaml). A tensor that several
// ops keep is counted once. Which tensor an op reads is said by data dependencies, where the trace
// has them (transforms/analysis/data_flow.h); else its input is taken for the result of the op
// before it when that has as many elements, or for the latest tensor with as many.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "transforms/analysis/op_shapes.h"
#include "transforms/core/editor.h"

namespace daydream {

enum class Keeps : uint8_t {
  kNothing,
  kInput,      // convolutions, norms, GELU, pooling
  kOperands,   // products: all but weights
  kResult,     // ReLU, softmax, sigmoid
  kMask,       // dropout: a byte an element
  kAttention,  // fused attention: queries, keys, values and result
};
// `op` without "aten::" and a trailing underscore. `known`: set to whether the op was recognised.
Keeps KeptBy(std::string_view op, bool* known = nullptr);

// One op of a forward pass that ran on the GPU.
struct ForwardOp {
  OpShape shape;       // not known() without recorded shapes
  TaskId first, last;  // its kernels on one stream
  // First backward kernel of its layer on that stream, and its place in the order of the stream;
  // None without.
  TaskId backward;
  LayerId layer;
  uint16_t step = 0;
  uint16_t pass = 0;  // of the step: micro-batches of gradient accumulation
  uint16_t copy = 0;  // as of its tasks: another one where layers were repeated
  Keeps keeps = Keeps::kNothing;
  bool recognised = false;
  size_t backward_order = 0;
  double elements = 0;  // of the tensor it works on
  // Bytes that backward needs and that no op before keeps already; those of them that stay on the
  // GPU until backward.
  double needed = 0, kept = 0;
  // Rows of the ops that keep what backward needs of this one, where those did so first.
  std::vector<size_t> reads = {};
  double weights = 0;  // bytes of its parameters, told by their place among the inputs
  const OpChange* change = nullptr;  // of its scope; valid until the graph is edited
};

// Whether something is run backward on the GPU.
bool HasBackward(const Graph& graph);
// E0625 unless something is run backward, E0626 unless backward work can be told to belong to
// forward ops. `what`: name of the optimization.
absl::Status CheckTrained(std::string_view what, const Graph& graph,
                          std::span<const ForwardOp> ops);
// Elements of the tensor that an op works on: its first input that is no weight.
double WorkedOn(const OpShape& shape);

// E0627 unless some op has recorded shapes.
absl::Status CheckShapes(std::string_view what, std::span<const ForwardOp> ops);

// In the order of each stream, steps and passes in order. Only ops of a step that has a backward
// pass keep anything. O(tasks).
std::vector<ForwardOp> ForwardOps(const Graph& graph);

// Calls `each` with one of these after the other where nothing is run backward, so that no room is
// needed for all of them: nothing is kept then. Else false, and it is not called. O(tasks).
bool ForEachForwardOp(const Graph& graph, absl::FunctionRef<void(const ForwardOp&)> each);

}  // namespace daydream
