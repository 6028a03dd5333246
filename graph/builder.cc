#include "graph/builder.h"

#include <algorithm>

#include "graph/large_pages.h"
#include "graph/search_near.h"
#include "trace/rows/rows_of_kind.h"

namespace daydream {

Builder::Builder(std::shared_ptr<const Trace> t, const BuildOptions& o)
    : trace_owner(std::move(t)),
      trace(*trace_owner),
      options(o),
      tables(std::make_shared<GraphTables>(GraphTables{.trace = trace_owner,
                                                       .names = trace.names,
                                                       .kernels = trace.kernels,
                                                       .copies = trace.copies,
                                                       .ops = trace.ops,
                                                       .collectives = trace.collectives,
                                                       .scopes = {},
                                                       .devices = trace.devices})),
      graph(tables) {
  for (const Lane& lane : trace.lanes) graph.AddLane(GraphLane{.lane = lane});
  const size_t rows = trace.rows();
  graph.Reserve(rows * 2, rows);
  ReserveLarge(task_start, rows * 2);
  ReserveLarge(task_end, rows * 2);
  ReserveLarge(kind_of_task, rows * 2);
  ReserveLarge(next_on_lane, rows * 2);
  ReserveLarge(tables->scopes, rows);

  call_kind.assign(trace.names->size(), CallKind::kOther);
  calls_of_name.assign(trace.names->size(), 0);
  size_t call_rows = 0;
  for (size_t row = 0; row < rows; ++row) {
    if (trace.kind[row] != EventKind::kCall) continue;
    ++call_rows;
    if (calls_of_name[trace.name[row].index()]++ > 0) continue;
    const std::string_view name = trace.EventName(row);
    call_kind[trace.name[row].index()] = ClassifyCall(name);
    hip = hip || name.starts_with("hip");
  }
  ReserveLarge(calls, call_rows);
  for (size_t row : RowsOf(trace, EventKind::kSync)) {
    if (trace.detail[row] == kNone) continue;
    sync_of_correlation_.Set(trace.correlation[row], trace.detail[row]);
  }
}

const SyncDetail* Builder::SyncOf(uint32_t correlation) const {
  if (correlation == 0) return nullptr;
  const uint32_t detail = sync_of_correlation_.Get(correlation);
  return detail == kNone ? nullptr : &trace.syncs[detail];
}

void Builder::SetStart(TaskId t, Instant start) {
  task_start[t.index()] = start;
  graph.mutable_task(t).recorded_start = start;
}

TaskId Builder::InsertAfter(TaskId after, Task task, Instant begin, Instant end) {
  task.recorded_start = begin;
  Note(task, begin, end, after, next_on_lane[after.index()]);
  return graph.InsertAfter(after, task);
}

TaskId Builder::InsertBefore(TaskId before, Task task, Instant begin, Instant end) {
  task.recorded_start = begin;
  Note(task, begin, end, graph.task(before).lane_prev, before);
  return graph.InsertBefore(before, task);
}

void Builder::AddEdge(TaskId from, TaskId to, Duration lag, Rule rule, Anchor from_anchor,
                      Anchor to_anchor) {
  graph.AddEdge({.from = from,
                 .to = to,
                 .lag = lag,
                 .rule = rule,
                 .from_anchor = from_anchor,
                 .to_anchor = to_anchor});
}

uint32_t Builder::LastLaunchedBefore(LaneId lane, Instant t) const {
  const std::vector<uint32_t>& stream = stream_ops[lane.index()];
  if (asked_.size() < stream_ops.size()) asked_.resize(stream_ops.size());
  size_t& behind = asked_[lane.index()];
  behind = PartitionPointNear(stream.size(), behind,
                              [&](size_t i) { return ops[stream[i]].call_start < t; });
  return behind == 0 ? kNone : stream[behind - 1];
}

GpuCategory CategoryOf(TaskKind kind) {
  switch (kind) {
    case TaskKind::kMemcpy:
      return GpuCategory::kMemcpy;
    case TaskKind::kMemset:
      return GpuCategory::kMemset;
    case TaskKind::kCollective:
      return GpuCategory::kCollective;
    default:
      return GpuCategory::kKernel;
  }
}

}  // namespace daydream
