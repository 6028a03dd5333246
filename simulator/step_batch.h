// The step times of many scenarios of one structure, eight in one pass: what intervals, sweeps and
// speed-up curves are made of. Only durations and gaps differ between the scenarios.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "graph/graph.h"
#include "graph/step_windows.h"
#include "simulator/draw_eight.h"
#include "simulator/simulate.h"

namespace daydream {

// Make once, then Reset(), tell what is other in each scenario, and Run(), as often as needed; all
// memory is reused. Use one on each thread.
class StepBatch {
 public:
  static constexpr size_t kWidth = 8;

  // FailedPrecondition on a cycle, or when a lane may reorder. Keeps a reference to `graph`, whose
  // structure must stay, and its durations and gaps. All scenarios are the graph. O(tasks + edges).
  static absl::StatusOr<StepBatch> Make(const Graph& graph);
  static StepBatch Make(const Graph& graph, const Plan& plan);  // by a plan that was made for it
  StepBatch(StepBatch&&) noexcept;
  StepBatch& operator=(StepBatch&&) noexcept;
  ~StepBatch();

  // One for another thread, of the graph as Make() found it, which has the order of evaluation in
  // common with this one, which may be in use meanwhile. O(rows).
  StepBatch Another() const;

  // All scenarios are the graph again. O(sums that were asked for since).
  void Reset();
  // All scenarios, and what Reset() brings back, are `retimed`: the graph itself, or a copy of it
  // of which only durations and gaps were set (Graph::structure()), no gap to less than 0. Keeps a
  // reference to it. O(retimed() + rows).
  void Follow(const Graph& retimed);
  // Where what `task` takes is added up with that of others, in ns: eight numbers, one a scenario.
  // To be written before the next Reset().
  // To have it take longer, add the difference. What becomes of a duration is not negative; a gap
  // is negative only where the graph has such a gap. What is added for a removed task is not read.
  struct Sums {
    int64_t *duration, *gap;
  };
  Sums sums(TaskId task);
  // What all sums are after Reset(), one number each, and which of them those of a task are. The
  // last is one that nobody reads.
  std::span<const int64_t> reset_sums() const;
  struct SumsOfTask {
    uint32_t duration, gap;
  };
  SumsOfTask places(TaskId task) const;
  // Instead of the duration and the gap of the graph, in scenario `s` < kWidth. REQUIRES: once for
  // each task between two Reset().
  void Set(size_t s, TaskId task, Duration duration, Duration gap);

  // StepTime() of the eight scenarios. `each` is told it while periods() are those of the scenario.
  using Told = absl::FunctionRef<void(size_t s, Duration step)>;
  std::array<Duration, kWidth> Run(Told each = [](size_t, Duration) {});
  // The same of others, whose sums are as after Reset() with what they draw: eight for each of
  // `groups`, which says by slot what they draw. Side by side as far as the cache holds them. All
  // scenarios are as after Reset() then.
  std::vector<Duration> RunDrawn(const DrawnSums& drawn,
                                 std::span<const std::vector<Choice>> groups);
  // StepTime() of the graph with tasks that take longer, each told once. All scenarios are as
  // before. What Set() asks of durations and gaps holds of what they become. O(rows + tasks given),
  // without what the eight scenarios need.
  struct Longer {
    TaskId task;
    Duration duration, gap;  // by these, which may be less than 0
  };
  Duration StepWith(std::span<const Longer> longer, std::span<const int64_t> more = {});
  // `longer` as what to tell as `more`, which costs less than to tell it anew: adds to
  // reset_sums().size() numbers, for this batch and all that have the order of evaluation in common
  // with it.
  void AddTo(std::span<int64_t> more, const Longer& longer) const;
  // StepPeriods() behind the last step time that was told; where one step counts, it is all of
  // them.
  std::span<const Duration> periods() const;
  // StepWindows() behind it, but for the begin of the first, which no period hangs on. None of a
  // graph of one step, and where a lone step has its cycle.
  std::span<const StepWindow> windows() const;
  // StepTime() of `graph`; none where it differs from the scenarios in more than what Set() can
  // say. All scenarios are as before. O(tasks + edges).
  std::optional<Duration> StepOf(const Graph& graph);

 private:
  struct Impl;
  explicit StepBatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace daydream
