#include "simulator/blockers.h"

#include <algorithm>
#include <vector>

namespace daydream {
namespace {

constexpr Blocker kUndecided{TaskId::None(), Blocker::kNothing};

Duration OwnDuration(const Task& t) { return t.removed ? Duration{} : t.duration; }
Duration OwnGap(const Task& t) { return t.removed ? Duration{} : t.gap; }

// Follows one lane in the order in which it ran and notes which starts it decided.
void AlongLane(const Graph& g, std::span<const TaskId> tasks, bool fixed, Timeline& timeline) {
  Instant clock = Instant::Min();
  TaskId clock_of, before;
  for (TaskId t : tasks) {
    const Task& task = g.task(t);
    const Instant start = timeline.start[t.index()];
    if (fixed && task.overlaps && before.valid()) {
      if (timeline.start[before.index()] == start) {
        timeline.start_blocker[t.index()] = {before, Blocker::kLane};
      }
    } else if (clock == start && clock_of.valid()) {
      timeline.start_blocker[t.index()] = {clock_of, Blocker::kLane};
    }
    Instant free = timeline.end[t.index()] + OwnGap(task);
    if (!fixed) free = std::max(free, start);
    if (free >= clock) clock = free, clock_of = t;
    before = t;
  }
}

}  // namespace

void FindBlockers(const Graph& g, std::span<const TaskId> ran_before, Timeline& timeline) {
  timeline.start_blocker.assign(g.size(), kUndecided);
  timeline.end_blocker.assign(g.size(), kUndecided);
  std::vector<TaskId> follower(ran_before.size()), order;
  for (size_t i = 0; i < ran_before.size(); ++i) {
    if (ran_before[i].valid()) follower[ran_before[i].index()] = TaskId(i);
  }
  for (const GraphLane& lane : g.lanes()) {
    order.clear();
    const bool fixed = lane.order == LaneOrder::kFixed;
    TaskId first = lane.first;
    if (!fixed) {
      while (first.valid() && ran_before[first.index()].valid()) first = ran_before[first.index()];
    }
    for (TaskId t = first; t.valid();
         t = fixed ? g.task(t).lane_next : follower[t.index()]) {
      order.push_back(t);
    }
    AlongLane(g, order, fixed, timeline);
  }
  for (size_t i = 0; i < g.size(); ++i) {
    if (timeline.start[i] + OwnDuration(g.tasks()[i]) == timeline.end[i]) {
      timeline.end_blocker[i] = {TaskId(i), Blocker::kOwnWork};
    }
  }
  for (size_t k = 0; k < g.edges().size(); ++k) {
    const Edge& e = g.edges()[k];
    const auto& from = e.from_anchor == Anchor::kStart ? timeline.start : timeline.end;
    const bool to_start = e.to_anchor == Anchor::kStart;
    const auto& to = to_start ? timeline.start : timeline.end;
    Blocker& blocker =
        (to_start ? timeline.start_blocker : timeline.end_blocker)[e.to.index()];
    if (!blocker.task.valid() && from[e.from.index()] + e.lag == to[e.to.index()]) {
      blocker = {e.from, static_cast<uint32_t>(k)};
    }
  }
}

}  // namespace daydream
