// The op around a place in the program that tells something: of the ops around it, the innermost
// whose name and recorded shapes do. What they tell is found once for ops that are equal, and which
// op it is takes twelve bytes a scope: a recording has as many scopes as ops, most of them equal.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/graph.h"
#include "graph/scopes.h"

namespace daydream {

template <class T>
class OpsAround {
 public:
  explicit OpsAround(size_t scopes)
      : facts_(scopes), ops_(scopes), known_(std::make_unique<Known>()) {}

  struct Found {
    ScopeId scope;            // the op that tells
    const T* fact = nullptr;  // null: none does. Valid as long as this is
  };
  // `tell(name, detail)`: what an op of that name with these shapes and types tells, as a
  // std::unique_ptr<const T>; null: nothing. Of a scope the first answer counts. Several threads
  // may ask. Amortised O(1).
  template <class Tell>
  Found Of(const Graph& graph, ScopeId start, Tell tell) const {
    if (start.index() >= facts_.size()) return {};
    std::atomic<const T*>& known = facts_[start.index()];
    std::atomic<uint32_t>& op = ops_[start.index()];
    const T* fact = known.load(std::memory_order_acquire);
    if (fact == nullptr) {
      const Found found = Find(graph, start, tell);
      op.store(found.scope.value, std::memory_order_relaxed);
      fact = found.fact != nullptr ? found.fact : &known_->nothing;
      known.store(fact, std::memory_order_release);
    }
    if (fact == &known_->nothing) return {};
    return {ScopeId(op.load(std::memory_order_relaxed)), fact};
  }

 private:
  using Key = std::tuple<NameId, NameId, NameId>;  // the op's name, shapes and types
  struct Known {
    std::mutex mutex;
    absl::flat_hash_map<Key, std::unique_ptr<const T>> facts;  // null: it tells nothing
    T nothing{};
  };

  template <class Tell>
  Found Find(const Graph& graph, ScopeId start, Tell tell) const {
    for (ScopeId s : ScopesAround(graph, start)) {
      const Scope& scope = ScopeAt(graph, s);
      if (scope.kind != EventKind::kOp) break;
      const OpDetail* detail = graph.OpOf(s);
      if (detail == nullptr || !detail->shapes.valid()) continue;
      std::lock_guard lock(known_->mutex);
      const auto [it, is_new] =
          known_->facts.try_emplace({scope.name, detail->shapes, detail->types});
      if (is_new) it->second = tell(scope.name, *detail);
      if (it->second != nullptr) return {s, it->second.get()};
    }
    return {};
  }

  mutable std::vector<std::atomic<const T*>> facts_;  // by scope; null: nobody asked
  mutable std::vector<std::atomic<uint32_t>> ops_;    // likewise, where that tells something
  std::unique_ptr<Known> known_;
};

}  // namespace daydream
