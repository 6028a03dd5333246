// Rule P: a trace that is a plan (Provenance::planned) says itself what depends on what. Its rows
// are tasks, its dependencies are edges, and nothing is concluded from times, which follow from
// both.
#include <algorithm>
#include <numeric>
#include <tuple>

#include "graph/builder.h"

namespace daydream {
namespace {

// Each row of a thread, with a scope of its own: that is where layers and phases are read from.
void AddPlannedHosts(Builder& b, std::vector<TaskId>& task_of) {
  const Trace& t = b.trace;
  for (size_t lane = 0; lane < t.lanes.size(); ++lane) {
    if (t.lanes[lane].kind == LaneKind::kStream) continue;
    std::vector<uint32_t> rows(t.lane_begin[lane + 1] - t.lane_begin[lane]);
    std::iota(rows.begin(), rows.end(), t.lane_begin[lane]);
    // What takes no time comes before what begins where it ends.
    std::sort(rows.begin(), rows.end(), [&](uint32_t x, uint32_t y) {
      return std::tuple(t.start[x], t.End(x), x) < std::tuple(t.start[y], t.End(y), y);
    });
    for (uint32_t row : rows) {
      const ScopeId scope(b.tables->scopes.size());
      b.tables->scopes.push_back({.name = t.name[row],
                                  .parent = ScopeId::None(),
                                  .kind = EventKind::kOp,
                                  .lane = LaneId(lane),
                                  .begin = t.start[row],
                                  .end = t.End(row)});
      task_of[row] = b.Append({.kind = TaskKind::kHost,
                               .name = t.name[row],
                               .lane = LaneId(lane),
                               .scope = scope,
                               .event = row,
                               .duration = t.duration[row]},
                              t.start[row], t.End(row));
    }
  }
}

Rule RuleOf(TaskKind from, TaskKind to) {
  if (IsGpu(from)) return IsGpu(to) ? Rule::kEventWait : Rule::kHostWait;
  return IsGpu(to) ? Rule::kLaunch : Rule::kHandOff;
}

}  // namespace

void AddPlan(Builder& b) {
  std::vector<TaskId> task_of(b.trace.rows());
  AddPlannedHosts(b, task_of);
  AddStreams(b);
  for (const GpuOp& op : b.ops) task_of[op.row] = op.task;
  uint64_t launched = 0;
  std::vector<TaskId> launch(b.graph.size());  // by GPU task
  for (const DataDependency& d : b.trace.dependencies) {
    const TaskId from = task_of[d.producer], to = task_of[d.consumer];
    if (!from.valid() || !to.valid()) continue;
    const Task &before = b.graph.task(from), &after = b.graph.task(to);
    // The order of a lane needs no edge.
    if (before.lane == after.lane && before.lane_next == to) continue;
    const Rule rule = RuleOf(before.kind, after.kind);
    b.AddEdge(from, to, Duration{}, rule);
    b.report.handoffs += rule == Rule::kHandOff && before.lane != after.lane;
    b.report.event_waits += rule == Rule::kEventWait && before.lane != after.lane;
    b.report.blocking_calls += rule == Rule::kHostWait;
    if (rule != Rule::kLaunch) continue;
    // Of several, the last one launched it; the others made its arguments.
    launched += !launch[to.index()].valid();
    if (launch[to.index()].valid() && b.Start(from) < b.Start(launch[to.index()])) continue;
    launch[to.index()] = from;
    b.graph.mutable_task(to).scope = before.scope;
  }
  b.report.launched = launched;
}

}  // namespace daydream
