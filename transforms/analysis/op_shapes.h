// Recorded shapes of the op around a kernel, as plain sizes.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/fusion.h"
#include "costmodel/kernel_class.h"
#include "graph/graph.h"
#include "transforms/analysis/ops_around.h"

namespace daydream {

// Shapes of tensors, as ops that are equal have them in common: copies are cheap.
class SharedDims {
 public:
  SharedDims() = default;
  explicit SharedDims(std::vector<Dims> dims)
      : all_(std::make_shared<const std::vector<Dims>>(std::move(dims))) {}
  // They are a list, in all but who holds it.
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator const std::vector<Dims>&() const { return all(); }
  size_t size() const { return all().size(); }
  bool empty() const { return all().empty(); }
  const Dims& operator[](size_t i) const { return all()[i]; }
  const Dims& front() const { return all().front(); }
  auto begin() const { return all().begin(); }
  auto end() const { return all().end(); }

 private:
  const std::vector<Dims>& all() const {
    static const std::vector<Dims>& none = *new std::vector<Dims>();
    return all_ != nullptr ? *all_ : none;
  }
  std::shared_ptr<const std::vector<Dims>> all_;
};

struct OpShape {
  ScopeId scope;  // the innermost op with recorded shapes; None without
  DType dtype = DType::kUnknown;
  std::string_view name;  // "mul", without "aten::" and a trailing underscore
  SharedDims inputs;      // tensors only
  double largest = 0;     // elements of the largest of them

  bool known() const { return largest > 0; }
};

double ElementsOf(const Dims& dims);

// Answers are kept by scope: those that the recording gives for all copies of the graph.
class OpShapes {
 public:
  explicit OpShapes(const Graph& graph);
  // Amortised O(1).
  OpShape Of(TaskId t);

 private:
  const Graph& graph_;
  std::shared_ptr<const OpsAround<OpShape>> recorded_;
  std::unique_ptr<OpsAround<OpShape>> reshaped_;  // once ops have other shapes than recorded
};

// Gives the scope's op other sizes; `inputs` as in OpShape, without those that are empty.
// REQUIRES: OpOf(scope) has shapes.
void SetInputs(Graph& graph, ScopeId scope, const std::vector<Dims>& inputs);

// How one op with these shapes takes part in a fusion; a barrier when its sizes are not known.
FusionNode NodeOf(const OpShape& shape, KernelClass kind);

}  // namespace daydream
