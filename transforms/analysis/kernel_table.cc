#include "transforms/analysis/kernel_table.h"

#include "graph/facts.h"
#include "graph/scopes.h"
#include "transforms/analysis/batch_sizes.h"

namespace daydream {

KernelTable::KernelTable(const Graph& graph)
    : graph_(graph), recorded_(FactOfTables<RowFacts<NameId, KernelTraits>>(graph, [&] {
        return RowFacts<NameId, KernelTraits>(graph.tables().names->size());
      })) {}

const KernelTraits& KernelTable::Of(NameId kernel) {
  if (recorded_->Has(kernel)) {
    return recorded_->Of(kernel, [&] { return ClassifyKernel(graph_.Name(kernel)); });
  }
  std::unique_ptr<KernelTraits>& traits = added_[kernel];
  if (traits == nullptr) {
    traits = std::make_unique<KernelTraits>(ClassifyKernel(graph_.Name(kernel)));
  }
  return *traits;
}

bool IsOfConvolution(const Graph& graph, TaskId t, KernelClass kind) {
  if (kind == KernelClass::kConv) return true;
  for (ScopeId s : ScopesAround(graph, graph.task(t).scope)) {
    const Scope& scope = ScopeAt(graph, s);
    if (scope.kind == EventKind::kOp && IsConvolution(graph.Name(scope.name))) return true;
  }
  return false;
}

}  // namespace daydream
