#include "transforms/analysis/kernel_table.h"

#include "graph/facts.h"

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

}  // namespace daydream
