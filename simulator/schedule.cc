// The frontier algorithm of Daydream (ATC '20, section 4.4, algorithm 1): keep the tasks whose
// dependencies are done, run the one that can start first, repeat. Tasks of one lane of fixed
// order become ready one by one, and a lane that may reorder holds its own queues, so the
// frontier has one entry a lane and stays small however many tasks are ready.
#include "simulator/schedule.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

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
  std::priority_queue<Entry, std::vector<Entry>, Later> later_;       // not known to be ready yet
  std::priority_queue<Entry, std::vector<Entry>, LessUrgent> now_;    // ready at the last Take
};

class Scheduler {
 public:
  explicit Scheduler(const Graph& g) : g_(g), lanes_(g.lanes().size()), tasks_(g.size()) {
    begin_.resize(g.size() + 1);
    for (const Edge& e : g.edges()) {
      ++begin_[e.from.index() + 1];
      ++tasks_[e.to.index()].open;
    }
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    std::vector<uint32_t> next(begin_.begin(), begin_.end() - 1);
    out_.resize(g.edges().size());
    for (const Edge& e : g.edges()) {
      out_[next[e.from.index()]++] = {e.lag, e.to, e.from_anchor, e.to_anchor};
    }
    bool reorders = false;
    for (size_t l = 0; l < lanes_.size(); ++l) {
      lanes_[l].fixed = g.lanes()[l].order == LaneOrder::kFixed;
      reorders |= !lanes_[l].fixed;
    }
    if (reorders) ran_before_.resize(g.size());
    timeline_.start.resize(g.size());
    timeline_.end.resize(g.size());
    for (size_t i = 0; i < g.size(); ++i) {
      const Task& t = g.tasks()[i];
      tasks_[i].ready = std::max(t.earliest, Instant::AtNs(0));
      if (t.lane_prev.valid() && lanes_[t.lane.index()].fixed) ++tasks_[i].open;
    }
  }

  absl::StatusOr<Timeline> Run(SimulateOptions options) {
    for (size_t i = 0; i < g_.size(); ++i) {
      if (tasks_[i].open == 0) Release(TaskId(i));
    }
    while (!frontier_.empty()) {
      const Turn turn = frontier_.top();
      frontier_.pop();
      LaneState& lane = lanes_[turn.lane];
      if (lane.fixed) {
        Play(lane.next, turn.time, lane);
        continue;
      }
      if (turn.number != lane.turn) continue;  // replaced by an earlier turn
      const TaskId t = lane.ready.Take(turn.time);
      ran_before_[t.index()] = lane.last;
      lane.planned = false;  // what Play releases may be for this very lane
      Play(t, turn.time, lane);
      PlanTurn(turn.lane, lane);
    }
    if (played_ != g_.size()) return EvaluationOrder(g_).status();
    for (Instant end : timeline_.end) {
      timeline_.makespan = std::max(timeline_.makespan, end - Instant::AtNs(0));
    }
    if (options.blockers) FindBlockers(g_, ran_before_, timeline_);
    return std::move(timeline_);
  }

 private:
  struct OutEdge {
    Duration lag;
    TaskId to;
    Anchor from_anchor, to_anchor;
  };
  struct TaskState {
    Instant ready;         // latest constraint on the start so far
    Instant held{kNever};  // latest constraint on the end so far
    uint32_t open = 0;     // dependencies not played yet
  };
  struct LaneState {
    Instant clock{kNever};  // free from here on
    TaskId last;            // played last
    bool fixed = true;
    TaskId next;            // fixed order: its turn is in the frontier
    bool planned = false;   // may reorder: a turn is in the frontier
    Instant planned_at;
    uint32_t turn = 0;      // number of that turn
    ReadyQueue ready;
  };
  // At one instant lanes of fixed order go first, so that all they make ready can be chosen from.
  struct Turn {
    Instant time;
    bool reorders;
    uint32_t lane;
    uint32_t number;
    bool operator>(const Turn& o) const {
      return std::tie(time, reorders, lane) > std::tie(o.time, o.reorders, o.lane);
    }
  };

  // All dependencies of `t` are played.
  void Release(TaskId t) {
    const Task& task = g_.task(t);
    LaneState& lane = lanes_[task.lane.index()];
    const Instant ready = tasks_[t.index()].ready;
    if (lane.fixed) {
      const bool beside = task.overlaps && task.lane_prev.valid();
      const Instant bound = beside ? timeline_.start[task.lane_prev.index()] : lane.clock;
      lane.next = t;
      frontier_.push({std::max(ready, bound), false, task.lane.value, 0});
      return;
    }
    lane.ready.Add(t, task.priority, ready);
    PlanTurn(task.lane.value, lane);
  }

  // Puts the lane's next turn into the frontier, unless one as early is there.
  void PlanTurn(uint32_t id, LaneState& lane) {
    if (lane.ready.empty()) return;
    const Instant time = lane.ready.NextStart(lane.clock);
    if (lane.planned && lane.planned_at <= time) return;
    lane.planned = true;
    lane.planned_at = time;
    frontier_.push({time, true, id, ++lane.turn});
  }

  void Play(TaskId t, Instant start, LaneState& lane) {
    ++played_;
    const Task& task = g_.task(t);
    const TaskState& state = tasks_[t.index()];
    const Instant end =
        std::max(state.held, task.removed ? start : start + task.duration);
    timeline_.start[t.index()] = start;
    timeline_.end[t.index()] = end;
    lane.clock = std::max(lane.clock, task.removed ? end : end + task.gap);
    if (!lane.fixed) lane.clock = std::max(lane.clock, start);
    lane.last = t;
    for (uint32_t k = begin_[t.index()]; k < begin_[t.index() + 1]; ++k) {
      const OutEdge& e = out_[k];
      TaskState& to = tasks_[e.to.index()];
      const Instant at = (e.from_anchor == Anchor::kStart ? start : end) + e.lag;
      Instant& bound = e.to_anchor == Anchor::kStart ? to.ready : to.held;
      bound = std::max(bound, at);
      if (--to.open == 0) Release(e.to);
    }
    if (lane.fixed && task.lane_next.valid() && --tasks_[task.lane_next.index()].open == 0) {
      Release(task.lane_next);
    }
  }

  const Graph& g_;
  std::vector<LaneState> lanes_;
  std::vector<TaskState> tasks_;
  std::vector<uint32_t> begin_;  // edges that leave task t: out_[begin_[t] .. begin_[t + 1])
  std::vector<OutEdge> out_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> frontier_;
  std::vector<TaskId> ran_before_;
  size_t played_ = 0;
  Timeline timeline_;
};

}  // namespace

absl::StatusOr<Timeline> Schedule(const Graph& graph, SimulateOptions options) {
  return Scheduler(graph).Run(options);
}

}  // namespace daydream
