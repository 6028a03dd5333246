#include "report/predict/unchanged.h"

#include <algorithm>

namespace daydream {

bool PlaysAlike(const Graph& a, const Graph& b) {
  const auto same_task = [](const Task& x, const Task& y) {
    return x.duration == y.duration && x.gap == y.gap && x.earliest == y.earliest &&
           x.lane == y.lane && x.lane_prev == y.lane_prev && x.step == y.step && x.kind == y.kind &&
           x.removed == y.removed && x.overlaps == y.overlaps;
  };
  const auto same_edge = [](const Edge& x, const Edge& y) {
    return x.from == y.from && x.to == y.to && x.lag == y.lag && x.from_anchor == y.from_anchor &&
           x.to_anchor == y.to_anchor;
  };
  if (b.structure() != 0) {
    return std::ranges::all_of(b.retimed(),
                               [&](TaskId t) { return same_task(a.task(t), b.task(t)); });
  }
  return std::ranges::equal(a.tasks(), b.tasks(), same_task) &&
         std::ranges::equal(a.edges(), b.edges(), same_edge);
}

void AnswerAs(const Prediction& baseline, Prediction& p) {
  p.low = baseline.low, p.high = baseline.high;
  p.least_speedup = p.most_speedup = p.least_as_recorded = std::nullopt;
  if (p.low.has_value()) p.least_speedup = p.most_speedup = p.least_as_recorded = 1;
  p.confidence = baseline.confidence;
  p.why = baseline.why;
  p.raise = baseline.raise;
  p.expected_error = baseline.expected_error;
}

}  // namespace daydream
