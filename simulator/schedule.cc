// The frontier algorithm of Daydream (ATC '20, section 4.4, algorithm 1): keep the tasks whose
// dependencies are done, run the one that can start first, repeat. Two things keep it fast. On
// lanes of fixed order no choice is made, so their tasks are played as soon as they are ready, in
// any order. And a lane that may reorder holds its own queues, so that the frontier has one entry
// for each such lane, however many tasks are ready.
#include "simulator/schedule.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "graph/large_pages.h"
#include "graph/order.h"
#include "simulator/blockers.h"

namespace daydream {
namespace {

constexpr Instant kNever = Instant::Min();

// Ready tasks of a lane that may reorder.
class ReadyQueue {
 public:
  bool empty() const { return later_.empty() && now_.empty(); }
  void Add(TaskId t, int32_t priority, Instant ready) { later_.push({ready, t, priority}); }
  // When the lane, free from `clock` on, will take its next task. REQUIRES: not empty.
  Instant NextStart(Instant clock) const {
    return now_.empty() ? std::max(clock, later_.top().ready) : clock;
  }
  // The task that the lane takes at `time` = NextStart(clock).
  TaskId Take(Instant time) {
    for (; !later_.empty() && later_.top().ready <= time; later_.pop()) now_.push(later_.top());
    TaskId t = now_.top().task;
    now_.pop();
    return t;
  }

 private:
  struct Entry {
    Instant ready;
    TaskId task;
    int32_t priority;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return std::tie(a.ready, a.task) > std::tie(b.ready, b.task);
    }
  };
  struct LessUrgent {
    bool operator()(const Entry& a, const Entry& b) const {
      return std::tie(b.priority, a.ready, a.task) > std::tie(a.priority, b.ready, b.task);
    }
  };
  std::priority_queue<Entry, std::vector<Entry>, Later> later_;     // not known to be ready yet
  std::priority_queue<Entry, std::vector<Entry>, LessUrgent> now_;  // ready at the last Take
};

class Scheduler {
 public:
  explicit Scheduler(const Graph& g) : g_(g), lanes_(g.lanes().size()) {
    SortEdges();
    for (size_t l = 0; l < lanes_.size(); ++l) {
      lanes_[l].fixed = g.lanes()[l].order == LaneOrder::kFixed;
    }
    ReserveLarge(timeline_.start, g.size());
    ReserveLarge(timeline_.end, g.size());
    timeline_.start.resize(g.size());
    timeline_.end.assign(g.size(), kNever);
    for (size_t i = 0; i < g.size(); ++i) {
      const Task& t = g.tasks()[i];
      timeline_.start[i] = std::max(t.earliest, Instant::AtNs(0));
      if (t.lane_prev.valid() && lanes_[t.lane.index()].fixed) ++open_[i];
    }
  }

  absl::StatusOr<Timeline> Run(SimulateOptions options) {
    if (options.blockers) order_.reserve(g_.size());
    for (size_t i = 0; i < g_.size(); ++i) {
      if (open_[i] == 0) Release(TaskId(i));
    }
    PlayReleased();
    while (!frontier_.empty()) {
      const Turn turn = frontier_.top();
      frontier_.pop();
      LaneState& lane = lanes_[turn.lane];
      if (turn.number != lane.turn) continue;  // replaced by an earlier turn
      lane.planned = false;                    // what Play releases may be for this very lane
      Play(lane.ready.Take(turn.time), turn.time, lane);
      PlayReleased();
      PlanTurn(turn.lane, lane);
    }
    if (played_ != g_.size()) return EvaluationOrder(g_).status();
    for (Instant end : timeline_.end) {
      timeline_.makespan = std::max(timeline_.makespan, end - Instant::AtNs(0));
    }
    if (options.blockers) FindBlockers(g_, order_, timeline_);
    return std::move(timeline_);
  }

 private:
  struct OutEdge {
    Duration lag;
    TaskId to;
    Anchor from_anchor, to_anchor;
  };
  struct LaneState {
    Instant clock{kNever};  // free from here on
    bool fixed = true;
    // The rest is for lanes that may reorder.
    bool planned = false;  // a turn is in the frontier
    Instant planned_at;
    uint32_t turn = 0;  // number of that turn
    ReadyQueue ready;
  };
  // A lane that may reorder takes its next task.
  struct Turn {
    Instant time;
    uint32_t lane;
    uint32_t number;
    bool operator>(const Turn& o) const { return std::tie(time, lane) > std::tie(o.time, o.lane); }
  };

