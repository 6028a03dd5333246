// Rules G1, G3 and L2, G2 (learning): GPU operations in the order of their streams, and the typical
// latencies of this trace.
//
// G1: the order of a stream is the order of starts. G3: an operation that starts while an earlier
// one of its stream still runs (branches of a CUDA graph, programmatic launch) may overlap it.
#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/median.h"
#include "base/sort_runs.h"
#include "graph/builder.h"
#include "graph/large_pages.h"
#include "graph/queue.h"
#include "trace/range_names.h"

namespace daydream {
namespace {

constexpr Duration kLargestGap = Duration::Us(10);  // rule G2: longer rests have another cause
// Rule L2: 16 us is typical for the slowest GPUs measured (MI300X).
constexpr Duration kLargestLatency = Duration::Us(100);
// Chosen. Of 27 recordings of others with ten such operations or more the least is 3 us behind its
// call. Of a host that is far ahead some are 120 ms behind, no two alike.
constexpr Duration kLateClock = Duration::Ms(1);
constexpr size_t kEnoughAtRest = 10;

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
  ReserveLarge(rows, static_cast<size_t>(std::ranges::count_if(t.kind, IsGpuWork)));
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

// What launched it, and what else that did.
void FindCall(Builder& b, uint32_t index) {
  GpuOp& op = b.ops[index];
  op.call_index = b.CallIndex(b.trace.correlation[op.row]);
  if (op.call_index == Builder::kNone) return;
  const HostCall& call = b.calls[op.call_index];
  op.call = call.task;
  op.call_start = call.start;
  op.call_end = call.end;
  b.report.early += op.start + kClockSkew < op.call_start;
  ++b.report.launched;
  OpsOfCall& all = b.ops_of_call[op.call_index];
  if (all.first == Builder::kNone) {
    all.first = index;
  } else {
    op.many = b.ops[all.first].many = true;
  }
  all.last = index;
}

// Its place in the order of launches on its stream.
void PlaceOnStream(Builder& b, uint32_t index) {
  GpuOp& op = b.ops[index];
  std::vector<uint32_t>& stream = b.stream_ops[op.lane.index()];
  const GpuOp* before = stream.empty() ? nullptr : &b.ops[stream.back()];
  if (!op.call.valid()) {
    // Launched before the window (or its call was not recorded): place it in launch order
    // where the stream order puts it.
    op.call_start = op.call_end = before == nullptr ? Instant::Min() : before->call_start;
  } else if (before != nullptr) {
    op.call_start = std::max(op.call_start, before->call_start);
  }
  op.position = static_cast<uint32_t>(stream.size());
  stream.push_back(index);
}

// BuildReport::late, by how long after its call each operation that found its stream at rest began.
Duration LateBy(std::vector<Duration> behind) {
  if (behind.size() < kEnoughAtRest) return {};
  const Duration least = std::ranges::min(behind);
  const bool alike = Median(std::move(behind)) - least <= kLargestLatency;
  return alike && least >= kLateClock ? least : Duration{};
}

}  // namespace

void AddStreams(Builder& b) {
  const Trace& t = b.trace;
  const std::vector<uint32_t> rows = RowsInOrder(t);
  ReserveLarge(b.ops, rows.size());
  b.ops_of_call = LargeVector(b.calls.size(), OpsOfCall());
  b.stream_ops.resize(t.lanes.size());
  for (size_t lane = 0; lane < t.lanes.size(); ++lane) {
    if (t.lanes[lane].kind != LaneKind::kStream) continue;
    ReserveLarge(b.stream_ops[lane], t.lane_begin[lane + 1] - t.lane_begin[lane]);
  }
  std::vector<TaskId> last_call(t.lanes.size());
  std::vector<uint8_t> collective_name(t.names->size(), 0);
  for (const uint32_t row : rows) {
    const auto index = static_cast<uint32_t>(b.ops.size());
    GpuOp& op = b.ops.emplace_back(
        GpuOp{.row = row, .lane = t.lane[row], .start = t.start[row], .end = t.End(row)});
    FindCall(b, index);
    PlaceOnStream(b, index);
    if (op.call.valid()) {
      op.first_of_call = std::exchange(last_call[op.lane.index()], op.call) != op.call;
    }
    op.kind = KindOfRow(t, row, collective_name);
    const ScopeId scope = op.call.valid() ? b.calls[op.call_index].scope : ScopeId();
    op.task = b.Append({.kind = op.kind,
                        .name = t.name[row],
                        .lane = op.lane,
                        .scope = scope,
                        .event = row,
                        .duration = op.end - op.start,
                        .detail = t.detail[row]},
                       op.start, op.end);
    op.takes_place = TakesPlace(b.graph, op.task);
    if (op.kind == TaskKind::kCollective) b.collectives.push_back(op.task);
  }
  b.report.gpu_tasks = b.ops.size();
}

void LearnTypicalLags(Builder& b) {
  std::vector<Duration> latencies, at_rest;
  ReserveLarge(latencies, b.ops.size());
  ReserveLarge(at_rest, b.ops.size());
  int64_t sum[4][4] = {}, count[4][4] = {};
  for (const std::vector<uint32_t>& stream : b.stream_ops) {
    for (size_t i = 0; i < stream.size(); ++i) {
      const GpuOp& op = b.ops[stream[i]];
      if (!op.call.valid() || op.many) continue;
      const GpuOp* before = i == 0 ? nullptr : &b.ops[stream[i - 1]];
      if (before != nullptr && op.start - before->end > kLargestGap) {
        at_rest.push_back(op.start - op.call_end);
      }
      if (before == nullptr || before->end <= op.call_start) {
        Duration latency = op.start - op.call_end;
        if (latency <= kLargestLatency) latencies.push_back(latency);
      } else if (op.call_end <= before->end) {
        Duration gap = op.start - before->end;
        if (gap < Duration{} || gap > kLargestGap) continue;
        int from = static_cast<int>(CategoryOf(before->kind));
        int to = static_cast<int>(CategoryOf(op.kind));
        sum[from][to] += gap.ns;
        ++count[from][to];
      }
    }
  }
  b.report.late = LateBy(std::move(at_rest));
  // The lower median: with few values a long rest must not pass for a latency.
  if (const size_t n = latencies.size(); n > 0) {
    b.typical.launch = Ranked(std::move(latencies), (n - 1) / 2);
  }
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
