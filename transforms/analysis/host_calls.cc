#include "transforms/analysis/host_calls.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"

#include "base/median.h"
#include "graph/call_kind.h"
#include "graph/facts.h"
#include "graph/row_facts.h"
#include "graph/scopes.h"

namespace daydream {
namespace {

// Where a trace has no example: launch and asynchronous copy calls of traced PyTorch programs on
// A100 and V100 machines took 4 to 12 us, and an op around them about as much again.
constexpr Duration kLaunch = Duration::Us(6);
constexpr Duration kOp = Duration::Us(15);

Duration MedianOr(std::vector<Duration>& values, Duration fallback) {
  return values.empty() ? fallback : Median(values);
}

// Where each was seen only once, at most the fallback: the first launch of a kernel loads its code
// (CUDA C++ Programming Guide, Lazy Loading), and the op around it makes plans and allocates.
struct Samples {
  std::vector<Duration> first, later;
  Duration Typical(Duration fallback) {
    if (!later.empty()) return MedianOr(later, fallback);
    return std::min(MedianOr(first, fallback), fallback);
  }
};

HostCosts Measure(const Graph& graph) {
  Samples launches, ops;
  std::vector<Duration> copies;
  std::vector<TaskKind> launched(graph.size(), TaskKind::kHost);
  std::vector<NameId> kernel(graph.size());  // by call
  for (const Edge& e : graph.edges()) {
    if (e.rule != Rule::kLaunch) continue;
    launched[e.from.index()] = graph.task(e.to).kind;
    kernel[e.from.index()] = graph.task(e.to).name;
  }
  absl::flat_hash_set<NameId> seen;
  using Outermost = RowFacts<ScopeId, ScopeId>;
  const auto outermost =
      FactOfTables<Outermost>(graph, [&] { return Outermost(graph.tables().scopes.size()); });
  const std::vector<Scope>& scopes = graph.tables().scopes;
  for (const GraphLane& lane : graph.lanes()) {
    if (lane.lane.kind != LaneKind::kThread) continue;
    Duration since;  // host time in the op at hand since its last launch ended
    ScopeId op;      // the outermost
    bool counting = false;
    for (TaskId t = lane.first; t.valid(); t = graph.task(t).lane_next) {
      const Task& task = graph.task(t);
      if (task.removed) continue;
      const ScopeId here =
          outermost->Of(task.scope, [&] { return OutermostOp(graph, task.scope); });
      if (here != op) {
        since = {}, counting = true, op = here;
      }
      const TaskKind what = launched[t.index()];
      const bool program =
          task.scope.index() < scopes.size() && scopes[task.scope.index()].kind != EventKind::kOp;
      const bool work = task.kind == TaskKind::kHost && !program;
      if (work || what == TaskKind::kKernel) since += task.duration;
      if (what == TaskKind::kKernel) {
        const bool first = seen.insert(kernel[t.index()]).second;
        (first ? launches.first : launches.later).push_back(task.duration);
        if (counting) (first ? ops.first : ops.later).push_back(since);
      } else if (what == TaskKind::kMemcpy) {
        TaskId next = task.lane_next;
        bool waits = next.valid() && graph.task(next).kind == TaskKind::kWait;
        if (!waits) copies.push_back(task.duration);
      }
      if (what == TaskKind::kKernel) since = {}, counting = true;
    }
  }
  HostCosts costs;
  costs.measured = !launches.first.empty();
  costs.launch = launches.Typical(kLaunch);
  costs.copy = MedianOr(copies, costs.launch);
  costs.op = std::max(ops.Typical(kOp), costs.launch);
  return costs;
}

}  // namespace

HostCosts MeasureHostCosts(const Graph& graph) {
  return *FactOf<HostCosts>(graph, [&] { return Measure(graph); });
}

bool IsGraphLaunch(const Graph& graph, const Task& call) {
  return ClassifyCall(graph.Name(call.name)) == CallKind::kGraphLaunch;
}

RecordedLaunches FindLaunches(const Graph& graph) {
  RecordedLaunches found;
  for (const Edge& e : graph.edges()) {
    if (e.rule != Rule::kLaunch) continue;
    const Instant launch = graph.task(e.from).recorded_start;
    found.first = std::min(found.first.value_or(launch), launch);
    found.last = std::max(found.last.value_or(launch), launch);
  }
  return found;
}

std::vector<bool> WaitsForGpu(const Graph& graph) {
  std::vector<bool> waits(graph.size(), false);
  for (const Edge& e : graph.edges()) {
    if (e.rule == Rule::kHostWait) waits[e.to.index()] = true;
  }
  return waits;
}

}  // namespace daydream
