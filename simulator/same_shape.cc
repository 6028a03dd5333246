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

uint64_t NumberOfShape(const Graph& graph) {
  uint64_t number = 0x9e3779b97f4a7c15;
  const auto add = [&number](auto... values) {
    for (const uint64_t value : {static_cast<uint64_t>(values)...}) {
      number = (number ^ value) * 0xff51afd7ed558ccd;  // MurmurHash3's finalizer, one round
      number ^= number >> 32;
    }
  };
  add(graph.size(), graph.lanes().size(), graph.steps().size(), graph.edges().size());
  for (const GraphLane& lane : graph.lanes()) add(lane.order);
  for (const GraphStep& s : graph.steps()) {
    add(s.measured, s.host_led, s.host_waited, s.backlog, s.begin.call.value, s.begin.work.value,
        s.recorded_period.ns, s.recorded_host.ns);
  }
  for (const Edge& e : graph.edges()) {
    add(uint64_t{e.from.value} << 32 | e.to.value, e.lag.ns,
        static_cast<uint64_t>(e.rule) << 16 | static_cast<uint64_t>(e.from_anchor) << 8 |
            static_cast<uint64_t>(e.to_anchor));
  }
  for (const Task& t : graph.tasks()) {
    add(uint64_t{t.lane_prev.value} << 32 | t.lane.value, t.earliest.ns,
        uint64_t{t.step} << 16 | static_cast<uint64_t>(t.kind) << 8 |
            static_cast<uint64_t>(t.removed) << 1 | static_cast<uint64_t>(t.overlaps));
  }
  return number | 1;
}

}  // namespace daydream
