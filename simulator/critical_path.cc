#include "simulator/critical_path.h"

#include <algorithm>

#include "base/check.h"
#include "simulator/blockers.h"

namespace daydream {

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

namespace {

// Blockers as they were recorded.
class BlockersRecorded {
 public:
  BlockersRecorded(const Graph& /*graph*/, const Timeline& timeline) : timeline_(timeline) {}
  Blocker OfStart(TaskId t) const { return timeline_.start_blocker[t.index()]; }
  Blocker OfEnd(TaskId t) const { return timeline_.end_blocker[t.index()]; }

 private:
  const Timeline& timeline_;
};

template <class Blockers>
class Walk {
 public:
  using Take = absl::FunctionRef<void(const PathSegment&)>;
  Walk(const Graph& g, const Timeline& timeline, Take take)
      : g_(g), timeline_(timeline), blockers_(g, timeline), take_(take) {}

  void From(TaskId last) {
    now_ = timeline_.end[last.index()];
    Point at{last, Anchor::kEnd};
    while (at.task.valid())
      at = at.anchor == Anchor::kEnd ? BeforeEnd(at.task) : BeforeStart(at.task);
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
    take_({begin, now_, task, rule, lag, resource});
    now_ = begin;
  }

  Point BeforeEnd(TaskId t) {
    const Blocker b = blockers_.OfEnd(t);
    if (b.edge != Blocker::kOwnWork) return AlongEdge(t, b.edge);
    BackTo(timeline_.start[t.index()], t, Rule::kLaneOrder, false, ResourceOf(g_.task(t).kind));
    return {t, Anchor::kStart};
  }

  Point BeforeStart(TaskId t) {
    const Blocker b = blockers_.OfStart(t);
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
  Blockers blockers_;
  Take take_;
  Instant now_;
};

}  // namespace

bool HasPath(const Graph& graph, const Timeline& timeline) {
  if (timeline.start.size() != graph.size()) return false;
  return timeline.start_blocker.size() == graph.size() ||
         std::ranges::all_of(graph.lanes(),
                             [](const GraphLane& lane) { return lane.order == LaneOrder::kFixed; });
}

void WalkCriticalPath(const Graph& graph, const Timeline& timeline, TaskId until,
                      absl::FunctionRef<void(const PathSegment&)> take) {
  DD_CHECK(HasPath(graph, timeline));
  if (graph.size() == 0) return;
  if (!until.valid()) {
    auto last = std::max_element(timeline.end.begin(), timeline.end.end());
    until = TaskId(static_cast<size_t>(last - timeline.end.begin()));
  }
  if (timeline.start_blocker.size() == graph.size()) {
    Walk<BlockersRecorded>(graph, timeline, take).From(until);
  } else {
    Walk<BlockersAsked>(graph, timeline, take).From(until);
  }
}

std::vector<PathSegment> CriticalPath(const Graph& graph, const Timeline& timeline, TaskId until) {
  std::vector<PathSegment> path;
  WalkCriticalPath(graph, timeline, until, [&](const PathSegment& s) { path.push_back(s); });
  std::ranges::reverse(path);
  return path;
}

Duration& BoundBy::Of(Resource resource) {
  switch (resource) {
    case Resource::kGpu:
      return gpu;
    case Resource::kCpu:
      return cpu;
    case Resource::kComm:
      return comm;
    case Resource::kData:
      break;
  }
  return data;
}

BoundBy SumByResource(std::span<const PathSegment> path) {
  BoundBy sum;
  for (const PathSegment& s : path) sum.Of(s.resource) += s.end - s.begin;
  return sum;
}

}  // namespace daydream
