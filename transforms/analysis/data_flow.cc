#include "transforms/analysis/data_flow.h"

#include <algorithm>
#include <tuple>

#include "graph/scopes.h"

namespace daydream {
namespace {

// Bounds the work on traces that are made up: ops that hand on what others handed on.
constexpr size_t kMostHandedOn = 64;

void AddOnce(std::vector<ScopeId>& to, ScopeId scope) {
  if (std::find(to.begin(), to.end(), scope) == to.end()) to.push_back(scope);
}

}  // namespace

DataFlow::DataFlow(const Graph& graph) : graph_(graph) {
  const Trace* trace = graph.tables().trace.get();
  if (trace == nullptr || trace->dependencies.empty()) return;
  MarkWork();
  MapRows();
}

void DataFlow::MarkWork() {
  works_.assign(graph_.tables().scopes.size(), false);
  for (const Task& task : graph_.tasks()) {
    if (!IsGpu(task.kind)) continue;
    for (ScopeId s : ScopesAround(graph_, task.scope)) works_[s.index()] = true;
  }
}

// Scopes know when they began and what they are called, not the row that they were.
void DataFlow::MapRows() {
  using Place = std::tuple<LaneId, int64_t, NameId>;
  absl::flat_hash_map<Place, ScopeId> ops;
  const std::vector<Scope>& scopes = graph_.tables().scopes;
  for (size_t i = 0; i < scopes.size(); ++i) {
    const Scope& s = scopes[i];
    if (s.kind == EventKind::kOp) ops.emplace(Place(s.lane, s.begin.ns, s.name), ScopeId(i));
  }
  const Trace& t = *graph_.tables().trace;
  const auto scope_of = [&](uint32_t row) {
    if (row >= t.rows() || t.kind[row] != EventKind::kOp) return ScopeId::None();
    const auto it = ops.find(Place(t.lane[row], t.start[row].ns, t.name[row]));
    return it == ops.end() ? ScopeId::None() : it->second;
  };
  for (const DataDependency& d : t.dependencies) {
    const ScopeId writer = scope_of(d.producer), reader = scope_of(d.consumer);
    if (writer.valid() && reader.valid() && writer != reader) reads_[reader].push_back(writer);
  }
}

bool DataFlow::Contains(ScopeId outer, ScopeId inner) const {
  for (ScopeId s : ScopesAround(graph_, inner)) {
    if (s == outer) return true;
  }
  return false;
}

ScopeId DataFlow::MakerOf(ScopeId writer, ScopeId reader) const {
  for (ScopeId s : ScopesAround(graph_, writer)) {
    if (ScopeAt(graph_, s).kind != EventKind::kOp || Contains(s, reader)) break;
    if (works_[s.index()]) return s;
  }
  return ScopeId::None();
}

const std::vector<ScopeId>& DataFlow::Sources(ScopeId op) {
  const auto [known, fresh] = sources_.try_emplace(op);
  if (!fresh || reads_.empty()) return known->second;
  std::vector<ScopeId> found, open = {op};
  for (size_t i = 0; i < std::min(open.size(), kMostHandedOn); ++i) {
    const auto read = reads_.find(open[i]);
    if (read == reads_.end()) continue;
    for (ScopeId writer : read->second) {
      const ScopeId maker = MakerOf(writer, op);
      AddOnce(maker.valid() ? found : open, maker.valid() ? maker : writer);
      if (open.size() + found.size() > 2 * kMostHandedOn) break;
    }
  }
  return sources_[op] = std::move(found);
}

bool DataFlow::Reads(ScopeId later, ScopeId earlier) {
  const std::vector<ScopeId>& from = Sources(later);
  return std::any_of(from.begin(), from.end(),
                     [&](ScopeId s) { return Contains(s, earlier) || Contains(earlier, s); });
}

}  // namespace daydream
