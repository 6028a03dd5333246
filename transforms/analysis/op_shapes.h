// Recorded shapes of the op around a kernel, as plain sizes.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "costmodel/fusion.h"
#include "costmodel/kernel_class.h"
#include "graph/graph.h"

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

// Answers are kept by scope. Valid while the graph's tables live.
class OpShapes {
 public:
  explicit OpShapes(const Graph& graph) : graph_(graph) {}
  // Amortised O(1).
  const OpShape& Of(TaskId t);

 private:
  const Graph& graph_;
  absl::flat_hash_map<ScopeId, std::unique_ptr<OpShape>> shapes_;
};

// Gives the scope's op other sizes; `inputs` as in OpShape, without those that are empty.
// REQUIRES: OpOf(scope) has shapes.
void SetInputs(Graph& graph, ScopeId scope, const std::vector<Dims>& inputs);

// What the kernels of a graph are; each name is classified once.
class KernelClasses {
 public:
  explicit KernelClasses(const Graph& graph) : graph_(graph) {}
  KernelClass Of(TaskId t) {
    const NameId name = graph_.task(t).name;
    auto [it, inserted] = classes_.try_emplace(name, KernelClass::kOther);
    if (inserted) it->second = ClassifyKernel(graph_.Name(name)).kind;
    return it->second;
  }

 private:
  const Graph& graph_;
  absl::flat_hash_map<NameId, KernelClass> classes_;
};

// How one op with these shapes takes part in a fusion; a barrier when its sizes are not known.
FusionNode NodeOf(const OpShape& shape, KernelClass kind);

}  // namespace daydream
