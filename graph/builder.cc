#include "graph/builder.h"

#include <algorithm>

#include "graph/large_pages.h"

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
  graph.Reserve(trace.rows() * 2, trace.rows() / 2);
  ReserveLarge(task_start, trace.rows() * 2);
  ReserveLarge(task_end, trace.rows() * 2);
  ReserveLarge(kind_of_task, trace.rows() * 2);
  ReserveLarge(tables->scopes, trace.rows());

  call_kind.assign(trace.names->size(), CallKind::kOther);
  std::vector<bool> seen(trace.names->size(), false);
  for (size_t row = 0; row < trace.rows(); ++row) {
    if (trace.kind[row] == EventKind::kCall && !seen[trace.name[row].index()]) {
      seen[trace.name[row].index()] = true;
      call_kind[trace.name[row].index()] = ClassifyCall(trace.EventName(row));
    }
    if (trace.kind[row] == EventKind::kSync && trace.detail[row] != kNone) {
      sync_of_correlation_.Set(trace.correlation[row], trace.detail[row]);
    }
  }
}

TaskId Builder::CallOf(uint32_t correlation) const {
  return correlation == 0 ? TaskId::None() : call_of_correlation_.Get(correlation);
}

void Builder::SetCallOf(uint32_t correlation, TaskId call) {
  if (correlation != 0) call_of_correlation_.Set(correlation, call);
}

const SyncDetail* Builder::SyncOf(uint32_t correlation) const {
  if (correlation == 0) return nullptr;
  const uint32_t detail = sync_of_correlation_.Get(correlation);
  return detail == kNone ? nullptr : &trace.syncs[detail];
}

void Builder::Note(const Task& task, Instant begin, Instant end) {
  task_start.push_back(begin);
  task_end.push_back(end);
  kind_of_task.push_back(task.kind == TaskKind::kCall ? call_kind[task.name.index()]
                                                      : CallKind::kOther);
}

void Builder::SetStart(TaskId t, Instant start) {
  task_start[t.index()] = start;
  graph.mutable_task(t).recorded_start = start;
}

TaskId Builder::Append(Task task, Instant begin, Instant end) {
  task.recorded_start = begin;
  TaskId t = graph.Append(task);
  Note(task, begin, end);
  return t;
}

TaskId Builder::InsertAfter(TaskId after, Task task, Instant begin, Instant end) {
  task.recorded_start = begin;
  TaskId t = graph.InsertAfter(after, task);
  Note(task, begin, end);
  return t;
}

TaskId Builder::InsertBefore(TaskId before, Task task, Instant begin, Instant end) {
  task.recorded_start = begin;
  TaskId t = graph.InsertBefore(before, task);
  Note(task, begin, end);
  return t;
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
  auto it = std::partition_point(stream.begin(), stream.end(),
                                 [&](uint32_t op) { return ops[op].call_start < t; });
  return it == stream.begin() ? kNone : *(it - 1);
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
