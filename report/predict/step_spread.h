// How much every piece of a step differs from step to step, and step times with steps drawn anew.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/graph.h"
#include "simulator/step_batch.h"

namespace daydream {

// The same piece of work is the n-th task of its name on its lane in every step. For each recorded
// task of a counted step (report/windows.h) that has such partners in other counted steps: what
// they took, as multiples of what it took.
class StepSpread {
 public:
  // At most 8 steps are compared, evenly chosen. Keeps a reference. O(tasks).
  explicit StepSpread(const Graph& recorded);
  StepSpread(StepSpread&&) noexcept;
  ~StepSpread();

  size_t steps() const { return steps_; }  // compared; fewer than 2: nothing is known

  // Step times of `graph`, an edited copy of the recorded one, when the pieces of each counted step
  // take what those of a step drawn at random took, all of one step together: a
  // bootstrap, whose spread is that of the predicted mean. The steps of a draw stand in the order
  // in which they were recorded. `count` of them, with a fixed seed. Empty when fewer than two
  // steps are compared. REQUIRES: all scenarios of `batch` are `graph`; they are so again
  // afterwards. Where only times were set (Graph::structure()), what is as recorded is not summed
  // again, and the batches of all such copies are StepBatch::Another() of one. May be called from
  // several threads.
  std::vector<Duration> Resample(const Graph& graph, StepBatch& batch, size_t count) const;

 private:
  struct Varying {
    uint32_t task;
    uint32_t slot;  // of its step
  };
  struct Sums;
  struct Recorded;
  // What a task of these times adds to its sums.
  void Add(size_t varying, Duration own, int64_t times, int64_t* alternatives) const;
  struct Parts;
  Sums SumsOf(const Graph& graph, const StepBatch& batch, Recorded* noted) const;
  Sums SumsOfCopy(const Graph& copy, const StepBatch& batch) const;

  const Graph& recorded_;
  size_t steps_ = 0, slots_ = 0;
  std::vector<Varying> varying_;
  std::vector<float> ratios_;  // [varying][compared step]
  std::unique_ptr<Recorded> of_recorded_;
};

}  // namespace daydream
