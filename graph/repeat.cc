#include "graph/repeat.h"

#include <vector>

#include "graph/queue.h"

namespace daydream {
namespace {

constexpr uint32_t kNowhere = Id<void>::kNoneValue;

class Repeater {
 public:
  Repeater(const Graph& source, uint16_t step, int times)
      : source_(source),
        step_(step),
        times_(times),
        result_(source),
        place_(source.size(), kNowhere) {
    result_.ClearTasks();
  }

  Graph Run() {
    CollectPlaces();
    for (const auto& lane : by_place_) {
      first_of_lane_.push_back(of_step_);
      of_step_ += lane.size();
    }
    CollectEdges();
    result_.Reserve(of_step_ * static_cast<size_t>(times_),
                    into_step_.size() * static_cast<size_t>(times_));
    for (int copy = 0; copy < times_; ++copy) CopyTasks(copy);
    for (int copy = 0; copy < times_; ++copy) CopyEdges(copy);
    RebuildQueueEdges(result_, std::vector<bool>(result_.lanes().size(), true));
    return std::move(result_);
  }

 private:
  // The place of every task among the tasks of its lane and step.
  void CollectPlaces() {
    by_place_.resize(source_.lanes().size());
    std::vector<uint32_t> count(source_.steps().size());
    for (size_t lane = 0; lane < source_.lanes().size(); ++lane) {
      std::fill(count.begin(), count.end(), 0);
      for (TaskId t = source_.lane(LaneId(lane)).first; t.valid(); t = source_.task(t).lane_next) {
        uint16_t s = source_.task(t).step;
        place_[t.index()] = count[s]++;
        if (s == step_) by_place_[lane].push_back(t);
      }
      // In other steps the same place is as far from the end: the first one recorded may have lost
      // its begin.
      for (TaskId t = source_.lane(LaneId(lane)).first; t.valid(); t = source_.task(t).lane_next) {
        const uint16_t s = source_.task(t).step;
        if (s != step_) place_[t.index()] += count[step_] - count[s];
      }
    }
  }

  void CopyTasks(int copy) {
    uint16_t step = result_.AddStep({.label = source_.steps()[step_].label,
                                     .measured = copy > 0,
                                     .recorded_period = source_.steps()[step_].recorded_period});
    for (const std::vector<TaskId>& lane : by_place_) {
      for (TaskId t : lane) {
        Task task = source_.task(t);
        task.step = step;
        if (copy > 0) task.earliest = {};
        const TaskId made = result_.Append(task);
        if (task.kind == TaskKind::kCollective) result_.SetTransfer(made, source_.Transfer(t));
      }
    }
  }

  // The task in copy `copy` that stands where `t` stands, seen from step step_; None when it would
  // be before the first copy or after the last.
  TaskId Standing(TaskId t, int copy) const {
    int at = copy + static_cast<int>(source_.task(t).step) - static_cast<int>(step_);
    const std::vector<TaskId>& lane = by_place_[source_.task(t).lane.index()];
    uint32_t place = place_[t.index()];
    if (at < 0 || at >= times_ || place >= lane.size()) return TaskId::None();
    return TaskId(static_cast<size_t>(at) * of_step_ +
                  first_of_lane_[source_.task(t).lane.index()] + place);
  }

  void CollectEdges() {
    for (const Edge& e : source_.edges()) {
      if (e.rule == Rule::kQueue || source_.task(e.to).step != step_) continue;
      if (source_.task(e.from).step <= step_) into_step_.push_back(e);
    }
  }

  void CopyEdges(int copy) {
    for (Edge edge : into_step_) {
      edge.from = Standing(edge.from, copy);
      edge.to = Standing(edge.to, copy);
      if (edge.from.valid() && edge.to.valid()) result_.AddEdge(edge);
    }
  }

  const Graph& source_;
  uint16_t step_;
  int times_;
  Graph result_;
  std::vector<uint32_t> place_;
  std::vector<std::vector<TaskId>> by_place_;  // by lane: the tasks of the step
  size_t of_step_ = 0;                         // tasks of the step: so many has each copy
  std::vector<size_t> first_of_lane_;          // the first of them that is of this lane
  std::vector<Edge> into_step_;
};

}  // namespace

absl::StatusOr<Graph> RepeatStep(const Graph& graph, uint16_t step, int times) {
  if (step >= graph.steps().size() || times < 1) {
    return InvalidArgument("no step {} to repeat {} times (the graph has {} steps)", step, times,
                           graph.steps().size());
  }
  return Repeater(graph, step, times).Run();
}

}  // namespace daydream
