// OrderInTime() of few of a graph's tasks, in less than it takes to merge all of its lanes.
#pragma once

#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "graph/graph.h"

namespace daydream {

// Those tasks of OrderInTime(g) for which `wanted` holds. A task's place is its step and recorded
// start, or that of a task it depends on where that is later: the order never goes back in place,
// so that only tasks of one place are looked at one by one. None where that does not do: of lanes
// that may reorder, of cycles, where many edges go against time, and where times are days apart.
// O(tasks + edges), and of tasks of one place O(lanes) each.
std::optional<std::vector<TaskId>> OrderByPlace(const Graph& g,
                                                absl::FunctionRef<bool(const Task&)> wanted);

}  // namespace daydream
