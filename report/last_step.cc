#include "report/last_step.h"

#include "report/windows.h"
#include "transforms/analysis/loader.h"

namespace daydream {

constexpr size_t kEnoughSteps = 3;

LastStep EndOfLastStep(const Graph& graph) {
  LastStep end{.by = {}, .fetch = {}, .steps = CountedSteps(graph).size(), .name = {}};
  if (end.steps == 0 || end.steps >= kEnoughSteps || graph.steps().size() < 2) return end;
  for (const Fetch& f : FindFetches(graph, LoaderScopes(graph))) {
    const Duration length = RecordedLength(graph, f);
    if (!Counts(graph, f) || length <= end.fetch) continue;
    end.fetch = length;
    end.name = graph.Name(graph.tables().scopes[f.scope.index()].name);
  }
  end.by = end.fetch / static_cast<int64_t>(end.steps);
  return end;
}

}  // namespace daydream
