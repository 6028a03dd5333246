// Whether the host bounds a step, where sums tell it: of a critical path no more can be the GPU's
// than there is of its work. That takes a fiftieth of what a replay and its path take.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/step_windows.h"

namespace daydream {

class HostBound {
 public:
  // Keeps a reference. O(tasks + edges).
  explicit HostBound(const Graph& recorded);

  // True: of the path of the steps that count at least half is Resource::kCpu, as PathPerStep()
  // would tell. False: that is not known, or `graph` is no copy of which only times were set
  // (Graph::structure()). `steps`: its StepWindows(). O(what was set + steps).
  bool IsSure(const Graph& graph, std::span<const StepWindow> steps) const;

 private:
  size_t PlaceOf(TaskId end) const;
  // Calls `each(time, place)` for the work of a task and for the gap behind it.
  template <class Each>
  void ForEachPart(const Graph& graph, TaskId id, Each each) const;

  const Graph& recorded_;
  // All that can be on a path and is no CPU's: a path goes along each task, gap and edge once at
  // most, and for no longer than it takes. By step, what is over when GPU work of it is; then all
  // else.
  std::vector<Duration> others_;
  // What lies before the path may be anybody's; it begins no later than this.
  Instant begins_ = Instant::AtNs(0);
  bool known_ = true;
};

}  // namespace daydream
