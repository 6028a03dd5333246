#include "report/predict/most_saved.h"

#include <algorithm>
#include <optional>

#include "report/windows.h"

namespace daydream {
namespace {

Duration Less(Duration was, Duration is) { return std::max(was - is, Duration{}); }

Duration DurationOf(const Task& t) { return t.removed ? Duration{} : t.duration; }
Duration GapOf(const Task& t) { return t.removed ? Duration{} : t.gap; }

// Whether a task still begins no earlier than what it began behind.
bool StaysBehind(const Task& was, const Task& is) {
  return was.lane == is.lane && was.step == is.step && is.earliest >= was.earliest &&
         (was.overlaps || !is.overlaps);
}

// Whether tasks of both graphs stand in the same order on their lanes, which keep it.
bool KeepsOrder(const Graph& before, const Graph& after) {
  for (size_t l = 0; l < before.lanes().size(); ++l) {
    const GraphLane& lane = after.lanes()[l];
    if (lane.order != LaneOrder::kFixed) return false;
    TaskId next = lane.first;
    for (TaskId t = before.lanes()[l].first; t.valid(); t = before.task(t).lane_next) {
      while (next.valid() && next.index() >= before.size()) next = after.task(next).lane_next;
      if (next != t) return false;
      next = after.task(next).lane_next;
    }
  }
  return true;
}

// What lags are shorter by; none where an edge is gone.
std::optional<Duration> LessLag(const Graph& before, const Graph& after) {
  Duration less;
  auto kept = after.edges().begin();
  for (const Edge& e : before.edges()) {
    if (e.rule == Rule::kQueue) continue;
    while (kept != after.edges().end() && kept->rule == Rule::kQueue) ++kept;
    const bool same = kept != after.edges().end() && kept->from == e.from && kept->to == e.to &&
                      kept->rule == e.rule && kept->from_anchor == e.from_anchor &&
                      kept->to_anchor == e.to_anchor;
    if (!same) return std::nullopt;
    less += Less(e.lag, kept->lag);
    ++kept;
  }
  return less;
}

}  // namespace

Duration MostSaved(const Graph& before, const Graph& after) {
  if (after.size() < before.size() || after.steps().size() != before.steps().size()) {
    return Duration::Max();
  }
  Duration less;
  for (size_t i = 0; i < before.size(); ++i) {
    const Task &was = before.tasks()[i], &is = after.tasks()[i];
    if (!StaysBehind(was, is)) return Duration::Max();
    less += Less(DurationOf(was), DurationOf(is)) + Less(GapOf(was), GapOf(is));
  }
  if (!KeepsOrder(before, after)) return Duration::Max();
  const std::optional<Duration> lags = LessLag(before, after);
  if (!lags.has_value()) return Duration::Max();
  const size_t steps = std::max<size_t>(CountedSteps(before).size(), 1);
  return (less + *lags) / static_cast<int64_t>(steps);
}

}  // namespace daydream
