// Rule N2: in the trace of one rank, most of a collective's duration can be waiting for the other
// ranks (88 % in a tensor-parallel step of eight ranks). The shortest of several equal collectives
// bounds the transfer itself; network what-ifs scale only that part. Where the messages were not
// recorded, collectives that were launched alike may move different ones: equal are then those in
// the same place of each step, where all steps have as many, and no others.
#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "trace/collective_group.h"

namespace daydream {
namespace {

constexpr size_t kLeastEqual = 4;  // rule N2: fewer say nothing about the shortest possible

// Collectives are equal when they move the same message in the same group, or else may be when
// launched alike.
using Key = std::tuple<NameId, NameId, std::string_view, int64_t, int64_t, int64_t>;

Key KeyOf(const Builder& b, TaskId t) {
  const Task& task = b.graph.task(t);
  if (const CollectiveDetail* c = b.graph.Collective(t)) {
    const std::string_view group = ParseCollectiveGroup(b.trace.Name(c->process_group)).name;
    return {task.name, c->dtype, group, c->elements_in, c->elements_out, c->group_size};
  }
  const KernelDetail* k = b.graph.Kernel(t);
  return {task.name, NameId(), {}, -1, -1, k == nullptr ? 0 : k->grid[0]};
}

class Transfers {
 public:
  explicit Transfers(Builder& b) : b_(b) {}

  void Estimate(const std::vector<TaskId>& equal) {
    if (equal.size() < kLeastEqual) return;
    if (b_.graph.Collective(equal.front()) == nullptr) {
      EstimateByPlace(equal);
    } else {
      SetShortest(equal);
    }
  }

  // In the order of tasks, in which each comes behind the last.
  void Set() {
    std::sort(found_.begin(), found_.end());
    for (const auto& [task, transfer] : found_) b_.graph.SetTransfer(task, transfer);
  }

 private:
  // `alike`: in time order.
  void EstimateByPlace(const std::vector<TaskId>& alike) {
    std::map<uint16_t, std::vector<TaskId>> by_step;
    for (TaskId t : alike) by_step[b_.graph.task(t).step].push_back(t);
    const std::span<const GraphStep> steps = b_.graph.steps();
    std::set<size_t> counts;
    size_t measured = 0;
    for (size_t s = 0; s < steps.size(); ++s) {
      if (!steps[s].measured) continue;
      ++measured;
      counts.insert(by_step[static_cast<uint16_t>(s)].size());
    }
    if (measured < 2 || counts.size() != 1 || *counts.begin() == 0) return;
    for (size_t place = 0; place < *counts.begin(); ++place) {
      std::vector<TaskId> same;
      for (const auto& [step, tasks] : by_step) {
        if (step < steps.size() && steps[step].measured) same.push_back(tasks[place]);
      }
      SetShortest(same);
    }
  }

  void SetShortest(const std::vector<TaskId>& equal) {
    Duration shortest = Duration::Max();
    for (TaskId t : equal) shortest = std::min(shortest, b_.graph.task(t).duration);
    for (TaskId t : equal) found_.emplace_back(t, shortest);
  }

  Builder& b_;
  std::vector<std::pair<TaskId, Duration>> found_;
};

}  // namespace

void EstimateTransfers(Builder& b) {
  std::map<Key, std::vector<TaskId>> groups;
  for (TaskId t : b.collectives) groups[KeyOf(b, t)].push_back(t);
  Transfers transfers(b);
  for (const auto& [key, tasks] : groups) transfers.Estimate(tasks);
  transfers.Set();
}

}  // namespace daydream
