// Calls of the host: what they cost in this trace, and which of them wait.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace daydream {

struct HostCosts {
  // Medians without the first launch of each kernel, as long as some are launched again.
  Duration launch;  // own time of a kernel launch call
  Duration copy;    // own time of a copy call that does not wait for its copy (all of them)
  // Host time in the framework op around a launch since the launch before, call included; without
  // other calls, such as allocations.
  Duration op;
  bool measured = false;  // false: the trace has no launches and defaults stand in
};

// O(tasks + edges), once for all copies that are not edited.
HostCosts MeasureHostCosts(const Graph& graph);

// Whether the call launches a CUDA graph: it launches what is added to the graph, too.
bool IsGraphLaunch(const Graph& graph, const Task& call);

// When the first and the last GPU work of the recording were launched. What the host did outside of
// it need not be the program's: profilers and benchmarks wait there, and write what they found.
struct RecordedLaunches {
  std::optional<Instant> first, last;  // none: nothing was launched
  bool Around(Instant t) const { return !first.has_value() || (*first <= t && t <= *last); }
};
RecordedLaunches FindLaunches(const Graph& graph);  // O(edges)

// By task: whether it waits for the GPU.
std::vector<bool> WaitsForGpu(const Graph& graph);

}  // namespace daydream
