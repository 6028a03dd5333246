#include "report/questions/long_call.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "graph/scopes.h"
#include "report/lane_rows.h"
#include "report/loader_workers.h"
#include "report/stalls.h"
#include "report/text/format.h"
#include "transforms/analysis/host_calls.h"
#include "transforms/analysis/loader.h"

namespace daydream {
namespace {

std::string WhatToDoAboutBatch(const Graph& graph, ScopeId loader, bool several) {
  if (!HasWorkers(graph, {.scope = loader})) {
    return "let workers make batches ahead: --opt prefetch tells the gain";
  }
  if (several) return "one batch came late: see what its worker did (a slow file, a busy core)";
  return "record more steps: one does not tell whether every batch takes as long, so that more "
         "workers help, or this one came late";
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
  Duration time;
  bool in_gap = false;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    const bool host = t.kind == TaskKind::kHost || t.kind == TaskKind::kCall;
    if (!host || t.removed || t.step >= counts.size() || !counts[t.step] || told[i]) continue;
    if (several && !launches.Around(t.recorded_start)) continue;
    // A loader written in Python waits in no operator: behind the last one that it ran.
    const bool gap = t.gap > t.duration && loader.OwnsGapOf(t);
    if (!gap && !calls[t.lane.index()] && IsOutsideOfOperators(graph, TaskId(i))) continue;
    const Duration own = gap ? t.gap : t.duration;
    if (!longest.valid() || own > time) longest = TaskId(i), time = own, in_gap = gap;
  }
  if (!longest.valid() || time * 2 < step) return std::nullopt;
  const Task& t = graph.task(longest);
  const ScopeId fetch = loader.Around(t.scope);
  if (fetch.valid() && (FindLoaderWorkers(graph).has_value() ||
                        FindFewWaits(graph, FindFetches(graph, loader)).has_value())) {
    return std::nullopt;  // its finding tells
  }
  const bool named = fetch.valid() || !IsOutsideOfOperators(graph, longest);
  const std::string what(in_gap ? graph.Name(ScopeAt(graph, fetch).name) : graph.TaskName(longest));
  const std::string name = named ? fmt::format("one call of {}", what)
                                 : std::string("one stretch of host time outside of operators");
  return Finding{
      .kind = FindingKind::kLongCall,
      .about = About::kPredictions,
      .text =
          fmt::format("{} takes {}, more than half of a step", Printable(name), FormatTime(time)),
      .where = fmt::format("{} on {}", what, LaneTitle(graph, t.lane)),
      .time = time,
      .share = step.ns > 0 ? time.seconds() / step.seconds() : 0,
      .fix = fetch.valid() ? WhatToDoAboutBatch(graph, fetch, several)
                           : "see what it does there: daydream summary --by host; if it happens "
                             "once, record later"};
}

}  // namespace daydream
