// What kernels are by their names: each recorded name is read once for all copies of a graph.
#pragma once

#include <memory>

#include "absl/container/flat_hash_map.h"
#include "costmodel/kernel_class.h"
#include "graph/graph.h"
#include "graph/row_facts.h"

namespace daydream {

class KernelTable {
 public:
  explicit KernelTable(const Graph& graph);
  // Amortised O(1).
  const KernelTraits& Of(NameId kernel);

 private:
  const Graph& graph_;
  std::shared_ptr<const RowFacts<NameId, KernelTraits>> recorded_;
  absl::flat_hash_map<NameId, std::unique_ptr<KernelTraits>> added_;  // names of this graph alone
};

// The same of tasks.
class KernelClasses {
 public:
  explicit KernelClasses(const Graph& graph) : graph_(graph), kernels_(graph) {}
  KernelClass Of(TaskId t) { return kernels_.Of(graph_.task(t).name).kind; }

 private:
  const Graph& graph_;
  KernelTable kernels_;
};

// Whether the kernel `t`, of this class, is a part of a convolution: kernels of matrix products run
// them, too, and then the op around tells. O(scopes around it).
bool IsOfConvolution(const Graph& graph, TaskId t, KernelClass kind);

}  // namespace daydream
