// What API calls cost the host in this trace, for calls that an optimization adds or changes.
#pragma once

#include "graph/graph.h"

namespace daydream {

struct HostCosts {
  Duration launch;  // median own time of a kernel launch call
  Duration copy;    // median own time of a copy call that does not wait for its copy
  Duration op;      // median host time in framework ops from launch to launch, call included
  bool measured = false;  // false: the trace has no launches and defaults stand in
};

// O(tasks + edges).
HostCosts MeasureHostCosts(const Graph& graph);

// Whether the call launches a CUDA graph: it launches what is added to the graph, too.
bool IsGraphLaunch(const Graph& graph, const Task& call);

}  // namespace daydream
