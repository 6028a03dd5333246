// One step, or some that follow one another, played over and over: the steady state that a long run
// of these would reach. Used where a trace holds one usable step, and to ask whether steps predict
// the next ones.
#pragma once

#include <span>
#include <vector>

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

// The same for several steps of one graph, whose tasks and edges are sorted by step once.
class StepRepeater {
 public:
  explicit StepRepeater(const Graph& graph);  // keeps a reference; O(tasks + edges)
  // All steps of the run, over and over. An edge from a step before the run comes from the step
  // that is as many before in the copies. REQUIRES: there are such steps, times > 0. O(tasks and
  // edges of the run x times + lanes x steps), and what its queue edges take.
  Graph Repeat(StepRun run, int times) const;
  // The tasks of the step, as they stand in each repetition.
  std::span<const TaskId> TasksOf(uint16_t step) const;

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
