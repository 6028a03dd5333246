#include "graph/tensor_sources.h"

#include <algorithm>
#include <tuple>

#include "graph/scopes.h"

namespace daydream {
namespace {

// Bounds the work on traces that are made up: rows that begin at one time, what an op reads, and
// what the op that made it launched.
constexpr size_t kMostSources = 64;

}  // namespace

TensorSources::TensorSources(const Builder& b) : b_(b) {
  if (b.trace.dependencies.empty()) return;
  for (const GpuOp& op : b.ops) {
    if (op.call.valid()) launches_.push_back({b.graph.task(op.call).lane, op.call_start, op.lane});
  }
  std::sort(launches_.begin(), launches_.end(), [](const Launch& x, const Launch& y) {
    return std::tie(x.thread, x.at, x.stream) < std::tie(y.thread, y.at, y.stream);
  });
}

void TensorSources::AddStreamsOf(uint32_t producer, std::vector<LaneId>& to) const {
  const Trace& t = b_.trace;
  const std::pair from(t.lane[producer], t.start[producer]);
  auto launch = std::partition_point(launches_.begin(), launches_.end(), [&](const Launch& l) {
    return std::pair(l.thread, l.at) < from;
  });
  for (size_t n = 0; n < kMostSources && launch != launches_.end(); ++n, ++launch) {
    if (launch->thread != from.first || launch->at >= t.End(producer)) return;
    if (std::find(to.begin(), to.end(), launch->stream) == to.end()) to.push_back(launch->stream);
  }
}

std::vector<LaneId> TensorSources::StreamsThatMade(const GpuOp& op) const {
  std::vector<LaneId> streams;
  if (launches_.empty() || !op.call.valid()) return streams;
  const Trace& t = b_.trace;
  size_t reads = 0;
  for (ScopeId s : ScopesAround(b_.graph, b_.graph.task(op.call).scope)) {
    const Scope& scope = ScopeAt(b_.graph, s);
    if (scope.kind != EventKind::kOp) continue;
    // The row of the scope; ops inside of one another may begin at the same time.
    const auto begin = t.start.begin() + t.lane_begin[scope.lane.index()];
    const auto end = t.start.begin() + t.lane_begin[scope.lane.index() + 1];
    auto at = std::lower_bound(begin, end, scope.begin);
    for (size_t n = 0; n < kMostSources && at != end && *at == scope.begin; ++n, ++at) {
      const auto row = static_cast<uint32_t>(at - t.start.begin());
      if (t.kind[row] != EventKind::kOp || t.name[row] != scope.name) continue;
      auto read = std::partition_point(t.dependencies.begin(), t.dependencies.end(),
                                       [&](const DataDependency& d) { return d.consumer < row; });
      for (; read != t.dependencies.end() && read->consumer == row && reads++ < kMostSources;
           ++read) {
        AddStreamsOf(read->producer, streams);
      }
    }
  }
  return streams;
}

}  // namespace daydream
