// Whose results an op reads, where the trace says so: by data dependencies between ops (`--et`,
// NVTX ranges with their producers). Views, allocations and other ops without GPU work hand on what
// they read.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/graph.h"

namespace daydream {

// Valid while the graph's tables live.
class DataFlow {
 public:
  // O(tasks + scopes + dependencies); nothing without dependencies.
  explicit DataFlow(const Graph& graph);

  bool empty() const { return reads_.empty(); }
  // Ops with GPU work whose results `op` reads, each once; empty: none is known. Looks at a bounded
  // part of odd traces. Valid until the next call. Amortised O(result).
  const std::vector<ScopeId>& Sources(ScopeId op);
  // `later` reads what `earlier`, or an op inside of it or around it, has made.
  bool Reads(ScopeId later, ScopeId earlier);

 private:
  void MarkWork();
  void MapRows();
  bool Contains(ScopeId outer, ScopeId inner) const;
  // The op that made what `writer` wrote, as `reader` sees it; None: it handed it on.
  ScopeId MakerOf(ScopeId writer, ScopeId reader) const;

  const Graph& graph_;
  std::vector<bool> works_;  // by scope: something in it ran on the GPU
  absl::flat_hash_map<ScopeId, std::vector<ScopeId>> reads_;    // as recorded
  absl::flat_hash_map<ScopeId, std::vector<ScopeId>> sources_;  // answers so far
};

}  // namespace daydream
