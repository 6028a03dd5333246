// What decided each instant of a finished timeline. Internal to simulator/.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "graph/edges_into.h"
#include "graph/graph.h"
#include "simulator/timeline.h"

namespace daydream {

// Fills start_blocker and end_blocker of `timeline`, whose instants are final. Of several
// constraints that allow the same instant the first counts: the lane, then edges by index.
// `order` holds every task; those of one lane in the order in which they ran. O(tasks + edges).
void FindBlockers(const Graph& graph, std::span<const TaskId> order, Timeline& timeline);

// The same of some tasks, found when asked for. REQUIRES: lanes of fixed order. Keeps references.
class BlockersAsked {
 public:
  BlockersAsked(const Graph& graph, const Timeline& timeline)
      : graph_(graph), timeline_(timeline), into_(EdgesInto::Of(graph)) {}
  Blocker OfStart(TaskId t);  // O(edges into it), and once O(tasks of a lane) where tasks overlap
  Blocker OfEnd(TaskId t) const;

 private:
  Instant FreeAfter(TaskId t) const;
  TaskId LastToHold(TaskId t);
  Blocker AlongEdge(TaskId t, Anchor to) const;

  const Graph& graph_;
  const Timeline& timeline_;
  const std::shared_ptr<const EdgesInto> into_;
  std::vector<TaskId> held_by_;    // by task: of the lane before it; filled lane by lane
  std::vector<bool> lane_filled_;  // by lane
};

}  // namespace daydream
