#include "report/export/waits.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

namespace daydream {
namespace {

class WaitFinder {
 public:
  WaitFinder(const Graph& graph, const Timeline& timeline)
      : graph_(graph), timeline_(timeline), before_(graph.size()), into_(graph.size()) {
    for (size_t i = 0; i < graph.edges().size(); ++i) {
      into_[graph.edges()[i].to.index()].push_back(static_cast<uint32_t>(i));
    }
    for (size_t l = 0; l < graph.lanes().size(); ++l) FindTurns(LaneId(l));
  }

  Waits Run() {
    for (size_t i = 0; i < graph_.size(); ++i) {
      const TaskId t(i);
      for (TaskId b : before_[i]) {
        if (OverlapsTheOneBefore(graph_, t)) {
          Add({b, Anchor::kStart}, Duration{}, {t, Anchor::kStart});
        } else if (GapOf(graph_, b).ns >= 0) {
          out_.turns.emplace_back(b, t);
        } else {
          Add({b, Anchor::kEnd}, GapOf(graph_, b), {t, Anchor::kStart});
          if (MayReorder(t)) Add({b, Anchor::kStart}, Duration{}, {t, Anchor::kStart});
        }
      }
      const Instant earliest = graph_.tasks()[i].earliest;
      if (earliest.ns > 0) {
        out_.waits.push_back({.from = TaskId(), .lag = earliest - Instant{}, .to = t});
      }
    }
    for (const Edge& e : graph_.edges()) {
      Add({e.from, e.from_anchor}, e.lag, {e.to, e.to_anchor});
    }
    return std::move(out_);
  }

 private:
  using Point = std::pair<TaskId, Anchor>;

  // A lane does one thing at a time, so a task waits for all before it. Most end after those before
  // them; behind an overlap, or a gap that reaches back over its task, several may be the last.
  void FindTurns(LaneId lane) {
    std::vector<TaskId> last;
    TaskId previous;
    for (TaskId t : PlayedOrder(graph_, timeline_, lane)) {
      const bool beside = OverlapsTheOneBefore(graph_, t) && previous.valid();
      if (beside) {
        before_[t.index()] = {previous};
      } else {
        before_[t.index()] = last;
        const bool forward = (LengthOf(graph_, t) + GapOf(graph_, t)).ns >= 0;
        if (forward || MayReorder(t)) last.clear();
      }
      last.push_back(t);
      previous = t;
    }
  }

  // Such a lane takes nothing before the start of what it took last, whatever the gap of that.
  bool MayReorder(TaskId t) const {
    return graph_.lane(graph_.task(t).lane).order == LaneOrder::kPriority;
  }

  Instant TimeOf(Point p) const {
    return (p.second == Anchor::kEnd ? timeline_.end : timeline_.start)[p.first.index()];
  }

  void Add(Point from, Duration lag, Point to) {
    if (lag.ns >= 0) {
      out_.waits.push_back({from.first, from.second, lag, to.first, to.second});
    } else {
      ReachBack(from, lag, to);
    }
  }

  // From `from` backwards, the latest first, with what is left of the lag at each point, as long as
  // it is below zero. A point that is reached again with more of it is followed again.
  void ReachBack(Point from, Duration lag, Point to) {
    using Entry = std::tuple<Instant, Point>;
    std::priority_queue<Entry> queue;
    std::map<Point, Duration> best;
    Instant earliest;
    const auto reach = [&](Point p, Duration left) {
      const auto [it, fresh] = best.try_emplace(p, left);
      if (!fresh && it->second >= left) return;
      it->second = left;
      if (left.ns < 0) queue.emplace(TimeOf(p), p);
    };
    reach(from, lag);
    while (!queue.empty()) {
      const Point p = std::get<1>(queue.top());
      queue.pop();
      const Duration left = best.at(p);
      if (left.ns >= 0) continue;
      earliest = std::max(earliest, EarliestOf(p) + left);
      Expand(p, left, reach);
    }
    for (const auto& [p, left] : best) {
      if (left.ns >= 0) out_.waits.push_back({p.first, p.second, left, to.first, to.second});
    }
    if (earliest.ns > 0) {
      out_.waits.push_back(
          {.from = TaskId(), .lag = earliest - Instant{}, .to = to.first, .to_anchor = to.second});
    }
  }

  Instant EarliestOf(Point p) const {
    return p.second == Anchor::kStart ? graph_.task(p.first).earliest : Instant{};
  }

  // Calls reach(point, lag) for all that the point waits for.
  template <class Reach>
  void Expand(Point p, Duration left, const Reach& reach) const {
    const TaskId t = p.first;
    for (uint32_t index : into_[t.index()]) {
      const Edge& e = graph_.edges()[index];
      if (e.to_anchor == p.second) reach({e.from, e.from_anchor}, left + e.lag);
    }
    if (p.second == Anchor::kEnd) {
      reach({t, Anchor::kStart}, left + LengthOf(graph_, t));
      return;
    }
    const bool beside = OverlapsTheOneBefore(graph_, t);
    for (TaskId b : before_[t.index()]) {
      if (beside) {
        reach({b, Anchor::kStart}, left);
      } else {
        reach({b, Anchor::kEnd}, left + GapOf(graph_, b));
        if (MayReorder(t)) reach({b, Anchor::kStart}, left);
      }
    }
  }

  const Graph& graph_;
  const Timeline& timeline_;
  std::vector<std::vector<TaskId>> before_;  // on the lane, of each task
  std::vector<std::vector<uint32_t>> into_;  // edges by where they lead
  Waits out_;
};

}  // namespace

Duration LengthOf(const Graph& graph, TaskId t) {
  return graph.task(t).removed ? Duration{} : graph.task(t).duration;
}

Duration GapOf(const Graph& graph, TaskId t) {
  return graph.task(t).removed ? Duration{} : graph.task(t).gap;
}

bool OverlapsTheOneBefore(const Graph& graph, TaskId t) {
  const Task& task = graph.task(t);
  return task.overlaps && task.lane_prev.valid() &&
         graph.lane(task.lane).order == LaneOrder::kFixed;
}

std::vector<TaskId> PlayedOrder(const Graph& graph, const Timeline& timeline, LaneId lane) {
  std::vector<TaskId> tasks;
  for (TaskId t = graph.lane(lane).first; t.valid(); t = graph.task(t).lane_next) {
    tasks.push_back(t);
  }
  if (graph.lane(lane).order == LaneOrder::kPriority) {
    // Of those that start at once, all but the last leave the lane free at that instant.
    const auto place = [&](TaskId t) {
      const Instant start = timeline.start[t.index()], end = timeline.end[t.index()];
      return std::pair(start, std::max(start, end + GapOf(graph, t)));
    };
    std::stable_sort(tasks.begin(), tasks.end(),
                     [&](TaskId a, TaskId b) { return place(a) < place(b); });
  }
  return tasks;
}

Waits WaitsOf(const Graph& graph, const Timeline& timeline) {
  return WaitFinder(graph, timeline).Run();
}

}  // namespace daydream
