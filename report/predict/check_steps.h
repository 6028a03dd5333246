// Whether what was edited is in the steps that count. Internal to report/.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "graph/graph.h"
#include "report/predict/causes.h"

namespace daydream {

// Of a scenario that changed no step time: E0601 where all its edits are in steps that do not
// count, so that the answer is as without them. O(edits).
absl::Status CheckSteps(std::string_view scenario, const Graph& graph,
                        std::span<const CauseJournal> journals);

}  // namespace daydream
