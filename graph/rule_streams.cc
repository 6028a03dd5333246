// Rules G1, G3 and L2, G2 (learning): GPU operations in the order of their streams, and the typical
// latencies of this trace.
//
// G1: the order of a stream is the order of starts. G3: an operation that starts while an earlier
// one of its stream still runs (branches of a CUDA graph, programmatic launch) may overlap it.
#include <algorithm>
#include <numeric>
#include <string_view>

#include "base/median.h"
#include "base/sort_runs.h"
#include "graph/builder.h"
#include "trace/range_names.h"

namespace daydream {
namespace {

constexpr Duration kLargestGap = Duration::Us(10);  // rule G2: longer rests have another cause
// Rule L2: 16 us is typical for the slowest GPUs measured (MI300X).
constexpr Duration kLargestLatency = Duration::Us(100);

TaskKind KindOfRow(const Trace& t, size_t row, std::vector<uint8_t>& collective_name) {
  switch (t.kind[row]) {
    case EventKind::kMemcpy:
      return TaskKind::kMemcpy;
    case EventKind::kMemset:
      return TaskKind::kMemset;
    default:
      break;
  }
  const uint32_t detail = t.kind[row] == EventKind::kKernel ? t.detail[row] : Builder::kNone;
  if (detail < t.kernels.size() && t.kernels[detail].collective < t.collectives.size()) {
    return TaskKind::kCollective;
  }
  uint8_t& c = collective_name[t.name[row].index()];
  if (c == 0) c = IsCollectiveKernel(t.EventName(row)) ? 2 : 1;
  return c == 2 ? TaskKind::kCollective : TaskKind::kKernel;
}

// Rows of GPU work by (start, end, row).
std::vector<uint32_t> RowsInOrder(const Trace& t) {
  std::vector<uint32_t> rows;
  rows.reserve(static_cast<size_t>(std::ranges::count_if(t.kind, IsGpuWork)));
  const auto before = [&](uint32_t x, uint32_t y) {
    if (t.start[x] != t.start[y]) return t.start[x] < t.start[y];
    return std::pair(t.duration[x], x) < std::pair(t.duration[y], y);
  };
  for (size_t lane = 0; lane < t.lanes.size(); ++lane) {
    if (t.lanes[lane].kind != LaneKind::kStream) continue;
    for (size_t row = t.lane_begin[lane]; row < t.lane_begin[lane + 1]; ++row) {
      if (IsGpuWork(t.kind[row])) rows.push_back(static_cast<uint32_t>(row));
    }
  }
  SortRuns(rows, before);
  return rows;
}

void CollectOps(Builder& b) {
  const Trace& t = b.trace;
  const std::vector<uint32_t> rows = RowsInOrder(t);
  b.ops.reserve(rows.size());
  for (uint32_t row : rows) {
    GpuOp op{.row = row, .lane = t.lane[row], .start = t.start[row], .end = t.End(row)};
    op.call = b.CallOf(t.correlation[row]);
    if (op.call.valid()) {
      op.call_start = b.Start(op.call);
      op.call_end = b.End(op.call);
      b.report.early += op.start + kClockSkew < op.call_start;
    }
    b.ops.push_back(op);
  }
}

// Marks operations whose call launched more than one, and the first of those on each stream.
void MarkGraphOps(Builder& b) {
  std::vector<uint32_t> count(b.graph.size(), 0);
  for (const GpuOp& op : b.ops) {
    if (op.call.valid()) ++count[op.call.index()];
  }
  std::vector<TaskId> last_call(b.trace.lanes.size());
  for (GpuOp& op : b.ops) {
    if (!op.call.valid()) continue;
    op.many = count[op.call.index()] > 1;
    op.first_of_call = last_call[op.lane.index()] != op.call;
    last_call[op.lane.index()] = op.call;
  }
}

}  // namespace

void AddStreams(Builder& b) {
  CollectOps(b);
  MarkGraphOps(b);
  b.stream_ops.resize(b.trace.lanes.size());
  std::vector<uint8_t> collective_name(b.trace.names->size(), 0);
  for (uint32_t i = 0; i < b.ops.size(); ++i) {
    GpuOp& op = b.ops[i];
    std::vector<uint32_t>& stream = b.stream_ops[op.lane.index()];
    if (!op.call.valid()) {
      // Launched before the window (or its call was not recorded): place it in launch order
      // where the stream order puts it.
      op.call_start = op.call_end =
          stream.empty() ? Instant::Min() : b.ops[stream.back()].call_start;
    } else if (!stream.empty()) {
      op.call_start = std::max(op.call_start, b.ops[stream.back()].call_start);
    }
    op.position = static_cast<uint32_t>(stream.size());
    Task task{.duration = op.end - op.start,
              .name = b.trace.name[op.row],
              .lane = op.lane,
              .event = op.row,
              .detail = b.trace.detail[op.row],
              .kind = KindOfRow(b.trace, op.row, collective_name)};
    if (op.call.valid()) task.scope = b.graph.task(op.call).scope;
    op.task = b.Append(task, op.start, op.end);
    stream.push_back(i);
  }
  b.report.gpu_tasks = b.ops.size();
  b.report.launched = static_cast<uint64_t>(
      std::count_if(b.ops.begin(), b.ops.end(), [](const GpuOp& o) { return o.call.valid(); }));
}

void LearnTypicalLags(Builder& b) {
  std::vector<Duration> latencies;
  int64_t sum[4][4] = {}, count[4][4] = {};
  for (const std::vector<uint32_t>& stream : b.stream_ops) {
    for (size_t i = 0; i < stream.size(); ++i) {
      const GpuOp& op = b.ops[stream[i]];
      if (!op.call.valid() || op.many) continue;
      const GpuOp* before = i == 0 ? nullptr : &b.ops[stream[i - 1]];
      if (before == nullptr || before->end <= op.call_start) {
        Duration latency = op.start - b.End(op.call);
        if (latency <= kLargestLatency) latencies.push_back(latency);
      } else if (b.End(op.call) <= before->end) {
        Duration gap = op.start - before->end;
        if (gap < Duration{} || gap > kLargestGap) continue;
        int from = static_cast<int>(CategoryOf(b.graph.task(before->task).kind));
        int to = static_cast<int>(CategoryOf(b.graph.task(op.task).kind));
        sum[from][to] += gap.ns;
        ++count[from][to];
      }
    }
  }
  // The lower median: with few values a long rest must not pass for a latency.
  b.typical.launch = latencies.empty() ? Duration{} : Ranked(latencies, (latencies.size() - 1) / 2);
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      // Category pairs that were never seen back to back borrow the mean of kernels.
      int64_t n = count[from][to], s = sum[from][to];
      if (n == 0) n = count[0][0], s = sum[0][0];
      b.typical.stream_gap[from][to] = Duration{n == 0 ? 0 : s / n};
    }
  }
}

}  // namespace daydream
