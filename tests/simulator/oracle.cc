#include "tests/simulator/oracle.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

namespace daydream {
namespace {

Duration DurationOf(const Task& t) { return t.removed ? Duration::Ns(0) : t.duration; }
Duration GapOf(const Task& t) { return t.removed ? Duration::Ns(0) : t.gap; }

Instant AnchorTime(const Timeline& timeline, TaskId t, Anchor anchor) {
  return anchor == Anchor::kStart ? timeline.start[t.index()] : timeline.end[t.index()];
}

Instant EndFrom(const Graph& g, const Timeline& timeline, TaskId t, Instant start) {
  Instant end = start + DurationOf(g.task(t));
  for (const Edge& e : g.edges()) {
    if (e.to != t || e.to_anchor != Anchor::kEnd) continue;
    end = std::max(end, AnchorTime(timeline, e.from, e.from_anchor) + e.lag);
  }
  return end;
}

// The latest constraint on the start of `t`, apart from its lane.
Instant ReadyFrom(const Graph& g, const Timeline& timeline, TaskId t) {
  Instant ready = std::max(g.task(t).earliest, Instant::AtNs(0));
  for (const Edge& e : g.edges()) {
    if (e.to != t || e.to_anchor != Anchor::kStart) continue;
    ready = std::max(ready, AnchorTime(timeline, e.from, e.from_anchor) + e.lag);
  }
  return ready;
}

// Repeats the definition until nothing changes. From below, so the least solution is found.
Timeline Fixpoint(const Graph& g) {
  Timeline timeline;
  timeline.start.assign(g.size(), Instant::AtNs(-(int64_t{1} << 61)));
  timeline.end = timeline.start;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < g.size(); ++i) {
      const TaskId t(i);
      const Task& task = g.task(t);
      Instant start = ReadyFrom(g, timeline, t);
      if (task.overlaps && task.lane_prev.valid()) {
        start = std::max(start, timeline.start[task.lane_prev.index()]);
      } else {
        for (TaskId p = task.lane_prev; p.valid(); p = g.task(p).lane_prev) {
          start = std::max(start, timeline.end[p.index()] + GapOf(g.task(p)));
        }
      }
      const Instant end = EndFrom(g, timeline, t, start);
      changed |= start != timeline.start[i] || end != timeline.end[i];
      timeline.start[i] = start;
      timeline.end[i] = end;
    }
  }
  return timeline;
}

// One choice at a time, each time looking at everything.
class Chooser {
 public:
  explicit Chooser(const Graph& g) : g_(g), played_(g.size()), clock_(g.lanes().size(), kNever) {
    timeline_.start.resize(g.size());
    timeline_.end.resize(g.size());
  }

  Timeline Run() {
    for (size_t n = 0; n < g_.size(); ++n) PlayNext();
    return timeline_;
  }

 private:
  static constexpr Instant kNever = Instant::AtNs(-(int64_t{1} << 61));
  // Lanes of fixed order come first, then the earliest choice.
  using Turn = std::tuple<bool, Instant, LaneId>;

  bool Fixed(TaskId t) const { return g_.lane(g_.task(t).lane).order == LaneOrder::kFixed; }
  Instant Clock(TaskId t) const { return clock_[g_.task(t).lane.index()]; }

  bool Dependent(TaskId t) const {
    const TaskId prev = g_.task(t).lane_prev;
    if (Fixed(t) && prev.valid() && !played_[prev.index()]) return true;
    return std::any_of(g_.edges().begin(), g_.edges().end(),
                       [&](const Edge& e) { return e.to == t && !played_[e.from.index()]; });
  }

  Instant StartOf(TaskId t) const {
    const Task& task = g_.task(t);
    const Instant ready = ReadyFrom(g_, timeline_, t);
    if (Fixed(t) && task.overlaps && task.lane_prev.valid()) {
      return std::max(ready, timeline_.start[task.lane_prev.index()]);
    }
    return std::max(ready, Clock(t));
  }

  void PlayNext() {
    std::vector<TaskId> candidates;
    std::optional<Turn> best;
    for (size_t i = 0; i < g_.size(); ++i) {
      const TaskId t(i);
      if (played_[i] || Dependent(t)) continue;
      candidates.push_back(t);
      const Turn turn{!Fixed(t), StartOf(t), g_.task(t).lane};
      if (!best || turn < *best) best = turn;
    }
    const auto [reorders, time, lane] = *best;
    std::optional<std::tuple<int64_t, Instant, TaskId>> chosen;
    for (TaskId t : candidates) {
      if (g_.task(t).lane != lane || StartOf(t) > time) continue;
      std::tuple key{-int64_t{g_.task(t).priority}, ReadyFrom(g_, timeline_, t), t};
      if (!chosen || key < *chosen) chosen = key;
    }
    Play(std::get<TaskId>(*chosen), time);
  }

  void Play(TaskId t, Instant start) {
    played_[t.index()] = true;
    timeline_.start[t.index()] = start;
    timeline_.end[t.index()] = EndFrom(g_, timeline_, t, start);
    Instant& clock = clock_[g_.task(t).lane.index()];
    clock = std::max(clock, timeline_.end[t.index()] + GapOf(g_.task(t)));
    if (!Fixed(t)) clock = std::max(clock, start);
  }

  const Graph& g_;
  Timeline timeline_;
  std::vector<bool> played_;
  std::vector<Instant> clock_;
};

}  // namespace

Timeline OracleTimeline(const Graph& graph) {
  const bool reorders = std::any_of(graph.lanes().begin(), graph.lanes().end(),
                                    [](const auto& l) { return l.order != LaneOrder::kFixed; });
  Timeline timeline = reorders ? Chooser(graph).Run() : Fixpoint(graph);
  for (Instant end : timeline.end) {
    timeline.makespan = std::max(timeline.makespan, end - Instant::AtNs(0));
  }
  return timeline;
}

}  // namespace daydream
