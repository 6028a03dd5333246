#include "graph/recording_cost.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace daydream {
namespace {

double Significant(const std::optional<RecordingCost::Each>& each, double errors) {
  if (!each.has_value() || each->ns <= each->error_ns) return 0;
  return each->ns + errors * each->error_ns;
}

class Taking {
 public:
  Taking(const CostOfEach& each, Graph& graph)
      : each_(each), graph_(graph), trace_(*graph.tables().trace) {
    taken_.each = each;
    waits_.resize(graph.size());
    for (const Edge& e : graph.edges()) {
      if (e.to_anchor == Anchor::kEnd) waits_[e.to.index()] = true;
    }
    for (size_t row = 0; row < trace_.rows(); ++row) {
      const bool launched = IsGpuWork(trace_.kind[row]) && trace_.correlation[row] != 0;
      if (launched) ++work_of_[trace_.correlation[row]];
    }
    by_step_.resize(graph.steps().size());
  }

  CostTaken Run() {
    for (size_t lane = 0; lane < graph_.lanes().size(); ++lane) {
      if (graph_.lane(LaneId(lane)).lane.kind == LaneKind::kThread) TakeFrom(LaneId(lane));
    }
    size_t steps = 0;
    for (size_t s = 0; s < by_step_.size(); ++s) {
      if (!graph_.steps()[s].measured) continue;
      taken_.in_step += by_step_[s];
      ++steps;
    }
    if (steps > 1) taken_.in_step = taken_.in_step.Scaled(1 / static_cast<double>(steps));
    return taken_;
  }

 private:
  // A call with what follows it on its thread up to the next call; the first has none.
  struct Stretch {
    std::vector<TaskId> tasks;
    TaskId call;
  };

  void TakeFrom(LaneId lane) {
    owed_ = 0;
    FindMarks(lane);
    Stretch stretch;
    for (TaskId t = graph_.lane(lane).first; t.valid(); t = graph_.task(t).lane_next) {
      const Task& task = graph_.task(t);
      // The two parts of a call that waits are of one row.
      const bool call = task.kind == TaskKind::kCall && task.event != Id<void>::kNoneValue;
      if (call && !task.removed) {
        Settle(stretch, task.recorded_start);
        stretch = {.tasks = {}, .call = t};
        Owe(lane, t);
      }
      stretch.tasks.push_back(t);
    }
    Settle(stretch, Instant{INT64_MAX});
    taken_.not_taken += Duration::FromDouble(owed_);
  }

  void FindMarks(LaneId lane) {
    marks_.clear();
    next_mark_ = 0;
    if (each_.layer_mark <= 0 || lane.index() + 1 >= trace_.lane_begin.size()) return;
    for (size_t row = trace_.lane_begin[lane.index()]; row < trace_.lane_begin[lane.index() + 1];
         ++row) {
      if (trace_.kind[row] != EventKind::kFrame) continue;
      marks_.push_back(trace_.start[row]);
      marks_.push_back(trace_.End(row));
    }
    std::sort(marks_.begin(), marks_.end());
  }

  // For the call, driver calls inside of it, and the GPU work of all.
  void Owe(LaneId lane, TaskId call) {
    const size_t end = trace_.lane_begin[lane.index() + 1];
    const size_t first = graph_.task(call).event;
    const Instant until = trace_.End(first);
    uint64_t work = 0;
    for (size_t row = first; row < end && (row == first || trace_.start[row] < until); ++row) {
      if (trace_.kind[row] != EventKind::kCall) continue;
      ++taken_.calls;
      owed_ += each_.call;
      const auto of = work_of_.find(trace_.correlation[row]);
      if (of == work_of_.end()) continue;
      work += of->second;
      work_of_.erase(of);
    }
    taken_.work += work;
    const double cost = static_cast<double>(work) * each_.work;
    // Rounded down: what is left of it is taken elsewhere.
    const auto most = Duration{static_cast<int64_t>(cost)};
    const Duration own = waits_[call.index()] ? Duration{} : graph_.task(call).duration;
    const Duration now = std::min(most, own);
    graph_.SetDuration(call, graph_.task(call).duration - now);
    Count(call, now);
    owed_ += cost - static_cast<double>(now.ns);
  }

  void Settle(const Stretch& stretch, Instant until) {
    for (; next_mark_ < marks_.size() && marks_[next_mark_] < until; ++next_mark_) {
      ++taken_.layer_marks;
      owed_ += each_.layer_mark;
    }
    for (TaskId t : stretch.tasks) {
      const Task& task = graph_.task(t);
      const bool own = t != stretch.call && !waits_[t.index()] && IsHost(task.kind);
      if (own) TakeOfDuration(t);
      if (task.gap > Duration{}) graph_.SetGap(t, Left(t, task.gap));
    }
    if (stretch.call.valid() && !waits_[stretch.call.index()]) TakeOfDuration(stretch.call);
  }

  void TakeOfDuration(TaskId t) { graph_.SetDuration(t, Left(t, graph_.task(t).duration)); }

  // What is left of a `time` of this task.
  Duration Left(TaskId t, Duration time) {
    const Duration now = std::min(Duration{static_cast<int64_t>(owed_)}, time);
    if (now <= Duration{}) return time;
    owed_ -= static_cast<double>(now.ns);
    Count(t, now);
    return time - now;
  }

  void Count(TaskId t, Duration now) {
    taken_.taken += now;
    const size_t step = graph_.task(t).step;
    if (step < by_step_.size()) by_step_[step] += now;
  }

  const CostOfEach& each_;
  Graph& graph_;
  const Trace& trace_;
  CostTaken taken_;
  std::vector<bool> waits_;                          // by TaskId: an edge holds up its end
  absl::flat_hash_map<uint32_t, uint64_t> work_of_;  // rows of GPU work by correlation
  std::vector<Duration> by_step_;
  std::vector<Instant> marks_;  // of the thread, in order
  size_t next_mark_ = 0;
  double owed_ = 0;  // on this thread, in ns
};

}  // namespace

CostOfEach CostOfEachIn(const Graph& graph, double errors) {
  if (graph.tables().trace == nullptr) return {};
  const RecordingCost& cost = graph.tables().trace->provenance.cost;
  return {.call = Significant(cost.call, errors),
          .work = Significant(cost.work, errors),
          .layer_mark = Significant(cost.layer_mark, errors)};
}

CostTaken TakeOffRecordingCost(const CostOfEach& each, Graph& graph) {
  if (!each.any() || graph.tables().trace == nullptr) return {};
  return Taking(each, graph).Run();
}

}  // namespace daydream
