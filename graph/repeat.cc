#include "graph/repeat.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "graph/queue.h"
#include "graph/queue_places.h"

namespace daydream {
namespace {

// By step of the run and lane, where its tasks begin among `tasks`: those of the steps, one step
// after the other.
std::vector<uint32_t> BeginsOf(const Graph& source, std::span<const TaskId> tasks, StepRun run) {
  const size_t lanes = source.lanes().size();
  std::vector<uint32_t> begins(run.steps * lanes + 1);
  for (TaskId t : tasks) {
    const Task& task = source.task(t);
    ++begins[(task.step - run.first) * lanes + task.lane.index() + 1];
  }
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  return begins;
}

// Where tasks stand in each round of a run.
class Places {
 public:
  Places(const Graph& source, std::span<const int32_t> place, std::span<const uint32_t> begins,
         StepRun run)
      : source_(source), place_(place), begins_(begins), run_(run) {}

  struct Place {
    uint32_t at = 0;    // among the tasks of the steps
    uint32_t back = 0;  // so many rounds before
  };
  // Seen from the steps of the run; none where nothing stands there.
  std::optional<Place> Of(TaskId t) const {
    const auto steps = static_cast<int>(run_.steps);
    int step = static_cast<int>(source_.task(t).step) - static_cast<int>(run_.first);
    uint32_t back = 0;
    for (; step < 0; step += steps) ++back;
    const size_t lane =
        static_cast<size_t>(step) * source_.lanes().size() + source_.task(t).lane.index();
    const int64_t at = static_cast<int64_t>(begins_[lane + 1]) + place_[t.index()];
    if (at < static_cast<int64_t>(begins_[lane])) return std::nullopt;
    return Place{static_cast<uint32_t>(at), back};
  }

 private:
  const Graph& source_;
  const std::span<const int32_t> place_;
  const std::span<const uint32_t> begins_;
  const StepRun run_;
};

class Repeated {
 public:
  // `tasks` and `edges` are those of the steps, one step after the other, and so is `order`.
  Repeated(const Graph& source, const Graph& empty, std::span<const int32_t> place,
           std::span<const TaskId> tasks, std::span<const TaskId> order,
           std::span<const uint32_t> edges, StepRun run, int times)
      : source_(source),
        tasks_(tasks),
        order_(order),
        edges_(edges),
        run_(run),
        times_(times),
        begins_(BeginsOf(source, tasks, run)),
        places_(source, place, begins_, run),
        result_(empty) {}

  Graph Run() {
    result_.Reserve(tasks_.size() * static_cast<size_t>(times_),
                    edges_.size() * static_cast<size_t>(times_));
    for (int copy = 0; copy < times_; ++copy) CopyTasks(copy);
    for (int copy = 0; copy < times_; ++copy) CopyEdges(copy);
    RebuildQueueEdges(result_, std::vector<bool>(result_.lanes().size(), true));
    if (!order_.empty()) result_.TellLikelyOrder(LikelyOrder());
    return std::move(result_);
  }

 private:
  void CopyTasks(int copy) {
    std::vector<uint16_t> made_steps;
    for (size_t s = run_.first; s < run_.first + run_.steps; ++s) {
      const GraphStep& step = source_.steps()[s];
      made_steps.push_back(result_.AddStep(
          {.label = step.label, .measured = copy > 0, .recorded_period = step.recorded_period}));
    }
    for (TaskId t : tasks_) {
      Task task = source_.task(t);
      task.step = made_steps[task.step - run_.first];
      if (copy > 0) task.earliest = {};
      const TaskId made = result_.Append(task);
      if (task.kind == TaskKind::kCollective) result_.SetTransfer(made, source_.Transfer(t));
    }
  }

  // The task in copy `copy` that stands where `t` stands, seen from the steps of the run; None when
  // it would be before the first copy.
  TaskId Standing(TaskId t, int copy) const {
    const auto place = places_.Of(t);
    if (!place.has_value() || place->back > static_cast<uint32_t>(copy)) return TaskId::None();
    return TaskId((static_cast<size_t>(copy) - place->back) * tasks_.size() + place->at);
  }

  void CopyEdges(int copy) {
    for (uint32_t e : edges_) {
      Edge edge = source_.edges()[e];
      if (source_.task(edge.from).step > source_.task(edge.to).step) continue;
      edge.from = Standing(edge.from, copy);
      edge.to = Standing(edge.to, copy);
      if (edge.from.valid() && edge.to.valid()) result_.AddEdge(edge);
    }
  }

  // Each copy in the order of the source.
  std::vector<TaskId> LikelyOrder() const {
    std::vector<TaskId> order;
    order.reserve(result_.size());
    for (int copy = 0; copy < times_; ++copy) {
      for (TaskId t : order_) order.push_back(Standing(t, copy));
    }
    return order;
  }

