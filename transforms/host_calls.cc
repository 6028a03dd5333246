#include "transforms/host_calls.h"

#include <algorithm>
#include <vector>

#include "graph/call_kind.h"

namespace daydream {
namespace {

// Where a trace has no example: launch and asynchronous copy calls of traced PyTorch programs on
// A100 and V100 machines took 4 to 12 us, and an op around them about as much again.
constexpr Duration kLaunch = Duration::Us(6);
constexpr Duration kOp = Duration::Us(15);

Duration Median(std::vector<Duration>& values, Duration fallback) {
  if (values.empty()) return fallback;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

HostCosts MeasureHostCosts(const Graph& graph) {
  std::vector<Duration> launches, copies, ops;
  std::vector<TaskKind> launched(graph.size(), TaskKind::kHost);
  for (const Edge& e : graph.edges()) {
    if (e.rule == Rule::kLaunch) launched[e.from.index()] = graph.task(e.to).kind;
  }
  const std::vector<Scope>& scopes = graph.tables().scopes;
  for (const GraphLane& lane : graph.lanes()) {
    if (lane.lane.kind != LaneKind::kThread) continue;
    Duration since;  // host time in ops since the last launch ended
    bool counting = false;
    for (TaskId t = lane.first; t.valid(); t = graph.task(t).lane_next) {
      const Task& task = graph.task(t);
      if (task.removed) continue;
      bool program =
          task.scope.index() < scopes.size() && scopes[task.scope.index()].kind != EventKind::kOp;
      if (!program || task.kind == TaskKind::kCall) since += task.duration;
      TaskKind what = launched[t.index()];
      if (what == TaskKind::kKernel) {
        launches.push_back(task.duration);
        if (counting) ops.push_back(since);
      } else if (what == TaskKind::kMemcpy) {
        TaskId next = task.lane_next;
        bool waits = next.valid() && graph.task(next).kind == TaskKind::kWait;
        if (!waits) copies.push_back(task.duration);
      }
      if (what == TaskKind::kKernel) since = {}, counting = true;
    }
  }
  HostCosts costs;
  costs.measured = !launches.empty();
  costs.launch = Median(launches, kLaunch);
  costs.copy = Median(copies, costs.launch);
  costs.op = std::max(Median(ops, kOp), costs.launch);
  return costs;
}

bool IsGraphLaunch(const Graph& graph, const Task& call) {
  return ClassifyCall(graph.Name(call.name)) == CallKind::kGraphLaunch;
}

}  // namespace daydream
