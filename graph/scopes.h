// The named ranges around a place in the program, innermost first:
//
//   for (ScopeId s : ScopesAround(graph, task.scope)) ...
//
// and the layers around a layer in the same way. Both walk the parents that the file gave, so they
// end after kDeepest steps: ranges of a program nest a handful deep, and a file may claim a circle.
#pragma once

#include <cstddef>
#include <span>

#include "graph/graph.h"

namespace daydream {

template <class Row, class RowId>
class Ancestry {
 public:
  static constexpr int kDeepest = 64;

  class Iterator {
   public:
    Iterator(std::span<const Row> rows, RowId at) : rows_(rows), at_(at) {}
    RowId operator*() const { return at_; }
    Iterator& operator++() {
      at_ = rows_[at_.index()].parent;
      ++steps_;
      return *this;
    }
    // Only ever compared with the end.
    bool operator!=(const Iterator&) const {
      return steps_ < kDeepest && at_.index() < rows_.size();
    }

   private:
    std::span<const Row> rows_;
    RowId at_;
    int steps_ = 0;
  };

  Ancestry(std::span<const Row> rows, RowId innermost) : rows_(rows), innermost_(innermost) {}
  Iterator begin() const { return {rows_, innermost_}; }
  Iterator end() const { return {rows_, RowId::None()}; }

 private:
  std::span<const Row> rows_;
  RowId innermost_;
};

inline Ancestry<Scope, ScopeId> ScopesAround(const Graph& graph, ScopeId innermost) {
  return {graph.tables().scopes, innermost};
}
inline Ancestry<Layer, LayerId> LayersAround(const Graph& graph, LayerId innermost) {
  return {graph.layers(), innermost};
}

// REQUIRES: `s` is a row of the graph's scopes, as those of ScopesAround() are.
inline const Scope& ScopeAt(const Graph& graph, ScopeId s) {
  return graph.tables().scopes[s.index()];
}

// Ops of the framework nest; this is the one that the program called. None outside of ops.
inline ScopeId OutermostOp(const Graph& graph, ScopeId innermost) {
  ScopeId outermost;
  for (ScopeId s : ScopesAround(graph, innermost)) {
    if (ScopeAt(graph, s).kind == EventKind::kOp) outermost = s;
  }
  return outermost;
}

}  // namespace daydream
