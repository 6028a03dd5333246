#include "simulator/simulate.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "graph/facts.h"
#include "graph/large_pages.h"
#include "graph/order.h"
#include "graph/step_windows.h"
#include "simulator/blockers.h"
#include "simulator/lone_step.h"
#include "simulator/program.h"
#include "simulator/schedule.h"

namespace daydream {
namespace {

// Each place is written by a replay.
void MakeRoom(size_t tasks, Timeline& timeline) {
  const auto room = [tasks](std::vector<Instant>& times) {
    if (times.capacity() < tasks + 1) {
      times.clear();
      ReserveLarge(times, tasks + 1);
    }
    times.resize(tasks + 1);  // one more: rows without an edge read it
  };
  room(timeline.start);
  room(timeline.end);
  timeline.makespan = {};
}

Timeline EmptyTimeline(size_t tasks) {
  Timeline timeline;
  MakeRoom(tasks, timeline);
  return timeline;
}

void Finish(Timeline& timeline) {
  timeline.start.pop_back();
  timeline.end.pop_back();
  for (Instant end : timeline.end) {
    timeline.makespan = std::max(timeline.makespan, end - Instant::AtNs(0));
  }
}

}  // namespace

struct Plan::Impl {
  Program program;
};

absl::StatusOr<Plan> Plan::Make(const Graph& graph) {
  DD_ASSIGN_OR_RETURN(Program program, Program::Compile(graph));
  Plan plan;
  plan.impl_ = std::make_shared<const Impl>(Impl{std::move(program)});
  return plan;
}

absl::StatusOr<Plan> Plan::Of(const Graph& graph) {
  if (graph.wiring() == 0) return Make(graph);
  const auto make = [&] { return Make(graph); };
  return *FactOfTables<absl::StatusOr<Plan>>(graph, make, graph.wiring());
}

const Program& Plan::program() const { return impl_->program; }

bool Plan::SameStructure(const Graph& a, const Graph& b) {
  auto same_task = [](const Task& x, const Task& y) {
    return x.lane_prev == y.lane_prev && x.lane == y.lane && x.earliest == y.earliest &&
           x.removed == y.removed && x.overlaps == y.overlaps;
  };
  auto same_edge = [](const Edge& x, const Edge& y) {
    return x.from == y.from && x.to == y.to && x.from_anchor == y.from_anchor &&
           x.to_anchor == y.to_anchor;
  };
  auto same_lane = [](const GraphLane& x, const GraphLane& y) { return x.order == y.order; };
  return std::ranges::equal(a.lanes(), b.lanes(), same_lane) &&
         std::ranges::equal(a.edges(), b.edges(), same_edge) &&
         std::ranges::equal(a.tasks(), b.tasks(), same_task);
}

Timeline Plan::Run(const Graph& graph, SimulateOptions options) const {
  Timeline timeline = EmptyTimeline(graph.size());
  Evaluate(impl_->program, graph, timeline.start, timeline.end);
  Finish(timeline);
  if (options.blockers) {
    std::vector<TaskId> order;
    order.reserve(graph.size());
    for (const Row& row : impl_->program.rows) order.push_back(TaskId(row.task));
    FindBlockers(graph, order, timeline);
  }
  return timeline;
}

Timeline Plan::Run(std::span<const Duration> duration, std::span<const Duration> gap) const {
  Timeline timeline;
  Run(duration, gap, timeline);
  return timeline;
}

void Plan::Run(std::span<const Duration> duration, std::span<const Duration> gap,
               Timeline& timeline) const {
  timeline.start_blocker.clear(), timeline.end_blocker.clear();
  MakeRoom(duration.size(), timeline);
  Evaluate(impl_->program, duration, gap, timeline.start, timeline.end);
  Finish(timeline);
}

void Plan::Run(std::span<const Duration> duration, std::span<const Duration> gap,
               std::span<const Edge> edges, Timeline& timeline) const {
  MakeRoom(duration.size(), timeline);
  Evaluate(impl_->program, duration, gap, edges, timeline.start, timeline.end);
  timeline.start.pop_back();
  timeline.end.pop_back();
}

namespace {

std::vector<TaskId> LaneByLane(const Graph& graph) {
  std::vector<TaskId> order;
  order.reserve(graph.size());
  for (const GraphLane& lane : graph.lanes()) {
    for (TaskId t = lane.first; t.valid(); t = graph.task(t).lane_next) order.push_back(t);
  }
  return order;
}

// A graph without a wiring is not played again by who asks for this. `steps`: told all tasks; null:
// nobody asks.
absl::StatusOr<Timeline> PlayOnce(const Graph& graph, SimulateOptions options,
                                  TasksOfSteps* steps = nullptr) {
  Timeline timeline = EmptyTimeline(graph.size());
  const auto start = std::span(timeline.start).first(graph.size());
  const auto end = std::span(timeline.end).first(graph.size());
  const bool played =
      steps != nullptr ? EvaluateOnce(graph, start, end, *steps) : EvaluateOnce(graph, start, end);
  if (!played) {
    const absl::Status cycle = EvaluationOrder(graph).status();  // which names its tasks
    DD_CHECK(!cycle.ok());                                       // both know of the same edges
    return cycle;
  }
  Finish(timeline);
  if (options.blockers) FindBlockers(graph, LaneByLane(graph), timeline);
  return timeline;
}

bool MayReorder(const Graph& graph) {
  return std::ranges::any_of(graph.lanes(),
                             [](const GraphLane& lane) { return lane.order != LaneOrder::kFixed; });
}

}  // namespace

std::optional<Timeline> PlayOnceWith(const Graph& graph, std::span<const Duration> duration,
                                     std::span<const Duration> gap, std::span<const Edge> edges) {
  const auto reorders = [](const GraphLane& lane) { return lane.order != LaneOrder::kFixed; };
  if (std::ranges::any_of(graph.lanes(), reorders)) return std::nullopt;
  Timeline timeline;
  timeline.start.resize(graph.size());
  timeline.end.resize(graph.size());
  if (!EvaluateOnce(graph, duration, gap, edges, timeline.start, timeline.end)) return std::nullopt;
  return timeline;
}

absl::StatusOr<Timeline> Simulate(const Graph& graph, SimulateOptions options) {
  if (MayReorder(graph)) return Schedule(graph, {.blockers = options.blockers || options.path});
  if (graph.wiring() == 0 || options.once) return PlayOnce(graph, options);
  DD_ASSIGN_OR_RETURN(const Plan plan, Plan::Of(graph));
  return plan.Run(graph, options);
}

absl::StatusOr<PlayedSteps> PlaySteps(const Graph& graph) {
  PlayedSteps played;
  if (graph.wiring() != 0 || graph.steps().size() <= 1 || MayReorder(graph)) {
    DD_ASSIGN_OR_RETURN(played.timeline, Simulate(graph));
    played.periods = StepPeriods(graph, played.timeline);
    return played;
  }
  TasksOfSteps tasks(graph);
  DD_ASSIGN_OR_RETURN(played.timeline, PlayOnce(graph, {}, &tasks));
  const Timeline& at = played.timeline;
  played.periods =
      StepPeriods(graph, StepExtents(graph, std::move(tasks), nullptr, at.start, at.end), at.start);
  return played;
}

}  // namespace daydream
