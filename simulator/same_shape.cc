#include "simulator/same_shape.h"

#include <algorithm>

namespace daydream {

bool SameShape(const Graph& a, const Graph& b) {
  const auto same_edge = [](const Edge& x, const Edge& y) {
    return x.from == y.from && x.to == y.to && x.lag == y.lag && x.rule == y.rule &&
           x.from_anchor == y.from_anchor && x.to_anchor == y.to_anchor;
  };
  const auto same_lane = [](const GraphLane& x, const GraphLane& y) { return x.order == y.order; };
  const auto same_step = [](const GraphStep& x, const GraphStep& y) {
    return x.measured == y.measured && x.host_led == y.host_led && x.host_waited == y.host_waited &&
           x.backlog == y.backlog && x.begin == y.begin && x.recorded_period == y.recorded_period &&
           x.recorded_host == y.recorded_host;
  };
  return a.size() == b.size() && std::ranges::equal(a.steps(), b.steps(), same_step) &&
         std::ranges::equal(a.lanes(), b.lanes(), same_lane) &&
         std::ranges::equal(a.edges(), b.edges(), same_edge);
}

bool SamePlace(const Task& x, const Task& y) {
  return x.lane_prev == y.lane_prev && x.lane == y.lane && x.earliest == y.earliest &&
         x.removed == y.removed && x.overlaps == y.overlaps && x.step == y.step && x.kind == y.kind;
}

}  // namespace daydream
