// The number of a shape: the same for graphs that differ in times alone (simulator/same_shape).
#include "simulator/same_shape.h"

#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "tests/example_graph.h"

namespace daydream {
namespace {

TEST(NumberOfShape, TimesAndNamesAreNoPartOfIt) {
  const BuiltGraph built = Example("launch-bound");
  Graph other = built.graph;
  other.SetDuration(TaskId(7), Duration::Us(123));
  other.SetGap(TaskId(8), Duration::Us(1));
  other.mutable_task(TaskId(9)).name = other.AddName("renamed");
  EXPECT_EQ(NumberOfShape(other), NumberOfShape(built.graph));
  EXPECT_NE(NumberOfShape(other), 0U);
}

// Whatever SameShape() and SamePlace() look at.
TEST(NumberOfShape, AllElseThatAReplaySeesMakesItAnother) {
  const BuiltGraph built = Example("launch-bound");
  const std::function<void(Graph&)> edits[] = {
      [](Graph& g) { g.mutable_task(TaskId(7)).removed = true; },
      [](Graph& g) { g.mutable_task(TaskId(7)).overlaps ^= true; },
      [](Graph& g) { g.mutable_task(TaskId(7)).earliest = Instant::AtNs(5); },
      [](Graph& g) { ++g.mutable_task(TaskId(7)).step; },
      [](Graph& g) { g.mutable_task(TaskId(7)).kind = TaskKind::kDelay; },
      [](Graph& g) { g.mutable_edges().front().lag += Duration::Ns(1); },
      [](Graph& g) { g.mutable_edges().front().to = TaskId(11); },
      [](Graph& g) { g.mutable_edges().front().from_anchor = Anchor::kStart; },
      [](Graph& g) {
        Anchor& to = g.mutable_edges().front().to_anchor;
        to = to == Anchor::kEnd ? Anchor::kStart : Anchor::kEnd;
      },
      [](Graph& g) { g.mutable_edges().front().rule = Rule::kTransform; },
      [](Graph& g) { g.mutable_edges().pop_back(); },
      [](Graph& g) { g.mutable_task(TaskId(7)).lane = LaneId(g.task(TaskId(7)).lane.value + 1); },
      [](Graph& g) { g.mutable_task(TaskId(7)).lane_prev = TaskId(1); },
      [](Graph& g) { g.mutable_step(0).measured ^= true; },
      [](Graph& g) { g.mutable_step(0).host_waited ^= true; },
      [](Graph& g) { g.mutable_step(0).backlog ^= true; },
      [](Graph& g) { g.mutable_step(0).begin.call = TaskId(2); },
      [](Graph& g) { g.mutable_step(0).recorded_host += Duration::Ns(1); },
      [](Graph& g) { g.mutable_lane(LaneId(0)).order = LaneOrder::kPriority; },
      [](Graph& g) { g.mutable_step(0).host_led ^= true; },
      [](Graph& g) { g.mutable_step(0).recorded_period += Duration::Ns(1); },
      [](Graph& g) { g.Append(g.task(TaskId(7))); }};
  std::set<uint64_t> numbers = {NumberOfShape(built.graph)};
  for (const auto& edit : edits) {
    Graph other = built.graph;
    edit(other);
    numbers.insert(NumberOfShape(other));
  }
  EXPECT_EQ(numbers.size(), std::size(edits) + 1);
}

}  // namespace
}  // namespace daydream
