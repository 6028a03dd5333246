#include "graph/order.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <utility>

namespace daydream {
namespace {

bool FixedOrder(const Graph& g, const Task& t) { return g.lane(t.lane).order == LaneOrder::kFixed; }

bool InTaskIdOrder(const Graph& g) {
  for (const Edge& e : g.edges()) {
    if (e.from >= e.to) return false;
  }
  for (size_t i = 0; i < g.size(); ++i) {
    const Task& t = g.tasks()[i];
    if (t.lane_prev.valid() && t.lane_prev.index() >= i && FixedOrder(g, t)) return false;
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

// Targets of the edges of each task, and how much each task still waits for.
struct Waiting {
  explicit Waiting(const Graph& g)
      : begin(g.size() + 1), targets(g.edges().size()), open(g.size()) {
    for (const Edge& e : g.edges()) {
      ++begin[e.from.index()];
      ++open[e.to.index()];
    }
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    // Where each one's end; the last are put in first.
    const std::span<const Edge> edges = g.edges();
    for (auto e = edges.rbegin(); e != edges.rend(); ++e) targets[--begin[e->from.index()]] = e->to;
    const bool all_fixed = std::ranges::all_of(
        g.lanes(), [](const GraphLane& lane) { return lane.order == LaneOrder::kFixed; });
    if (all_fixed) {
      for (uint32_t& of_task : open) ++of_task;
      for (const GraphLane& lane : g.lanes()) {
        if (lane.first.valid()) --open[lane.first.index()];
      }
      return;
    }
    for (size_t i = 0; i < g.size(); ++i) {
      const Task& t = g.tasks()[i];
      if (t.lane_prev.valid() && FixedOrder(g, t)) ++open[i];
    }
  }
  std::vector<uint32_t> begin;
  std::vector<TaskId> targets;
  std::vector<uint32_t> open;
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

}  // namespace

absl::StatusOr<std::vector<TaskId>> EvaluationOrder(const Graph& g) {
  std::vector<TaskId> order;
  order.reserve(g.size());
  if (InTaskIdOrder(g)) {
    for (size_t i = 0; i < g.size(); ++i) order.push_back(TaskId(i));
    return order;
  }
  if (std::vector<TaskId> likely = LikelyOrder(g); !likely.empty()) return likely;
  Waiting w(g);
  std::vector<TaskId> ready;  // first in, first out
  for (size_t i = 0; i < g.size(); ++i) {
    if (w.open[i] == 0) ready.push_back(TaskId(i));
  }
  for (size_t head = 0; head < ready.size(); ++head) {
    TaskId t = ready[head];
    while (true) {  // along the lane for as long as nothing else is in the way
      order.push_back(t);
      for (uint32_t k = w.begin[t.index()]; k < w.begin[t.index() + 1]; ++k) {
        TaskId to = w.targets[k];
        if (--w.open[to.index()] == 0) ready.push_back(to);
      }
      TaskId next = g.task(t).lane_next;
      if (!next.valid() || !FixedOrder(g, g.task(t)) || --w.open[next.index()] != 0) break;
      t = next;
    }
  }
  if (order.size() != g.size()) return CycleError(g);
  return order;
}

std::vector<TaskId> OrderInTime(const Graph& g) {
  using Place = std::pair<uint16_t, Instant>;
  using Entry = std::pair<Place, TaskId>;
  Waiting w(g);
  std::vector<Place> place(g.size());
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (size_t i = 0; i < g.size(); ++i) {
    place[i] = {g.tasks()[i].step, g.tasks()[i].recorded_start};
    if (w.open[i] == 0) ready.push({place[i], TaskId(i)});
  }
  std::vector<TaskId> order;
  order.reserve(g.size());
  // The first of those that the last task released; mostly it is next, and needs no queue.
  std::optional<Entry> released;
  while (!ready.empty() || released.has_value()) {
    Entry first;
    if (released.has_value() && (ready.empty() || *released < ready.top())) {
      first = *released;
    } else {
      first = ready.top();
      ready.pop();
      if (released.has_value()) ready.push(*released);
    }
    released.reset();
    const TaskId t = first.second;
    order.push_back(t);
    auto release = [&](TaskId next) {
      place[next.index()] = std::max(place[next.index()], place[t.index()]);
      if (--w.open[next.index()] != 0) return;
      Entry entry{place[next.index()], next};
      if (released.has_value() && *released < entry) std::swap(entry, *released);
      if (released.has_value())
        ready.push(std::exchange(*released, entry));
      else
        released = entry;
    };
    for (uint32_t k = w.begin[t.index()]; k < w.begin[t.index() + 1]; ++k) release(w.targets[k]);
    const TaskId next = g.task(t).lane_next;
    if (next.valid() && FixedOrder(g, g.task(t))) release(next);
  }
  return order;
}

}  // namespace daydream
