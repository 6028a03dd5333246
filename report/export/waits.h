// What each task of a graph waits for, without lags and gaps below zero: "5 us before A starts" is
// 5 us less behind each of the things that A waits for itself, and those lie further back. For
// formats in which nothing can wait for what is still to come.
#pragma once

#include <utility>
#include <vector>

#include "graph/graph.h"
#include "simulator/timeline.h"

namespace daydream {

struct Wait {
  TaskId from;  // none: the beginning
  Anchor from_anchor = Anchor::kEnd;
  Duration lag;  // 0 or more
  TaskId to;
  Anchor to_anchor = Anchor::kStart;
};

struct Waits {
  std::vector<Wait> waits;
  // (before, after) of one lane: the second comes when the lane is free again, after the gap of the
  // first, which is 0 or more.
  std::vector<std::pair<TaskId, TaskId>> turns;
};

// The duration and the gap that `t` is played with: a removed task has none.
Duration LengthOf(const Graph& graph, TaskId t);
Duration GapOf(const Graph& graph, TaskId t);
// Whether `t` may run beside the task before it, on a lane where there is one.
bool OverlapsTheOneBefore(const Graph& graph, TaskId t);
// Tasks of a lane in the order in which they are played.
std::vector<TaskId> PlayedOrder(const Graph& graph, const Timeline& timeline, LaneId lane);

// With the durations and gaps that `graph` has, its tasks begin and end by these as they do in
// `timeline`, which says the order of lanes that may reorder. O(tasks + edges), and for each lag
// below zero the tasks that lie so far back, times their logarithm.
Waits WaitsOf(const Graph& graph, const Timeline& timeline);

}  // namespace daydream
