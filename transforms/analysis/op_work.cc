#include "transforms/analysis/op_work.h"

#include "graph/scopes.h"

namespace daydream {

OpWorkTable::Op OpWorkTable::Of(TaskId t) {
  const ScopeId start = graph_.task(t).scope;
  if (auto it = ops_.find(start); it != ops_.end()) return it->second;
  Op op;
  for (ScopeId s : ScopesAround(graph_, start)) {
    const Scope& scope = ScopeAt(graph_, s);
    if (scope.kind != EventKind::kOp) break;
    const OpDetail* detail = graph_.OpOf(s);
    if (detail != nullptr && detail->shapes.valid()) {
      std::optional<OpWork> work =
          WorkOf(graph_.Name(scope.name), graph_.Name(detail->shapes), graph_.Name(detail->types));
      if (work) {
        works_.push_back(std::make_unique<OpWork>(*std::move(work)));
        op = {s, works_.back().get()};
        break;
      }
    }
  }
  return ops_[start] = op;
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
