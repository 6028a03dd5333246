#include "transforms/analysis/op_work.h"

#include <mutex>
#include <tuple>
#include <utility>

#include "graph/facts.h"
#include "graph/row_facts.h"
#include "graph/scopes.h"

namespace daydream {

// What scopes do; works of equal ops are found once. Several threads may ask.
class OpWorkTable::Known {
 public:
  explicit Known(const Graph& graph)
      : by_scope_(graph.tables().scopes.size()), works_(std::make_unique<Works>()) {}

  Op Around(const Graph& graph, ScopeId start) const {
    return by_scope_.Of(start, [&]() -> Op {
      for (ScopeId s : ScopesAround(graph, start)) {
        const Scope& scope = ScopeAt(graph, s);
        if (scope.kind != EventKind::kOp) break;
        const OpDetail* detail = graph.OpOf(s);
        if (detail == nullptr || !detail->shapes.valid()) continue;
        if (const OpWork* work = Of(graph, scope.name, *detail)) return {s, work};
      }
      return {};
    });
  }

 private:
  using Key = std::tuple<NameId, NameId, NameId>;  // the op's name, shapes and types
  struct Works {
    std::mutex mutex;
    absl::flat_hash_map<Key, std::unique_ptr<const OpWork>> known;  // null: not known
  };

  const OpWork* Of(const Graph& graph, NameId name, const OpDetail& op) const {
    std::lock_guard lock(works_->mutex);
    const auto [it, is_new] = works_->known.try_emplace({name, op.shapes, op.types});
    if (is_new) {
      auto work = WorkOf(graph.Name(name), graph.Name(op.shapes), graph.Name(op.types));
      if (work) it->second = std::make_unique<const OpWork>(*std::move(work));
    }
    return it->second.get();
  }

  RowFacts<ScopeId, Op> by_scope_;
  std::unique_ptr<Works> works_;
};

OpWorkTable::OpWorkTable(const Graph& graph)
    : graph_(graph), recorded_(FactOfTables<Known>(graph, [&] { return Known(graph); })) {}
OpWorkTable::~OpWorkTable() = default;

OpWorkTable::Op OpWorkTable::Of(TaskId t) {
  const ScopeId scope = graph_.task(t).scope;
  if (!graph_.reshaped()) return recorded_->Around(graph_, scope);
  if (reshaped_ == nullptr) reshaped_ = std::make_unique<Known>(graph_);
  return reshaped_->Around(graph_, scope);
}

bool OpWorkTable::HasNoWeight(TaskId t) {
  if (const OpWork* work = Of(t).work; work != nullptr) {
    return work->kind == OpWork::Kind::kGemm && work->products[0].batch > 1;
  }
  for (ScopeId s : ScopesAround(graph_, graph_.task(t).scope)) {
    const Scope& scope = ScopeAt(graph_, s);
    if (scope.kind != EventKind::kOp) break;
    const std::string_view name = graph_.Name(scope.name);
    if (name == "aten::bmm" || name == "aten::baddbmm") return true;
  }
  return false;
}

void OpWorkTable::SumTimes(const std::function<bool(TaskId)>& counts) {
  times_.clear();
  for (size_t i = 0; i < graph_.size(); ++i) {
    TaskId t(i);
    const Task& task = graph_.task(t);
    if (task.removed || task.kind != TaskKind::kKernel || !counts(t)) continue;
    if (Op op = Of(t); op.work != nullptr) times_[op.scope] += task.duration;
  }
}

Duration OpWorkTable::TimeOf(ScopeId scope) const {
  auto it = times_.find(scope);
  return it == times_.end() ? Duration{} : it->second;
}

}  // namespace daydream
