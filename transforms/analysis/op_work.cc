#include "transforms/analysis/op_work.h"

#include <utility>

#include "graph/facts.h"
#include "graph/scopes.h"
#include "transforms/analysis/ops_around.h"

namespace daydream {

// What scopes do; works of equal ops are found once. Several threads may ask.
class OpWorkTable::Known {
 public:
  explicit Known(const Graph& graph) : ops_(graph.tables().scopes.size()) {}

  Op Around(const Graph& graph, ScopeId start) const {
    const auto found = ops_.Of(graph, start, [&](NameId name, const OpDetail& op) {
      auto work = WorkOf(graph.Name(name), graph.Name(op.shapes), graph.Name(op.types));
      return work ? std::make_unique<const OpWork>(*std::move(work)) : nullptr;
    });
    return {found.scope, found.fact};
  }

 private:
  OpsAround<OpWork> ops_;
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
  times_.assign(graph_.tables().scopes.size(), {});
  for (size_t i = 0; i < graph_.size(); ++i) {
    TaskId t(i);
    const Task& task = graph_.task(t);
    if (task.removed || task.kind != TaskKind::kKernel || !counts(t)) continue;
    if (Op op = Of(t); op.work != nullptr) times_[op.scope.index()] += task.duration;
  }
}

Duration OpWorkTable::TimeOf(ScopeId scope) const {
  return scope.index() < times_.size() ? times_[scope.index()] : Duration{};
}

}  // namespace daydream
