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

}  // namespace daydream
