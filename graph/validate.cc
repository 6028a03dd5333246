#include "graph/validate.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/order.h"
#include "graph/times_of_tasks.h"

namespace daydream {
namespace {

// No instant of a replay may come near the limits of int64: 2^60 ns are 36 years.
constexpr uint64_t kLongestReplay = uint64_t{1} << 60;

template <class... Args>
absl::Status TaskError(const Graph& g, size_t i, fmt::format_string<Args...> f, Args&&... args) {
  return FailedPrecondition("task {} '{}': {}", i, g.Name(g.tasks()[i].name),
                            fmt::format(f, std::forward<Args>(args)...));
}

bool InRange(uint32_t id, size_t size) { return id == Id<void>::kNoneValue || id < size; }

uint64_t Magnitude(int64_t v) { return v < 0 ? ~static_cast<uint64_t>(v) + 1 : uint64_t(v); }

absl::Status CheckTask(const Graph& g, size_t i) {
  const Task& t = g.tasks()[i];
  if (t.lane.index() >= g.lanes().size()) return TaskError(g, i, "no lane {}", t.lane.value);
  if (!InRange(t.lane_prev.value, g.size()) || !InRange(t.lane_next.value, g.size())) {
    return TaskError(g, i, "lane neighbour out of range");
  }
  if (!InRange(t.scope.value, g.tables().scopes.size())) {
    return TaskError(g, i, "no scope {}", t.scope.value);
  }
  if (!InRange(t.layer.value, g.layers().size())) {
    return TaskError(g, i, "no layer {}", t.layer.value);
  }
  if (t.step >= std::max<size_t>(g.steps().size(), 1)) {
    return TaskError(g, i, "no step {}", t.step);
  }
  if (t.duration.ns < 0) return TaskError(g, i, "duration {} ns < 0", t.duration.ns);
  if (t.earliest.ns < 0) return TaskError(g, i, "earliest {} ns < 0", t.earliest.ns);
  if (t.gap.ns < 0 && !IsGpu(t.kind) && t.kind != TaskKind::kDelay) {
    return TaskError(g, i, "gap {} ns < 0 after host work", t.gap.ns);
  }
  if (t.kind == TaskKind::kWait && t.duration.ns != 0) {
    return TaskError(g, i, "a wait with a duration of {} ns", t.duration.ns);
  }
  return absl::OkStatus();
}

// Every task is in exactly one list, its lane's, and both directions of the list agree.
absl::Status CheckLanes(const Graph& g) {
  size_t listed = 0;
  for (size_t l = 0; l < g.lanes().size(); ++l) {
    const GraphLane& lane = g.lanes()[l];
    TaskId before;
    for (TaskId t = lane.first; t.valid(); t = g.task(t).lane_next) {
      if (t.index() >= g.size()) return FailedPrecondition("lane {}: no task {}", l, t.value);
      if (g.task(t).lane.index() != l) {
        return TaskError(g, t.index(), "listed on lane {} but belongs to {}", l,
                         g.task(t).lane.value);
      }
      if (g.task(t).lane_prev != before) {
        return TaskError(g, t.index(), "lane list broken before it");
      }
      if (++listed > g.size()) return FailedPrecondition("lane {}: its list has no end", l);
      before = t;
    }
    if (lane.last != before) return FailedPrecondition("lane {}: wrong last task", l);
  }
  if (listed != g.size()) {
    return FailedPrecondition("{} of {} tasks are not in the list of their lane", g.size() - listed,
                              g.size());
  }
  return absl::OkStatus();
}

// Sums what a replay can take at the most, up to the limit.
class Length {
 public:
  void Add(const Task& t) {
    Add(t.duration.ns);
    Add(t.gap.ns);
    earliest_ = std::max(earliest_, Magnitude(t.earliest.ns));
  }
  void Add(int64_t v) {
    sum_ = std::min(sum_ + std::min(Magnitude(v), kLongestReplay), kLongestReplay);
  }
  uint64_t Most() const {
    return std::min(sum_ + std::min(earliest_, kLongestReplay), kLongestReplay);
  }
  absl::Status Check() const {
    if (Most() < kLongestReplay) return absl::OkStatus();
    return FailedPrecondition("durations, gaps and lags add up to more than 36 years");
  }

