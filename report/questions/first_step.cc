#include "report/questions/first_step.h"

#include "graph/step_windows.h"
#include "report/windows.h"
#include "transforms/analysis/loader.h"

namespace daydream {

constexpr size_t kEnoughSteps = 3;

FirstStep BeginOfFirstStep(const Graph& graph) {
  const std::vector<size_t> counted = CountedSteps(graph);
  FirstStep first{.by = {}, .fetch = {}, .steps = counted.size(), .name = {}};
  if (counted.size() < 2 || counted.size() >= kEnoughSteps) return first;
  const size_t before = counted.front() - 1;
  if (StepMarks(graph).HasGpu(before) && !graph.steps()[before].backlog) return first;
  for (const Fetch& f : FindFetches(graph, LoaderScopes(graph))) {
    const Duration length = RecordedLength(graph, f);
    if (!Counts(graph, f) || length <= first.fetch) continue;
    first.fetch = length;
    first.name = graph.Name(graph.tables().scopes[f.scope.index()].name);
  }
  first.by = first.fetch / static_cast<int64_t>(first.steps);
  return first;
}

}  // namespace daydream
