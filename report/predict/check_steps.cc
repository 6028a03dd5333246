#include "report/predict/check_steps.h"

#include <algorithm>
#include <vector>

#include "report/windows.h"

namespace daydream {

absl::Status CheckSteps(std::string_view scenario, const Graph& graph,
                        std::span<const CauseJournal> journals) {
  const std::vector<size_t> counted = CountedSteps(graph);
  if (counted.empty() || journals.empty()) return absl::OkStatus();
  const auto counts = [&](TaskId t) {
    return std::binary_search(counted.begin(), counted.end(), graph.task(t).step);
  };
  for (const CauseJournal& j : journals) {
    const bool any = j.edits.empty() && j.edge_edits.empty();  // a model's word, not a task
    if (any || std::ranges::any_of(j.edits, counts, &Editor::Edit::task) ||
        std::ranges::any_of(j.edge_edits,
                            [&](const auto& e) { return counts(e.from) || counts(e.to); })) {
      return absl::OkStatus();
    }
  }
  return MakeStatus(
      absl::StatusCode::kFailedPrecondition,
      {.code = "E0601",
       .what = fmt::format("{}: changes nothing in the steps that count", scenario),
       .why = "all that it changes is in steps that are left out, as the first one is",
       .effect = "the step would stay as it is",
       .fix = "change the same work in every step"});
}

}  // namespace daydream
