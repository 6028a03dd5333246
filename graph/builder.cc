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
  ReserveLarge(task_end, trace.rows() * 2);
  ReserveLarge(tables->scopes, trace.rows());

  call_kind.assign(trace.names->size(), CallKind::kOther);
  std::vector<bool> seen(trace.names->size(), false);
  uint32_t low = kNone, high = 0;
  for (size_t row = 0; row < trace.rows(); ++row) {
    if (trace.kind[row] == EventKind::kCall && !seen[trace.name[row].index()]) {
      seen[trace.name[row].index()] = true;
      call_kind[trace.name[row].index()] = ClassifyCall(trace.EventName(row));
    }
    // Ids far outside the rest do not size the table.
    uint32_t c = trace.correlation[row];
    if (c == 0) continue;
    low = std::min(low, c);
    high = std::max(high, c);
  }
  constexpr uint64_t kMinTable = 1u << 20;
  uint64_t limit = std::max<uint64_t>(kMinTable, uint64_t{64} * trace.rows());
  correlation_base_ = low == kNone ? 0 : low;
  size_t size = low == kNone ? 0 : std::min<uint64_t>(uint64_t{high} - low + 1, limit);
  call_of_correlation_.assign(size, TaskId::None());
  for (size_t row = 0; row < trace.rows(); ++row) {
    if (trace.kind[row] != EventKind::kSync || trace.detail[row] == kNone) continue;
    if (sync_of_correlation_.empty()) sync_of_correlation_.assign(size, kNone);
    uint64_t i = uint64_t{trace.correlation[row]} - correlation_base_;
    if (i < size) {
      sync_of_correlation_[i] = trace.detail[row];
    } else {
      far_syncs_[trace.correlation[row]] = trace.detail[row];
    }
  }
}

TaskId Builder::CallOf(uint32_t correlation) const {
  uint64_t i = uint64_t{correlation} - correlation_base_;
  if (correlation == 0) return TaskId::None();
  if (i < call_of_correlation_.size()) return call_of_correlation_[i];
  const auto far = far_calls_.find(correlation);
  return far == far_calls_.end() ? TaskId::None() : far->second;
}

void Builder::SetCallOf(uint32_t correlation, TaskId call) {
  uint64_t i = uint64_t{correlation} - correlation_base_;
  if (correlation == 0) return;
  if (i < call_of_correlation_.size()) {
    call_of_correlation_[i] = call;
  } else {
    far_calls_[correlation] = call;
  }
}

const SyncDetail* Builder::SyncOf(uint32_t correlation) const {
  uint64_t i = uint64_t{correlation} - correlation_base_;
  if (correlation == 0) return nullptr;
  uint32_t detail = kNone;
  if (i < sync_of_correlation_.size()) {
    detail = sync_of_correlation_[i];
  } else if (const auto far = far_syncs_.find(correlation); far != far_syncs_.end()) {
    detail = far->second;
  }
  return detail == kNone ? nullptr : &trace.syncs[detail];
}

CallKind Builder::KindOf(TaskId call) const {
  const Task& task = graph.task(call);
  return task.kind == TaskKind::kCall ? call_kind[task.name.index()] : CallKind::kOther;
}

TaskId Builder::Append(Task task, Instant begin, Instant end) {
  task.recorded_start = begin;
  TaskId t = graph.Append(task);
  task_end.push_back(end);
  return t;
}

TaskId Builder::InsertAfter(TaskId after, Task task, Instant begin, Instant end) {
  task.recorded_start = begin;
  TaskId t = graph.InsertAfter(after, task);
  task_end.push_back(end);
  return t;
}

TaskId Builder::InsertBefore(TaskId before, Task task, Instant begin, Instant end) {
  task.recorded_start = begin;
  TaskId t = graph.InsertBefore(before, task);
  task_end.push_back(end);
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
