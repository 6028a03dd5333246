// One step, or some that follow one another, played over and over: the steady state that a long run
// of these would reach. Used where a trace holds one usable step, and to ask whether steps predict
// the next ones.
#pragma once

#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "graph/graph.h"

namespace daydream {

// A graph of `times` copies of step `step`, one after the other on every lane. An edge from a task
// of an earlier step comes from the same place that many copies before; queue edges are computed
// anew (graph/queue.h). The period of the last copy is the steady period (reached after one or two
// copies in all traces measured; 4 copies are plenty).
// InvalidArgument when there is no such step, or more than kMostCopies of it are asked for.
// O(tasks + edges + tasks of the step x times).
inline constexpr int kMostCopies = 60000;  // Task::step has 16 bits
absl::StatusOr<Graph> RepeatStep(const Graph& graph, uint16_t step, int times);

struct StepRun {
  size_t first = 0, steps = 1;
};

// An edge of one step that is repeated, but those of the queue. `from` and `to` are places among
// the tasks of the step; `from` is that of so many rounds before.
struct RoundEdge {
  uint32_t from = 0, to = 0;
  uint32_t back = 0;
  uint32_t edge = 0;  // of Graph::edges() of the source
};

// The same for several steps of one graph, whose tasks and edges are sorted by step once.
class StepRepeater {
 public:
  explicit StepRepeater(const Graph& graph);  // keeps a reference; O(tasks + edges)
  // All steps of the run, over and over. An edge from a step before the run comes from the step
  // that is as many before in the copies. REQUIRES: there are such steps, times > 0. O(tasks and
  // edges of the run x times + lanes x steps), and what its queue edges take.
  Graph Repeat(StepRun run, int times) const;
  // The tasks of the step, as they stand in each repetition: lane by lane, each in its order.
  std::span<const TaskId> TasksOf(uint16_t step) const;
  // By LaneId: where those of the lane begin among these; one more, their number.
  std::vector<uint32_t> LanesOf(uint16_t step) const;
  // Where `t` stands among them, with LanesOf() its step.
  uint32_t PlaceOf(TaskId t, std::span<const uint32_t> lanes) const {
    const auto behind = static_cast<int64_t>(lanes[source_.task(t).lane.index() + 1]);
    return static_cast<uint32_t>(behind + place_[t.index()]);
  }
  // What Repeat() makes edges of, in the same order in each repetition; of the queue only those
  // that it looks at. `lanes`: LanesOf() the step. O(edges of the step).
  void ForEachEdge(uint16_t step, std::span<const uint32_t> lanes,
                   absl::FunctionRef<void(const RoundEdge&)> each) const;
  const Graph& source() const { return source_; }

 private:
  const Graph& source_;
  Graph empty_;  // lanes, layers and names of the source
  // The place of every task among the tasks of its lane and step, seen from their end: -1 is the
  // last of them. The first step recorded may have lost its begin.
  std::vector<int32_t> place_;
  // Tasks by step, those of a step by lane and in the order of the lane; edges by the step of their
  // target, but those of the queue. Those of step s: [begin[s], begin[s + 1]).
  std::vector<TaskId> tasks_;
  std::vector<TaskId> order_;  // the same in Graph::likely_order(); empty when that is not known
  std::vector<uint32_t> edges_;
  std::vector<size_t> tasks_begin_, edges_begin_;
};

}  // namespace daydream
