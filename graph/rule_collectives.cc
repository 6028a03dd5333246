// Rule N2: in the trace of one rank, most of a collective's duration can be waiting for the other
// ranks (88 % in a tensor-parallel step of eight ranks). The shortest of several equal collectives
// bounds the transfer itself; network what-ifs scale only that part.
#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "graph/builder.h"

namespace daydream {
namespace {

constexpr size_t kLeastEqual = 4;  // rule N2: fewer say nothing about the shortest possible

// Collectives are equal when they move the same message, or else were launched alike.
using Key = std::tuple<NameId, int64_t, int64_t, uint32_t>;

Key KeyOf(const Builder& b, TaskId t) {
  const Task& task = b.graph.task(t);
  if (const CollectiveDetail* c = b.graph.Collective(t)) {
    return {task.name, c->elements_in, c->elements_out, 0};
  }
  const KernelDetail* k = b.graph.Kernel(t);
  return {task.name, -1, -1, k == nullptr ? 0 : k->grid[0]};
}

}  // namespace

void EstimateTransfers(Builder& b) {
  std::map<Key, std::vector<TaskId>> groups;
  for (const GpuOp& op : b.ops) {
    if (b.graph.task(op.task).kind == TaskKind::kCollective) {
      groups[KeyOf(b, op.task)].push_back(op.task);
    }
  }
  std::vector<std::pair<TaskId, Duration>> transfers;
  for (const auto& [key, tasks] : groups) {
    if (tasks.size() < kLeastEqual) continue;
    Duration shortest = Duration::Max();
    for (TaskId t : tasks) shortest = std::min(shortest, b.graph.task(t).duration);
    for (TaskId t : tasks) transfers.push_back({t, shortest});
  }
  std::sort(transfers.begin(), transfers.end());
  for (const auto& [task, transfer] : transfers) b.graph.SetTransfer(task, transfer);
}

}  // namespace daydream
