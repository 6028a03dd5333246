// The tasks that a step's window depends on. Internal to simulator/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/step_windows.h"

namespace daydream {

// The tasks that can be the first to start or the last to end in their step. On a lane, starts only
// grow from task to task, but after a negative gap; ends likewise, but before a task that
// overlaps. So a few tasks a step and lane are enough.
struct StepCandidates {
  std::vector<TaskId> first, last;            // first: of the lone step, or of the only one
  std::vector<TaskId> host_first, host_last;  // of the lone step, a lane each
  std::vector<TaskId> next_host_first;        // of the step behind it
  std::vector<TaskId> round_last;             // as host_last, of rounds (simulator/lone_step.h)
};

class CandidateFinder {
 public:
  // `rounds`: of a lone step, round_last, too. O(tasks + edges).
  CandidateFinder(const Graph& g, bool rounds);
  std::span<const StepMarks::Launch> launches(size_t step) const;
  std::span<const StepMarks::Wait> waits(size_t step) const;
  bool has_gpu(size_t step) const { return !one_ && marks_.HasGpu(step); }
  std::vector<StepCandidates> of_step;

 private:
  void FindHost(const GraphLane& lane, size_t step);
  bool IsHostOf(TaskId t, size_t step) const;
  TaskId FirstOfHost(const GraphLane& lane, size_t step) const;
  TaskId LastOfHost(const GraphLane& lane, size_t step) const;
  // Whether `t` can be where its step begins or ends.
  bool CanBe(const Task& t, bool begin) const;
  void Walk(TaskId t, bool forward);

  const Graph& g_;
  StepMarks marks_;
  bool one_;
  std::vector<uint64_t> seen_;  // by step: the walk that has a candidate
  uint64_t walk_ = 0;
};

}  // namespace daydream
