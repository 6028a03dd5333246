#include "simulator/step_candidates.h"

#include <algorithm>

namespace daydream {

CandidateFinder::CandidateFinder(const Graph& g, bool rounds) : g_(g), marks_(g) {
  one_ = g.steps().size() <= 1;
  of_step.resize(std::max<size_t>(g.steps().size(), 1));
  for (const GraphLane& lane : g.lanes()) {
    if (one_ || marks_.lone().has_value()) Walk(lane.first, true);
    Walk(lane.last, false);
    if (marks_.lone().has_value() && !one_) FindHost(lane, *marks_.lone());
    for (size_t s = 0; rounds && s < of_step.size(); ++s) {
      const TaskId last = LastOfHost(lane, s);
      if (last.valid()) of_step[s].round_last.push_back(last);
    }
  }
}

std::span<const StepMarks::Launch> CandidateFinder::launches(size_t step) const {
  return one_ ? std::span<const StepMarks::Launch>() : marks_.launches(step);
}

std::span<const StepMarks::Wait> CandidateFinder::waits(size_t step) const {
  return step == marks_.lone() && !one_ ? marks_.waits() : std::span<const StepMarks::Wait>();
}

void CandidateFinder::FindHost(const GraphLane& lane, size_t step) {
  const TaskId next = FirstOfHost(lane, step + 1);
  if (next.valid()) of_step[step].next_host_first.push_back(next);
  const TaskId first = FirstOfHost(lane, step);
  if (!first.valid()) return;
  of_step[step].host_first.push_back(first);
  of_step[step].host_last.push_back(LastOfHost(lane, step));
}

bool CandidateFinder::IsHostOf(TaskId t, size_t step) const {
  return g_.task(t).step == step && IsHost(g_.task(t).kind);
}

TaskId CandidateFinder::FirstOfHost(const GraphLane& lane, size_t step) const {
  TaskId first = lane.first;
  while (first.valid() && !IsHostOf(first, step)) first = g_.task(first).lane_next;
  return first;
}

TaskId CandidateFinder::LastOfHost(const GraphLane& lane, size_t step) const {
  TaskId last = lane.last;
  while (last.valid() && !IsHostOf(last, step)) last = g_.task(last).lane_prev;
  return last;
}

bool CandidateFinder::CanBe(const Task& t, bool begin) const {
  if (one_) return true;
  if (t.step >= of_step.size() || (begin && t.step != marks_.lone())) return false;
  return IsGpu(t.kind) || !marks_.HasGpu(t.step);
}

void CandidateFinder::Walk(TaskId t, bool forward) {
  ++walk_;
  seen_.resize(of_step.size());
  for (; t.valid(); t = forward ? g_.task(t).lane_next : g_.task(t).lane_prev) {
    const Task& task = g_.task(t);
    // Backwards: what comes later on the lane need not end later.
    if (!forward && task.gap < Duration{}) ++walk_;
    const size_t s = one_ ? 0 : task.step;
    if (CanBe(task, forward) && seen_[s] != walk_) {
      seen_[s] = walk_;
      (forward ? of_step[s].first : of_step[s].last).push_back(t);
    }
    if (forward ? task.gap < Duration{} : task.overlaps) ++walk_;
  }
}

}  // namespace daydream