 private:
  uint64_t sum_ = 0, earliest_ = 0;
};

Length LengthOf(const Graph& g) {
  Length length;
  for (const Task& t : g.tasks()) length.Add(t);
  for (const Edge& e : g.edges()) length.Add(e.lag.ns);
  return length;
}

absl::Status CheckEdges(const Graph& g) {
  for (size_t i = 0; i < g.edges().size(); ++i) {
    const Edge& e = g.edges()[i];
    if (e.from.index() >= g.size() || e.to.index() >= g.size()) {
      return FailedPrecondition("edge {}: joins tasks {} and {} of {}", i, e.from.value, e.to.value,
                                g.size());
    }
  }
  return absl::OkStatus();
}

// Whether nothing is to be said of a graph, by one walk over its tasks.
bool IsWell(const Graph& g) {
  Length length;
  size_t listed = 0;
  for (size_t l = 0; l < g.lanes().size(); ++l) {
    TaskId before;
    for (TaskId t = g.lanes()[l].first; t.valid(); t = g.task(t).lane_next) {
      if (t.index() >= g.size() || ++listed > g.size()) return false;
      const Task& task = g.task(t);
      if (task.lane.index() != l || task.lane_prev != before) return false;
      if (!CheckTask(g, t.index()).ok()) return false;
      length.Add(task);
      before = t;
    }
    if (g.lanes()[l].last != before) return false;
  }
  for (const Edge& e : g.edges()) length.Add(e.lag.ns);
  return listed == g.size() && CheckEdges(g).ok() && length.Check().ok();
}

}  // namespace

bool TimesOfTasks::AreFarFromLimit(const Graph& graph) const {
  TimesOfTasks all = *this;
  for (const Edge& e : graph.edges()) all.Add(e.lag.ns);
  const uint64_t numbers = 3 * graph.size() + graph.edges().size();
  return all.bits_ < kLongestReplay / (numbers + 1) - 1;
}

bool TimesOfTasks::AreFarFromLimit(size_t tasks, uint64_t more) const {
  return bits_ + 1 < (kLongestReplay - std::min(more, kLongestReplay)) / (3 * tasks + 1);
}

absl::Status FitsReplay(const Graph& graph) {
  TimesOfTasks times;
  for (const Task& t : graph.tasks()) times.AddLength(t);
  return times.AreFarFromLimit(graph) ? absl::OkStatus() : LengthOf(graph).Check();
}

ReplayBound BoundReplay(const Graph& graph) { return {LengthOf(graph).Most()}; }

absl::Status ValidateRetimed(const Graph& graph, ReplayBound then) {
  TimesOfTasks times;
  for (TaskId t : graph.retimed()) times.Add(graph.task(t));
  const bool fits = times.AreFarFromLimit(graph.retimed().size(), then.ns);
  return times.well() && fits ? absl::OkStatus() : ValidateButCycles(graph);
}

absl::Status ValidateButCycles(const Graph& graph) {
  if (IsWell(graph)) return absl::OkStatus();
  for (size_t i = 0; i < graph.size(); ++i) DD_RETURN_IF_ERROR(CheckTask(graph, i));
  DD_RETURN_IF_ERROR(CheckLanes(graph));
  DD_RETURN_IF_ERROR(CheckEdges(graph));
  return FitsReplay(graph);
}

absl::Status Validate(const Graph& graph) {
  DD_RETURN_IF_ERROR(ValidateButCycles(graph));
  return EvaluationOrder(graph).status();
}

}  // namespace daydream
