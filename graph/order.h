// An order in which every task comes after all tasks that it depends on.
#pragma once

#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "graph/graph.h"

namespace daydream {

// Depends means: lane predecessor on lanes of fixed order, and every edge, whatever its anchors.
// TaskId order where that is one already, or Graph::likely_order() while it is one; otherwise as
// long runs of one lane as possible. Equal graphs give equal orders. FailedPrecondition names the
// tasks of one cycle. REQUIRES: ids in range and consistent lane lists. O(tasks + edges).
absl::StatusOr<std::vector<TaskId>> EvaluationOrder(const Graph& graph);

// The same of a graph whose Task::lane_next are at hand, so that tasks need not be read. REQUIRES:
// all lanes have a fixed order, and no likely order is told.
absl::StatusOr<std::vector<TaskId>> EvaluationOrder(const Graph& graph,
                                                    std::span<const TaskId> next_on_lane);

// An evaluation order that follows steps and recorded starts wherever dependencies leave a choice.
// A task that was recorded earlier than one it depends on comes when that one does. Tasks of a
// cycle are left out. O((tasks + edges) log tasks).
std::vector<TaskId> OrderInTime(const Graph& graph);
// Those of it for which `wanted` holds.
std::vector<TaskId> OrderInTime(const Graph& graph, absl::FunctionRef<bool(const Task&)> wanted);

// The tasks of one cycle, each before the one that depends on it; empty when there is none.
// O(tasks + edges), but slower than EvaluationOrder.
std::vector<TaskId> FindCycle(const Graph& graph);

}  // namespace daydream
