// The step times of many scenarios of one structure, eight in one pass: what intervals, sweeps and
// speed-up curves are made of. Only durations and gaps differ between the scenarios.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"

namespace daydream {

// Make once, then Reset(), tell what is other in each scenario, and Run(), as often as needed; all
// memory is reused. Use one on each thread.
class StepBatch {
 public:
  static constexpr size_t kWidth = 8;

  // FailedPrecondition on a cycle, or when a lane may reorder. Keeps a reference to `graph`, whose
  // structure must stay, and its durations and gaps. All scenarios are the graph. O(tasks + edges).
  static absl::StatusOr<StepBatch> Make(const Graph& graph);
  StepBatch(StepBatch&&) noexcept;
  StepBatch& operator=(StepBatch&&) noexcept;
  ~StepBatch();

  // All scenarios are the graph again.
  void Reset();
  // Where what `task` takes is added up with that of others, in ns: eight numbers, one a scenario.
  // To have it take longer, add the difference. What becomes of a duration is not negative; a gap
  // is negative only where the graph has such a gap. What is added for a removed task is not read.
  struct Sums {
    int64_t *duration, *gap;
  };
  Sums sums(TaskId task);
  // Instead of the duration and the gap of the graph, in scenario `s` < kWidth. REQUIRES: once for
  // each task between two Reset().
  void Set(size_t s, TaskId task, Duration duration, Duration gap);

  // StepTime() of the eight scenarios.
  std::array<Duration, kWidth> Run();

 private:
  struct Impl;
  explicit StepBatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace daydream
