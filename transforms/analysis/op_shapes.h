// Recorded shapes of the op around a kernel, as plain sizes.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "costmodel/fusion.h"
#include "costmodel/kernel_class.h"
#include "graph/graph.h"
#include "graph/row_facts.h"

namespace daydream {

struct OpShape {
  ScopeId scope;             // the innermost op with recorded shapes; None without
  std::string_view name;     // "mul", without "aten::" and a trailing underscore
  std::vector<Dims> inputs;  // tensors only
  double largest = 0;        // elements of the largest of them
  DType dtype = DType::kUnknown;

  bool known() const { return largest > 0; }
};

double ElementsOf(const Dims& dims);

// Answers are kept by scope: those that the recording gives for all copies of the graph.
class OpShapes {
 public:
  explicit OpShapes(const Graph& graph);
  // Amortised O(1). Valid as long as this is.
  const OpShape& Of(TaskId t);

 private:
  const Graph& graph_;
  std::shared_ptr<const RowFacts<ScopeId, OpShape>> recorded_;
  std::unique_ptr<RowFacts<ScopeId, OpShape>>
      reshaped_;  // once ops have other shapes than recorded
};

// Gives the scope's op other sizes; `inputs` as in OpShape, without those that are empty.
// REQUIRES: OpOf(scope) has shapes.
void SetInputs(Graph& graph, ScopeId scope, const std::vector<Dims>& inputs);

// How one op with these shapes takes part in a fusion; a barrier when its sizes are not known.
FusionNode NodeOf(const OpShape& shape, KernelClass kind);

}  // namespace daydream
