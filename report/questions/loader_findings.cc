#include "report/questions/loader_findings.h"

#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "report/loader_workers.h"
#include "report/text/format.h"
#include "transforms/analysis/loader.h"

namespace daydream {
namespace {

constexpr double kSmallWait = 0.05;  // of the step, as for other findings

// Of waits that are too few to tell a rate.
std::optional<Finding> FindingOfFewWaits(const Graph& graph, const std::vector<Fetch>& fetches,
                                         size_t steps, Duration step) {
  const std::optional<FewWaits> few = FindFewWaits(graph, fetches);
  if (!few.has_value()) return std::nullopt;
  Finding f{.kind = FindingKind::kLoader,
            .about = About::kPredictions,
            .text = {},
            .where = std::string(graph.Name(graph.tables().scopes[fetches[0].scope.index()].name)),
            .time = few->time / static_cast<int64_t>(steps),
            .share = 0,
            .fix =
                "record more steps; if that goes on, more workers (num_workers), or cheaper "
                "reading; if not, see what kept the worker (a slow file, a busy core)"};
  f.share = step.ns > 0 ? f.time.seconds() / step.seconds() : 0;
  if (few->count > 0) {
    if (f.share <= kSmallWait) return std::nullopt;
    f.text = fmt::format(
        "a step waits {} for its loader workers on average, in {}: whether they are that slow, or "
        "batches came late, so few waits do not tell",
        FormatTime(f.time), few->count == 1 ? "one wait" : "two waits that were recorded");
    return f;
  }
  // Of as many steps as find a batch ready each one would wait so long.
  if (few->before / static_cast<int64_t>(kMadeAhead) <= step.Scaled(kSmallWait))
    return std::nullopt;
  f.about = About::kProgram;
  f.text = fmt::format(
      "the step before those that count waited {} for its loader workers: if a later one does so "
      "again, steps take longer than these {}",
      FormatTime(few->before), steps);
  f.time = few->before;
  return f;
}

}  // namespace

std::vector<Finding> FindingsOfLoader(const Graph& graph, const std::vector<bool>& counts,
                                      size_t steps, Duration step) {
  const std::vector<Fetch> fetches = FindFetches(graph, LoaderScopes(graph));
  if (auto few = FindingOfFewWaits(graph, fetches, steps, step)) return {*std::move(few)};
  const std::optional<LoaderWorkers> workers = FindLoaderWorkers(graph);
  if (!workers.has_value() || !workers->is_sure) return {};
  Duration waits;
  std::string where;
  for (const Fetch& f : fetches) {
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
       .text = fmt::format("a step waits {} for its loader workers, which make a batch every {}{}: "
                           "only a faster loader makes it shorter than that{}",
                           FormatTime(waits), FormatTime(workers->batch), together, ready),
       .where = where,
       .time = waits,
       .share = step.ns > 0 ? waits.seconds() / step.seconds() : 0,
       .fix = "more workers (num_workers), or cheaper reading; daydream whatif --opt "
              "'prefetch(workers=8,recorded=N)' tells, with the N of this run"}};
}

}  // namespace daydream
