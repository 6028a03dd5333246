#include "simulator/blockers.h"

#include <algorithm>
#include <vector>

namespace daydream {
namespace {

struct LaneState {
  Instant clock = Instant::Min();
  TaskId clock_of;  // the task that set it
  bool fixed = true;
};

// What the lane and the task itself decided.
void FindWithoutEdges(const Graph& g, std::span<const TaskId> order, Timeline& timeline) {
  std::vector<LaneState> lanes(g.lanes().size());
  for (size_t l = 0; l < lanes.size(); ++l) {
    lanes[l].fixed = g.lanes()[l].order == LaneOrder::kFixed;
  }
  for (TaskId t : order) {
    const Task& task = g.task(t);
    LaneState& lane = lanes[task.lane.index()];
    const Instant start = timeline.start[t.index()], end = timeline.end[t.index()];
    Blocker& blocker = timeline.start_blocker[t.index()];
    if (lane.fixed && task.overlaps && task.lane_prev.valid()) {
      if (timeline.start[task.lane_prev.index()] == start) {
        blocker = {task.lane_prev, Blocker::kLane};
      }
    } else if (lane.clock == start && lane.clock_of.valid()) {
      blocker = {lane.clock_of, Blocker::kLane};
    }
    if ((task.removed ? start : start + task.duration) == end) {
      timeline.end_blocker[t.index()] = {t, Blocker::kOwnWork};
    }
    Instant free = task.removed ? end : end + task.gap;
    if (!lane.fixed) free = std::max(free, start);
    if (free >= lane.clock) lane.clock = free, lane.clock_of = t;
  }
}

}  // namespace

void FindBlockers(const Graph& g, std::span<const TaskId> order, Timeline& timeline) {
  timeline.start_blocker.resize(g.size());
  timeline.end_blocker.resize(g.size());
  FindWithoutEdges(g, order, timeline);
  for (size_t k = 0; k < g.edges().size(); ++k) {
    const Edge& e = g.edges()[k];
    const auto& from = e.from_anchor == Anchor::kStart ? timeline.start : timeline.end;
    const bool to_start = e.to_anchor == Anchor::kStart;
    const auto& to = to_start ? timeline.start : timeline.end;
    Blocker& blocker = (to_start ? timeline.start_blocker : timeline.end_blocker)[e.to.index()];
    if (!blocker.task.valid() && from[e.from.index()] + e.lag == to[e.to.index()]) {
      blocker = {e.from, static_cast<uint32_t>(k)};
    }
  }
}

Instant BlockersAsked::FreeAfter(TaskId t) const {
  const Task& task = graph_.task(t);
  return timeline_.end[t.index()] + (task.removed ? Duration{} : task.gap);
}

// The task of the lane before `t` that keeps it busy for the longest, the last of several.
TaskId BlockersAsked::LastToHold(TaskId t) {
  held_by_.resize(graph_.size());
  lane_filled_.resize(graph_.lanes().size());
  const LaneId lane = graph_.task(t).lane;
  if (!lane_filled_[lane.index()]) {
    lane_filled_[lane.index()] = true;
    TaskId holds;
    for (TaskId i = graph_.lane(lane).first; i.valid(); i = graph_.task(i).lane_next) {
      held_by_[i.index()] = holds;
      if (!holds.valid() || FreeAfter(i) >= FreeAfter(holds)) holds = i;
    }
  }
  return held_by_[t.index()];
}

Blocker BlockersAsked::OfStart(TaskId t) {
  const Task& task = graph_.task(t);
  const Instant start = timeline_.start[t.index()];
  TaskId before = task.lane_prev;
  if (task.overlaps && before.valid()) {
    if (timeline_.start[before.index()] == start) return {before, Blocker::kLane};
  } else if (before.valid()) {
    if (FreeAfter(before) == start) return {before, Blocker::kLane};
    // Others keep the lane busy for longer only where the last one ran beside them, or its gap is
    // less than nothing.
    const Task& last = graph_.task(before);
    if (last.overlaps || (last.gap < Duration{} && !last.removed)) {
      before = LastToHold(t);
      if (FreeAfter(before) == start) return {before, Blocker::kLane};
    }
  }
  return AlongEdge(t, Anchor::kStart);
}

Blocker BlockersAsked::OfEnd(TaskId t) const {
  const Task& task = graph_.task(t);
  const Instant own = timeline_.start[t.index()] + (task.removed ? Duration{} : task.duration);
  if (own == timeline_.end[t.index()]) return {t, Blocker::kOwnWork};
  return AlongEdge(t, Anchor::kEnd);
}

Blocker BlockersAsked::AlongEdge(TaskId t, Anchor to) const {
  const Instant at = (to == Anchor::kStart ? timeline_.start : timeline_.end)[t.index()];
  for (uint32_t i = into_->begin[t.index()]; i < into_->begin[t.index() + 1]; ++i) {
    const Edge& e = graph_.edges()[into_->edge[i]];
    const auto& from = e.from_anchor == Anchor::kStart ? timeline_.start : timeline_.end;
    if (e.to_anchor == to && from[e.from.index()] + e.lag == at) return {e.from, into_->edge[i]};
  }
  return {};
}

}  // namespace daydream
