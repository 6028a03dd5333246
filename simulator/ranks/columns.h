// Many ranks of one program side by side: the graph of one, played for thousands at once. Each rank
// is a column with a speed of its own; a collective ends when the slowest rank of its group has
// come and its transfer is over.
//
// One pass over the tasks in evaluation order. The values of one instant are neighbours in memory,
// a block of columns at a time, so that an instruction of the processor works on several ranks; an
// instant is kept only until the last task has read it. Blocks run from one collective to the next
// without each other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"

namespace daydream {

// How many times as long the own work of each rank takes, below 4: host work with the time behind
// it, and GPU work but collectives.
struct RankSpeeds {
  std::vector<double> host, gpu;  // by rank, of one size
};

class RankColumns {
 public:
  // Calls the second argument with 0 to count - 1, in any order and side by side.
  using ForEach = std::function<void(size_t count, const std::function<void(size_t)>& body)>;
  static void InOrder(size_t count, const std::function<void(size_t)>& body);

  // FailedPrecondition on a cycle, when a lane may reorder, or when a task takes more than 18
  // minutes. Keeps no reference. O(tasks + edges).
  static absl::StatusOr<RankColumns> Make(const Graph& graph, std::span<const TaskId> watched);

  // Ranks stand in groups of `group`, one after the other; those of a group meet in every
  // collective, which takes Graph::Transfer(). Returns the latest end of each watched task in each
  // group: [group * watched + i]. The same numbers whatever `each` does; with speeds of 1 those of
  // Simulate(). O((tasks + edges) ranks) time, O(live rows x ranks) memory.
  std::vector<Instant> Run(const RankSpeeds& speeds, size_t group,
                           const ForEach& each = InOrder) const;

  size_t meetings() const;
  size_t live_rows() const;  // 8 bytes each, for every rank

 private:
  struct Impl;
  explicit RankColumns(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace daydream
