#include "report/host_table.h"

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "graph/scopes.h"
#include "report/windows.h"
#include "simulator/critical_path.h"

namespace daydream {
namespace {

// "ProfilerStep#12" and "iteration 3" without their number.
std::string_view WithoutNumber(std::string_view name) {
  size_t end = name.size();
  while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') --end;
  if (end == name.size() || end == 0) return name;
  if (name[end - 1] == '#' || name[end - 1] == ' ') return name.substr(0, end - 1);
  return name;
}

class Rows {
 public:
  Rows(const Graph& graph, const Timeline& timeline) : graph_(graph), timeline_(timeline) {}

  std::vector<HostRow> Run() {
    const std::vector<Window> windows = CountedWindows(graph_, timeline_);
    const std::vector<size_t> counted = CountedSteps(graph_);
    counts_.assign(std::max<size_t>(graph_.steps().size(), 1), counted.empty());
    for (size_t s : counted) counts_[s] = true;
    for (size_t i = 0; i < graph_.size(); ++i) AddTask(TaskId(i));
    const auto path = PathOfSteps(graph_, timeline_, windows);
    ForEachClipped(path, windows, [&](const PathSegment& s, Duration d) {
      if (!s.task.valid() || !IsHost(graph_.task(s.task).kind)) return;
      if (s.lag && s.rule != Rule::kLaneOrder) return;  // hardware latency
      RowOf(s.lag ? NameOfGap(graph_, s.task) : NameOfWork(graph_, s.task)).path += d;
    });
    std::vector<HostRow> out;
    const auto steps = static_cast<int64_t>(std::max<size_t>(windows.size(), 1));
    for (auto& [what, row] : rows_) {
      row.what = what;
      for (Duration* d : {&row.self, &row.waiting, &row.total, &row.path}) *d = *d / steps;
      row.calls /= static_cast<double>(steps);
      out.push_back(std::move(row));
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const HostRow& a, const HostRow& b) { return a.self > b.self; });
    return out;
  }

 private:
  HostRow& RowOf(const HostName& what) { return rows_[what]; }

  void AddTask(TaskId id) {
    const Task& task = graph_.task(id);
    if (task.removed || !IsHost(task.kind)) return;
    if (task.step >= counts_.size() || !counts_[task.step]) return;
    const Duration elapsed = timeline_.end[id.index()] - timeline_.start[id.index()];
    const Duration waiting = std::max(elapsed - task.duration, Duration{});
    const HostName own = NameOfWork(graph_, id), gap = NameOfGap(graph_, id);
    HostRow& row = RowOf(own);
    row.self += task.duration;
    row.waiting += waiting;
    if (task.kind == TaskKind::kCall) row.calls += 1;
    RowOf(gap).self += task.gap;
    AddTotals(task, own, elapsed, task.gap);
  }

  // To every name around the task, once, however often it is there.
  void AddTotals(const Task& task, const HostName& own, Duration elapsed, Duration gap) {
    around_.clear();
    if (own.kind == HostKind::kCall || own.kind == HostKind::kOutside) {
      around_.push_back(own);
      RowOf(own).total += elapsed + (own.kind == HostKind::kOutside ? gap : Duration{});
    }
    bool gap_is_inside = false;  // the gap is time of the innermost scope that is no operator
    for (ScopeId id : ScopesAround(graph_, task.scope)) {
      gap_is_inside |= ScopeAt(graph_, id).kind != EventKind::kOp;
      const HostName name = NameOfScope(graph_, id);
      if (seen_.insert(id).second) RowOf(name).calls += 1;
      if (std::find(around_.begin(), around_.end(), name) != around_.end()) continue;
      around_.push_back(name);
      RowOf(name).total += elapsed + (gap_is_inside ? gap : Duration{});
    }
    if (!gap_is_inside && own.kind != HostKind::kOutside) RowOf(HostName{}).total += gap;
  }

  const Graph& graph_;
  const Timeline& timeline_;
  std::vector<bool> counts_;
  std::map<HostName, HostRow> rows_;
  absl::flat_hash_set<ScopeId> seen_;
  std::vector<HostName> around_;
};

}  // namespace

std::string_view Name(HostKind kind) {
  constexpr std::string_view kNames[] = {"op", "call", "range", "function", "outside"};
  static_assert(std::size(kNames) == static_cast<size_t>(HostKind::kOutside) + 1);
  return kNames[static_cast<size_t>(kind)];
}

HostName NameOfScope(const Graph& graph, ScopeId id) {
  const std::vector<Scope>& scopes = graph.tables().scopes;
  if (id.index() >= scopes.size()) return {};
  const Scope& scope = scopes[id.index()];
  const std::string_view name = graph.Name(scope.name);
  if (scope.kind == EventKind::kOp) return {HostKind::kOp, std::string(name)};
  if (scope.kind == EventKind::kFrame) return {HostKind::kFunction, std::string(name)};
  return {HostKind::kRange, std::string(WithoutNumber(name))};
}

HostName NameOfWork(const Graph& graph, TaskId id) {
  const Task& task = graph.task(id);
  if (task.kind != TaskKind::kHost) return {HostKind::kCall, std::string(graph.Name(task.name))};
  return NameOfScope(graph, task.scope);
}

HostName NameOfGap(const Graph& graph, TaskId id) {
  ScopeId found;
  for (ScopeId s : ScopesAround(graph, graph.task(id).scope)) {
    if (ScopeAt(graph, s).kind == EventKind::kOp) continue;
    found = s;
    break;
  }
  return NameOfScope(graph, found);
}

std::vector<HostRow> HostTable(const Graph& graph, const Timeline& timeline) {
  return Rows(graph, timeline).Run();
}

}  // namespace daydream