  const Graph& source_;
  const std::span<const TaskId> tasks_;  // of the run: so many has each copy
  const std::span<const TaskId> order_;  // the same, each behind those that it depends on; or none
  const std::span<const uint32_t> edges_;
  const StepRun run_;
  const int times_;
  const std::vector<uint32_t> begins_;
  const Places places_;
  Graph result_;
};

}  // namespace

StepRepeater::StepRepeater(const Graph& graph)
    : source_(graph),
      empty_(graph.WithoutTasks()),
      place_(graph.size()),
      tasks_(graph.size()),
      tasks_begin_(graph.steps().size() + 1),
      edges_begin_(graph.steps().size() + 1) {
  std::vector<uint16_t> step_of(graph.size());
  for (size_t i = 0; i < graph.size(); ++i) {
    step_of[i] = graph.tasks()[i].step;
    ++tasks_begin_[step_of[i] + 1];
  }
  // Queue edges are found anew, but of records of events only those that were there before.
  const auto part = [&](const Edge& e) {
    return e.rule != Rule::kQueue || RecordsEvent(graph, e.to);
  };
  for (const Edge& e : graph.edges()) {
    if (part(e)) ++edges_begin_[step_of[e.to.index()] + 1];
  }
  std::partial_sum(tasks_begin_.begin(), tasks_begin_.end(), tasks_begin_.begin());
  std::partial_sum(edges_begin_.begin(), edges_begin_.end(), edges_begin_.begin());
  edges_.resize(edges_begin_.back());
  std::vector<size_t> next(tasks_begin_.begin() + 1, tasks_begin_.end());
  std::vector<int32_t> behind(graph.steps().size());  // tasks of a step behind this one on the lane
  std::vector<uint16_t> met;                          // steps of the lane
  for (size_t l = graph.lanes().size(); l-- > 0;) {
    const GraphLane& lane = graph.lane(LaneId(l));
    for (TaskId t = lane.last; t.valid(); t = graph.task(t).lane_prev) {
      const uint16_t step = step_of[t.index()];
      if (behind[step] == 0) met.push_back(step);
      place_[t.index()] = -++behind[step];
      tasks_[--next[step]] = t;
    }
    for (uint16_t step : met) behind[step] = 0;
    met.clear();
  }
  const std::vector<TaskId>* likely = graph.likely_order();
  if (likely != nullptr && likely->size() == graph.size()) {
    order_.resize(graph.size());
    for (TaskId t : *likely) order_[next[step_of[t.index()]]++] = t;
  }
  next.assign(edges_begin_.begin(), edges_begin_.end() - 1);
  for (size_t i = 0; i < graph.edges().size(); ++i) {
    const Edge& e = graph.edges()[i];
    if (part(e)) edges_[next[step_of[e.to.index()]]++] = static_cast<uint32_t>(i);
  }
}

Graph StepRepeater::Repeat(StepRun run, int times) const {
  const size_t end = run.first + run.steps;
  const size_t tasks = tasks_begin_[run.first], edges = edges_begin_[run.first];
  const size_t count = tasks_begin_[end] - tasks;
  const auto order = order_.empty() ? std::span<const TaskId>() : std::span(order_);
  return Repeated(source_, empty_, place_, std::span(tasks_).subspan(tasks, count),
                  order.empty() ? order : order.subspan(tasks, count),
                  std::span(edges_).subspan(edges, edges_begin_[end] - edges), run, times)
      .Run();
}

std::span<const TaskId> StepRepeater::TasksOf(uint16_t step) const {
  return std::span(tasks_).subspan(tasks_begin_[step], tasks_begin_[step + 1] - tasks_begin_[step]);
}

std::vector<uint32_t> StepRepeater::LanesOf(uint16_t step) const {
  return BeginsOf(source_, TasksOf(step), {.first = step});
}

void StepRepeater::ForEachEdge(uint16_t step, std::span<const uint32_t> lanes,
                               absl::FunctionRef<void(const RoundEdge&)> each) const {
  const Places places(source_, place_, lanes, {.first = step});
  for (size_t i = edges_begin_[step]; i < edges_begin_[step + 1]; ++i) {
    const Edge& e = source_.edges()[edges_[i]];
    if (source_.task(e.from).step > step) continue;
    const auto from = places.Of(e.from), to = places.Of(e.to);
    if (from && to) each({.from = from->at, .to = to->at, .back = from->back, .edge = edges_[i]});
  }
}

absl::StatusOr<Graph> RepeatStep(const Graph& graph, uint16_t step, int times) {
  if (step >= graph.steps().size() || times < 1 || times > kMostCopies) {
    return InvalidArgument("no step {} to repeat {} times (the graph has {} steps)", step, times,
                           graph.steps().size());
  }
  return StepRepeater(graph).Repeat({.first = step}, times);
}

}  // namespace daydream
