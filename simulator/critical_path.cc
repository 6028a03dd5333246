#include "simulator/critical_path.h"

#include <algorithm>
#include <deque>

#include "base/check.h"

namespace daydream {
namespace {

Resource ResourceOf(TaskKind kind) {
  switch (kind) {
    case TaskKind::kHost:
    case TaskKind::kCall:
    case TaskKind::kWait:
      return Resource::kCpu;
    case TaskKind::kKernel:
    case TaskKind::kMemcpy:
    case TaskKind::kMemset:
    case TaskKind::kDelay:
      return Resource::kGpu;
    case TaskKind::kCollective:
      return Resource::kComm;
    case TaskKind::kData:
      return Resource::kData;
  }
  return Resource::kCpu;
}

// Launching and returning from waits is what the CPU side costs; other lags belong to what they
// delay.
Resource ResourceOfLag(Rule rule, TaskKind delayed) {
  switch (rule) {
    case Rule::kLaunch:
    case Rule::kHostWait:
    case Rule::kHandOff:
    case Rule::kQueue:
      return Resource::kCpu;
    case Rule::kCollective:
      return Resource::kComm;
    case Rule::kLaneOrder:
    case Rule::kEventWait:
    case Rule::kTransform:
      break;
  }
  return ResourceOf(delayed);
}

class Walk {
 public:
  Walk(const Graph& g, const Timeline& timeline) : g_(g), timeline_(timeline) {}

  std::vector<PathSegment> From(TaskId last) {
    now_ = timeline_.end[last.index()];
    Point at{last, Anchor::kEnd};
    while (at.task.valid())
      at = at.anchor == Anchor::kEnd ? BeforeEnd(at.task) : BeforeStart(at.task);
    return {path_.rbegin(), path_.rend()};
  }

 private:
  struct Point {
    TaskId task;
    Anchor anchor = Anchor::kEnd;
  };

  Instant TimeOf(Point p) const {
    return (p.anchor == Anchor::kEnd ? timeline_.end : timeline_.start)[p.task.index()];
  }

  void BackTo(Instant begin, TaskId task, Rule rule, bool lag, Resource resource) {
    if (begin >= now_) return;
    if (g_.task(task).phase == Phase::kData) resource = Resource::kData;
    path_.push_back({begin, now_, task, rule, lag, resource});
    now_ = begin;
  }

  Point BeforeEnd(TaskId t) {
    const Blocker& b = timeline_.end_blocker[t.index()];
    if (b.edge != Blocker::kOwnWork) return AlongEdge(t, b.edge);
    BackTo(timeline_.start[t.index()], t, Rule::kLaneOrder, false, ResourceOf(g_.task(t).kind));
    return {t, Anchor::kStart};
  }

  Point BeforeStart(TaskId t) {
    const Blocker& b = timeline_.start_blocker[t.index()];
    if (b.edge == Blocker::kNothing) return {};
    if (b.edge != Blocker::kLane) return AlongEdge(t, b.edge);
    const Task& task = g_.task(t);
    const bool beside =
        task.overlaps && b.task == task.lane_prev && g_.lane(task.lane).order == LaneOrder::kFixed;
    const Point before{b.task, beside ? Anchor::kStart : Anchor::kEnd};
    BackTo(TimeOf(before), t, Rule::kLaneOrder, true, ResourceOf(g_.task(b.task).kind));
    return before;
  }

  Point AlongEdge(TaskId t, uint32_t index) {
    const Edge& e = g_.edges()[index];
    const Point before{e.from, e.from_anchor};
    BackTo(TimeOf(before), t, e.rule, true, ResourceOfLag(e.rule, g_.task(t).kind));
    return before;
  }

  const Graph& g_;
  const Timeline& timeline_;
  Instant now_;
  std::deque<PathSegment> path_;  // last first; grows without a copy
};

}  // namespace

std::vector<PathSegment> CriticalPath(const Graph& graph, const Timeline& timeline, TaskId until) {
  DD_CHECK(timeline.start_blocker.size() == graph.size() &&
           timeline.end_blocker.size() == graph.size());
  if (graph.size() == 0) return {};
  if (!until.valid()) {
    auto last = std::max_element(timeline.end.begin(), timeline.end.end());
    until = TaskId(static_cast<size_t>(last - timeline.end.begin()));
  }
  return Walk(graph, timeline).From(until);
}

BoundBy SumByResource(std::span<const PathSegment> path) {
  BoundBy sum;
  for (const PathSegment& s : path) {
    const Duration length = s.end - s.begin;
    switch (s.resource) {
      case Resource::kGpu:
        sum.gpu += length;
        break;
      case Resource::kCpu:
        sum.cpu += length;
        break;
      case Resource::kComm:
        sum.comm += length;
        break;
      case Resource::kData:
        sum.data += length;
        break;
    }
  }
  return sum;
}

}  // namespace daydream
