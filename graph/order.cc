#include "graph/order.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <utility>

#include "graph/edges_into.h"
#include "graph/large_pages.h"
#include "graph/order_by_place.h"

namespace daydream {
namespace {

bool FixedOrder(const Graph& g, const Task& t) { return g.lane(t.lane).order == LaneOrder::kFixed; }

bool AllFixed(const Graph& g) {
  return std::ranges::all_of(g.lanes(),
                             [](const GraphLane& lane) { return lane.order == LaneOrder::kFixed; });
}

// What has to come behind a task on its lane, None: nothing.
struct NextOfTask {
  const Graph& g;
  TaskId operator()(TaskId t) const {
    const Task& task = g.task(t);
    return FixedOrder(g, task) ? task.lane_next : TaskId::None();
  }
};
struct NextInColumn {
  std::span<const TaskId> next;
  TaskId operator()(TaskId t) const { return next[t.index()]; }
};

template <class Next>
bool InTaskIdOrder(const Graph& g, const Next& next) {
  for (const Edge& e : g.edges()) {
    if (e.from >= e.to) return false;
  }
  for (size_t i = 0; i < g.size(); ++i) {
    if (next(TaskId(i)) <= TaskId(i)) return false;
  }
  return true;
}

// The likely order; empty where some task would come before one that it depends on.
std::vector<TaskId> LikelyOrder(const Graph& g) {
  if (g.likely_order() == nullptr || g.likely_order()->size() != g.size()) return {};
  const std::vector<TaskId>& order = *g.likely_order();
  std::vector<uint32_t> place(g.size());
  std::vector<TaskId> last(g.lanes().size());
  for (size_t i = 0; i < order.size(); ++i) {
    const Task& task = g.task(order[i]);
    place[order[i].index()] = static_cast<uint32_t>(i);
    const TaskId before = std::exchange(last[task.lane.index()], order[i]);
    if (before != task.lane_prev && FixedOrder(g, task)) return {};
  }
  const bool holds = std::ranges::all_of(
      g.edges(), [&](const Edge& e) { return place[e.from.index()] < place[e.to.index()]; });
  return holds ? order : std::vector<TaskId>();
}

// The edges of each task, and how much each task still waits for. Most tasks have no edge: those of
// one are a list, which takes less memory than where each one's begin.
struct Waiting {
  explicit Waiting(const Graph& g) {
    const std::span<const Edge> edges = g.edges();
    ReserveLarge(of, g.size());
    of.resize(g.size());
    ReserveLarge(next, edges.size());
    next.resize(edges.size());
    const bool all_fixed = AllFixed(g);
    if (all_fixed) {
      for (const GraphLane& lane : g.lanes()) {
        if (lane.first.valid()) --of[lane.first.index()].open;
      }
    } else {
      for (size_t i = 0; i < g.size(); ++i) {
        const Task& t = g.tasks()[i];
        if (!t.lane_prev.valid() || !FixedOrder(g, t)) --of[i].open;
      }
    }
    for (size_t i = edges.size(); i-- > 0;) {  // the first come to stand in front
      ++of[edges[i].to.index()].open;
      next[i] = {std::exchange(of[edges[i].from.index()].first, static_cast<uint32_t>(i)),
                 edges[i].to};
    }
    for (const GraphLane& lane : g.lanes()) {
      const bool fixed = lane.order == LaneOrder::kFixed;
      for (TaskId t = lane.first; t.valid(); t = fixed ? TaskId::None() : g.task(t).lane_next) {
        if (of[t.index()].open == 0) ready.push_back(t);
      }
    }
    std::ranges::sort(ready);
  }

