#include "report/questions/long_call.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "report/lane_rows.h"
#include "report/loader_workers.h"
#include "report/stalls.h"
#include "report/text/format.h"
#include "transforms/analysis/host_calls.h"
#include "transforms/analysis/loader.h"

namespace daydream {
namespace {

std::string WhatToDoAboutBatch(const Graph& graph, ScopeId loader) {
  return HasWorkers(graph, {.scope = loader})
             ? "one batch came late: see what its worker did (a slow file, a busy core)"
             : "let workers make batches ahead: --opt prefetch tells the gain";
}

}  // namespace

std::optional<Finding> FindingOfLongCall(const Graph& graph, const std::vector<bool>& counts,
                                         const std::vector<bool>& told, Duration step) {
  const bool several = std::ranges::count(counts, true) > 1;
  const RecordedLaunches launches = FindLaunches(graph);
  const LoaderScopes loader(graph);
  std::vector<bool> calls(graph.lanes().size());  // by lane
  for (const Task& t : graph.tasks()) {
    if (t.kind == TaskKind::kCall) calls[t.lane.index()] = true;
  }
  TaskId longest;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    const bool host = t.kind == TaskKind::kHost || t.kind == TaskKind::kCall;
    if (!host || t.removed || t.step >= counts.size() || !counts[t.step] || told[i]) continue;
    if (several && !launches.Around(t.recorded_start)) continue;
    if (!calls[t.lane.index()] && IsOutsideOfOperators(graph, TaskId(i))) continue;
    if (!longest.valid() || t.duration > graph.task(longest).duration) longest = TaskId(i);
  }
  if (!longest.valid() || graph.task(longest).duration * 2 < step) return std::nullopt;
  const Task& t = graph.task(longest);
  const ScopeId fetch = loader.Around(t.scope);
  if (fetch.valid() && FindLoaderWorkers(graph).has_value()) return std::nullopt;
  const bool named = fetch.valid() || !IsOutsideOfOperators(graph, longest);
  const std::string name = named ? fmt::format("one call of {}", graph.TaskName(longest))
                                 : std::string("one stretch of host time outside of operators");
  return Finding{
      .kind = FindingKind::kLongCall,
      .about = About::kPredictions,
      .text = fmt::format("{} takes {}, more than half of a step", Printable(name),
                          FormatTime(t.duration)),
      .where = fmt::format("{} on {}", graph.TaskName(longest), LaneTitle(graph, t.lane)),
      .time = t.duration,
      .share = step.ns > 0 ? t.duration.seconds() / step.seconds() : 0,
      .fix = fetch.valid() ? WhatToDoAboutBatch(graph, fetch)
                           : "see what it does there: daydream summary --by host; if it happens "
                             "once, record later"};
}

}  // namespace daydream
