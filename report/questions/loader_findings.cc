#include "report/questions/loader_findings.h"

#include <fmt/format.h>

#include "report/loader_workers.h"
#include "report/text/format.h"
#include "transforms/analysis/loader.h"

namespace daydream {
namespace {

constexpr double kSmallWait = 0.05;  // of the step, as for other findings

}  // namespace

std::vector<Finding> FindingsOfLoader(const Graph& graph, const std::vector<bool>& counts,
                                      size_t steps, Duration step) {
  const std::optional<LoaderWorkers> workers = FindLoaderWorkers(graph);
  if (!workers.has_value()) return {};
  Duration waits;
  std::string where;
  for (const Fetch& f : FindFetches(graph, LoaderScopes(graph))) {
    const size_t of = graph.task(f.tasks.front()).step;
    if (of >= counts.size() || !counts[of]) continue;
    waits += RecordedLength(graph, f);
    where = graph.Name(graph.tables().scopes[f.scope.index()].name);
  }
  waits = waits / static_cast<int64_t>(steps);
  if (waits <= step.Scaled(kSmallWait)) return {};
  const std::string together =
      workers->every > 1 ? fmt::format(", {} at a time", workers->every) : "";
  // What lay ready when the window began makes its steps shorter than those of a longer run.
  const std::string ready =
      workers->lay_ready > 0 && workers->batch > step
          ? fmt::format(
                "; {} lay ready when the window began, so its steps are shorter than those of a "
                "longer run",
                workers->lay_ready == 1 ? "a batch" : fmt::format("{} batches", workers->lay_ready))
          : "";
  return {
      {.kind = FindingKind::kLoader,
       .about = About::kProgram,
       .text = !workers->is_sure
                   ? fmt::format("a step waits {} for its loader workers on average, in two "
                                 "steps: only a faster loader makes that shorter",
                                 FormatTime(waits))
                   : fmt::format("a step waits {} for its loader workers, which make a batch "
                                 "every {}{}: only a faster loader makes it shorter than that{}",
                                 FormatTime(waits), FormatTime(workers->batch), together, ready),
       .where = where,
       .time = waits,
       .share = step.ns > 0 ? waits.seconds() / step.seconds() : 0,
       .fix = workers->is_sure
                  ? "more workers (num_workers), or cheaper reading; daydream whatif --opt "
                    "'prefetch(workers=8,recorded=N)' tells, with the N of this run"
                  : "record more steps: two batches may have come late; if that goes on, more "
                    "workers (num_workers), or cheaper reading"}};
}

}  // namespace daydream