  static constexpr uint32_t kNone = Id<void>::kNoneValue;
  struct OfTask {
    uint32_t open = 1;       // edges into it, and the task before it on a lane of fixed order
    uint32_t first = kNone;  // edge out of it
  };
  struct Target {
    uint32_t next;  // edge out of the same task, kNone: none
    TaskId to;
  };
  std::vector<OfTask> of;     // by task
  std::vector<Target> next;   // by edge
  std::vector<TaskId> ready;  // that wait for nothing
};

absl::Status CycleError(const Graph& g) {
  std::string text;
  std::vector<TaskId> cycle = FindCycle(g);
  constexpr size_t kShown = 4, kShownOfName = 40;
  for (size_t i = 0; i < cycle.size() && i < kShown; ++i) {
    fmt::format_to(std::back_inserter(text), "task {} '{}' -> ", cycle[i].value,
                   g.TaskName(cycle[i]).substr(0, kShownOfName));
  }
  if (cycle.size() > kShown)
    fmt::format_to(std::back_inserter(text), "({} more) -> ", cycle.size() - kShown);
  return MakeStatus(
      absl::StatusCode::kFailedPrecondition,
      {.code = "E0628",
       .what = fmt::format("work waits for itself: {}task {}", text,
                           cycle.empty() ? 0 : cycle.front().value),
       .why = "what an optimization adds comes behind work that comes behind it; the "
              "recording may mix up threads, streams or processes",
       .effect = "no step can be predicted",
       .fix = "look up the calls and GPU work named here in a timeline (daydream export "
              "TRACE --to perfetto): are they on the threads and streams that the "
              "program used? If so, it is our mistake"});
}

template <class Next>
absl::StatusOr<std::vector<TaskId>> OrderAlongLanes(const Graph& g, const Next& next_of) {
  std::vector<TaskId> order;
  ReserveLarge(order, g.size());
  if (InTaskIdOrder(g, next_of)) {
    for (size_t i = 0; i < g.size(); ++i) order.push_back(TaskId(i));
    return order;
  }
  if (std::vector<TaskId> likely = LikelyOrder(g); !likely.empty()) return likely;
  Waiting w(g);
  std::vector<TaskId>& ready = w.ready;  // first in, first out
  for (size_t head = 0; head < ready.size(); ++head) {
    TaskId t = ready[head];
    while (true) {  // along the lane for as long as nothing else is in the way
      order.push_back(t);
      for (uint32_t k = w.of[t.index()].first; k != Waiting::kNone; k = w.next[k].next) {
        const TaskId to = w.next[k].to;
        if (--w.of[to.index()].open == 0) ready.push_back(to);
      }
      const TaskId next = next_of(t);
      if (!next.valid() || --w.of[next.index()].open != 0) break;
      t = next;
    }
    if (order.size() == g.size()) return order;
  }
  return CycleError(g);
}

}  // namespace

absl::StatusOr<std::vector<TaskId>> EvaluationOrder(const Graph& g) {
  return OrderAlongLanes(g, NextOfTask{g});
}

absl::StatusOr<std::vector<TaskId>> EvaluationOrder(const Graph& g,
                                                    std::span<const TaskId> next_on_lane) {
  return OrderAlongLanes(g, NextInColumn{next_on_lane});
}

namespace {

// Merges lanes by time: each stands at a task until what that waits for has come. A task of a lane
// that may reorder is a lane of its own.
class LaneMerge {
 public:
  explicit LaneMerge(const Graph& g)
      : g_(g), into_(g), place_(g.size()), waiting_(g.size(), kNone) {
    for (const GraphLane& lane : g.lanes()) {
      if (!lane.first.valid()) continue;
      if (lane.order == LaneOrder::kFixed) {
        lanes_.push_back({.at = lane.first});
        continue;
      }
      for (TaskId t = lane.first; t.valid(); t = g.task(t).lane_next) lanes_.push_back({.at = t});
    }
  }

  // Those for which `wanted` holds.
  template <class Wanted>
  std::vector<TaskId> Run(const Wanted& wanted) {
    std::vector<TaskId> order;
    order.reserve(g_.size());
    for (uint32_t l = 0; l < lanes_.size(); ++l) {
      Arrive(lanes_[l], {});
      if (const auto entry = Ready(l)) ready_.push(*entry);
    }
    std::optional<Entry> next;  // mostly the one behind the last task, which needs no queue
    while (next.has_value() || !ready_.empty()) {
      if (!next.has_value() || (!ready_.empty() && ready_.top() < *next)) {
        const Entry first = ready_.top();
        ready_.pop();
        if (next.has_value()) ready_.push(*next);
        next = first;
      }
      const TaskId t = next->task;
      const uint32_t lane = next->lane;
      next.reset();
      const Task& task = g_.task(t);
      if (wanted(task)) order.push_back(t);
      place_[t.index()] = lanes_[lane].place;
      // Those who wait for it go on before its own lane does, which may take their places.
      uint32_t other = std::exchange(waiting_[t.index()], kCame);
      while (other != kNone) {
        const uint32_t behind = lanes_[other].next_waiting;
        if (const auto entry = Ready(other)) ready_.push(*entry);
        other = behind;
      }
      if (!task.lane_next.valid() || !FixedOrder(g_, task)) continue;
      lanes_[lane].at = task.lane_next;
      Arrive(lanes_[lane], place_[t.index()]);
      next = Ready(lane);
    }
    return order;
  }

 private:
  struct Place {
    uint16_t step = 0;
    Instant start = Instant::Min();
    auto operator<=>(const Place&) const = default;
  };
  struct Lane {
    TaskId at;
    uint32_t edge = 0;              // those before it have come
    uint32_t next_waiting = kNone;  // lane for the same task
    Place place = {};
  };
  struct Entry {
    Place place;
    TaskId task;
    uint32_t lane;
    auto operator<=>(const Entry&) const = default;
  };
  static constexpr uint32_t kNone = 0xffffffff, kCame = 0xfffffffe;

  void Arrive(Lane& lane, Place before) {
    const Task& task = g_.task(lane.at);
    lane.edge = into_.begin[lane.at.index()];
    lane.place = std::max(before, Place{task.step, task.recorded_start});
  }

  // None while the lane waits.
  std::optional<Entry> Ready(uint32_t l) {
    Lane& lane = lanes_[l];
    for (const uint32_t end = into_.begin[lane.at.index() + 1]; lane.edge < end; ++lane.edge) {
      const size_t from = g_.edges()[into_.edge[lane.edge]].from.index();
      if (waiting_[from] != kCame) {
        lane.next_waiting = std::exchange(waiting_[from], l);
        return std::nullopt;
      }
      lane.place = std::max(lane.place, place_[from]);
    }
    return Entry{lane.place, lane.at, l};
  }

  const Graph& g_;
  const EdgesInto into_;
  std::vector<Place> place_;       // by task that came
  std::vector<uint32_t> waiting_;  // by task: the last lane that waits for it, or that it came
  std::vector<Lane> lanes_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready_;
};

}  // namespace

std::vector<TaskId> OrderInTime(const Graph& g) {
  return LaneMerge(g).Run([](const Task&) { return true; });
}

std::vector<TaskId> OrderInTime(const Graph& g, absl::FunctionRef<bool(const Task&)> wanted) {
  if (auto order = OrderByPlace(g, wanted)) return *std::move(order);
  return LaneMerge(g).Run(wanted);
}

}  // namespace daydream