  // Fills begin_, out_ and open_.
  void SortEdges() {
    begin_.resize(g_.size() + 1);
    open_.resize(g_.size());
    for (const Edge& e : g_.edges()) {
      ++begin_[e.from.index()];
      ++open_[e.to.index()];
    }
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    ReserveLarge(out_, g_.edges().size());
    out_.resize(g_.edges().size());
    for (size_t i = g_.edges().size(); i-- > 0;) {  // backwards: ends become begins
      const Edge& e = g_.edges()[i];
      out_[--begin_[e.from.index()]] = {e.lag, e.to, e.from_anchor, e.to_anchor};
    }
  }

  // All dependencies of `t` are played. Its row is read when its turn comes; by then it is near.
  void Release(TaskId t) {
    __builtin_prefetch(&g_.task(t));
    released_.push_back(t);
  }

  // Plays what was released on lanes of fixed order, and what that releases; puts the rest into
  // the queues of their lanes.
  void PlayReleased() {
    for (size_t i = 0; i < released_.size(); ++i) {
      const TaskId t = released_[i];
      const Task& task = g_.task(t);
      LaneState& lane = lanes_[task.lane.index()];
      const Instant ready = timeline_.start[t.index()];
      if (lane.fixed) {
        const bool beside = task.overlaps && task.lane_prev.valid();
        const Instant bound = beside ? timeline_.start[task.lane_prev.index()] : lane.clock;
        Play(t, std::max(ready, bound), lane);
      } else {
        lane.ready.Add(t, task.priority, ready);
        PlanTurn(task.lane.value, lane);
      }
    }
    released_.clear();
  }

  // Puts the lane's next turn into the frontier, unless one as early is there.
  void PlanTurn(uint32_t id, LaneState& lane) {
    if (lane.ready.empty()) return;
    const Instant time = lane.ready.NextStart(lane.clock);
    if (lane.planned && lane.planned_at <= time) return;
    lane.planned = true;
    lane.planned_at = time;
    frontier_.push({time, id, ++lane.turn});
  }

  void Play(TaskId t, Instant start, LaneState& lane) {
    ++played_;
    if (order_.capacity() != 0) order_.push_back(t);
    const Task& task = g_.task(t);
    const Instant end =
        std::max(timeline_.end[t.index()], task.removed ? start : start + task.duration);
    timeline_.start[t.index()] = start;
    timeline_.end[t.index()] = end;
    lane.clock = std::max(lane.clock, task.removed ? end : end + task.gap);
    if (!lane.fixed) lane.clock = std::max(lane.clock, start);
    for (uint32_t k = begin_[t.index()]; k < begin_[t.index() + 1]; ++k) {
      const OutEdge& e = out_[k];
      const Instant at = (e.from_anchor == Anchor::kStart ? start : end) + e.lag;
      Instant& bound =
          (e.to_anchor == Anchor::kStart ? timeline_.start : timeline_.end)[e.to.index()];
      bound = std::max(bound, at);
      if (--open_[e.to.index()] == 0) Release(e.to);
    }
    if (lane.fixed && task.lane_next.valid() && --open_[task.lane_next.index()] == 0) {
      Release(task.lane_next);
    }
  }

  const Graph& g_;
  std::vector<LaneState> lanes_;
  std::vector<uint32_t> begin_;  // edges that leave task t: out_[begin_[t] .. begin_[t + 1])
  std::vector<OutEdge> out_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> frontier_;
  std::vector<TaskId> released_;  // first in, first out
  std::vector<TaskId> order_;     // in which tasks were played; only kept for blockers
  size_t played_ = 0;
  std::vector<uint32_t> open_;  // dependencies of each task that are not played yet
  // Before a task is played, its start and end are the latest constraints on them so far.
  Timeline timeline_;
};

}  // namespace

absl::StatusOr<Timeline> Schedule(const Graph& graph, SimulateOptions options) {
  return Scheduler(graph).Run(options);
}

}  // namespace daydream
