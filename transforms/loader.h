// Where the host waits for its data loader.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace daydream {

// Tells the tasks in which a training loop gets its next batch: those inside of ranges that are
// named after the loader ("enumerate(DataLoader)#...", "DataLoader.__next__").
class LoaderScopes {
 public:
  explicit LoaderScopes(const Graph& graph);

  // The outermost loader range around `scope`, or None.
  ScopeId Around(ScopeId scope) const;
  // True when the gap after `t` lies inside of the loader range too.
  bool OwnsGapOf(const Task& t) const;

 private:
  std::vector<ScopeId> around_;   // by scope
  std::vector<bool> owns_gap_;    // by scope: its innermost range that is no op is the loader's
};

}  // namespace daydream
