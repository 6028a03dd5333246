// A step that the PyTorch profiler recorded has host work that is too long, by an amount that
// nothing in the trace tells. How far that moves a prediction is part of its interval.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "report/predict/replays.h"

namespace daydream {

// What the profiler may add to each piece of host work. What --true-step takes off to meet the step
// that was measured without it: 3.6 us for an MLP and 3.1 us for DLRM on an H200 (tests/data/h200),
// 2.0 and 4.7 us in two profiles of ResNet-50 on a V100 (101 ms without), until the GPU bounds
// these two. The most of the four.
constexpr Duration kMostAdded = Duration::Ns(4700);

// Whether this trace holds host work of that kind.
bool HostIsStretched(const Graph& graph);

// Steps when each piece of host work takes that much less, but never less than nothing.
class QuickHost {
 public:
  // Keeps references; `replays` plays `recorded`. O(tasks + edges).
  QuickHost(const Graph& recorded, Replays& replays);
  // Of the recorded graph. None where its lanes may reorder.
  std::optional<Duration> step() const { return step_; }
  // Of a graph that `replays` plays: a copy of the recorded one; with GPU work that takes longer.
  // O(tasks + edges); where only times were set, what is as recorded is not summed again.
  std::optional<Duration> StepOf(const Graph& graph, Replays& replays,
                                 std::vector<StepBatch::Longer> longer = {}) const;

 private:
  const Graph& recorded_;
  std::vector<int64_t> less_;          // sums of what the recorded host takes less
  std::vector<StepBatch::Longer> of_;  // the same by task; nothing of those that are no host's
  std::optional<Duration> step_;
};

}  // namespace daydream
