#include "report/questions/causal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/text.h"
#include "simulator/simulate.h"
#include "tests/graph/random_graph.h"
#include "transforms/core/select.h"
#include "transforms/core/transform.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// One call launches 30 us on one stream, the next one 20 us on another: 10 + 30 = 40 us and
// 10 + 25 + 20 = 55 us.
constexpr char kTwoStreams[] = R"(lane cpu0   thread
lane gpu0.7 stream
lane gpu0.8 stream
a cpu0 call 10us "cudaLaunchKernel"
b cpu0 call 25us "cudaMemcpyAsync"
k gpu0.7 kernel 30us "sgemm" after a launch
c gpu0.8 memcpy 20us "Memcpy DtoH" after b launch
)";

CausalProfile Profile(const Graph& graph, const CausalOptions& options = {}) {
  auto profile = ProfileCauses(graph, WorkGroups(graph), options);
  EXPECT_TRUE(profile.ok()) << profile.status();
  return *std::move(profile);
}

const SpeedupCurve& Curve(const CausalProfile& profile, std::string_view name) {
  for (const SpeedupCurve& c : profile.curves) {
    if (c.name == name) return c;
  }
  ADD_FAILURE() << "no curve of " << name;
  return profile.curves.front();
}

TEST(Causal, CurvesBendWhereSomethingElseTakesOver) {
  CausalProfile p = Profile(*ParseGraph(kTwoStreams));
  EXPECT_EQ(p.step, Duration::Us(55));
  // The copy hides behind the kernel from 5 us on: 75 % less.
  const SpeedupCurve& copy = Curve(p, "Memcpy DtoH");
  EXPECT_EQ(copy.family, Family::kCopies);
  EXPECT_EQ(copy.work, Duration::Us(20));
  EXPECT_EQ(copy.steps[5], Duration::Us(50));
  EXPECT_EQ(copy.steps[15], Duration::Us(40));
  EXPECT_EQ(copy.saved(), Duration::Us(15));
  ASSERT_TRUE(copy.bend.has_value());
  EXPECT_DOUBLE_EQ(*copy.bend, 0.75);
  ASSERT_TRUE(copy.next.has_value());
  EXPECT_EQ(copy.next->what, "gemm kernels");
  // The call in front of it: 10 us left of 25.
  EXPECT_DOUBLE_EQ(*Curve(p, "cudaMemcpyAsync").bend, 0.6);
}

// The host stood still for 90 us (report/stalls.h): no less work makes that shorter.
TEST(Causal, WhatHeldTheHostUpIsNoWorkOfIt) {
  CausalProfile p = Profile(*ParseGraph(R"(lane cpu0   thread
lane held   channel
lane gpu0.7 stream
h cpu0 host 10us "aten::view"
w held host 90us "held up" after h handoff
a cpu0 call 10us "cudaLaunchKernel" after w handoff
k gpu0.7 kernel 30us "sgemm" after a launch
)"));
  EXPECT_EQ(p.step, Duration::Us(140));
  EXPECT_EQ(Curve(p, "host work").work, Duration::Us(10));
  EXPECT_EQ(Curve(p, "host work").saved(), Duration::Us(10));
}

TEST(Causal, BendsAreFoundBetweenThePoints) {
  // With points at 25, 50 and 75 % only. The second call bends at 60 %, the copy at 75 %.
  CausalProfile p = Profile(*ParseGraph(kTwoStreams), {.points = 4});
  ASSERT_TRUE(Curve(p, "cudaMemcpyAsync").bend.has_value());
  EXPECT_NEAR(*Curve(p, "cudaMemcpyAsync").bend, 0.6, 0.0125);
  EXPECT_DOUBLE_EQ(*Curve(p, "Memcpy DtoH").bend, 0.75);
}

TEST(Causal, NoWorkHoldsItselfUp) {
  // One kernel of 30 us and a copy of 28 beside it: with less of the kernel the copy decides,
  // though the kernel is longer until then.
  CausalProfile p = Profile(*ParseGraph(R"(lane cpu0   thread
lane gpu0.7 stream
lane gpu0.8 stream
a cpu0 call 1us "cudaLaunchKernel"
k gpu0.7 kernel 20us "sgemm" after a launch
l gpu0.7 kernel 20us "sgemm"
c gpu0.8 memcpy 19us "Memcpy DtoH" after a launch
d gpu0.8 memset 9us "Memset"
)"));
  const SpeedupCurve& kernel = Curve(p, "gemm");
  ASSERT_TRUE(kernel.bend.has_value());
  EXPECT_NEAR(*kernel.bend, 0.3, 0.0025);
  ASSERT_TRUE(kernel.next.has_value());
  EXPECT_NE(kernel.next->what, "gemm kernels");
}

TEST(Causal, WorkThatIsHiddenIsFlat) {
  CausalProfile p = Profile(*ParseGraph(kTwoStreams));
  const SpeedupCurve& kernel = Curve(p, "gemm");
  EXPECT_TRUE(kernel.flat);
  EXPECT_EQ(kernel.saved(), Duration{});
  EXPECT_FALSE(kernel.bend.has_value());
}

TEST(Causal, StraightCurvesHaveNoBend) {
  CausalProfile p = Profile(*ParseGraph(kTwoStreams));
  const SpeedupCurve& first = Curve(p, "cudaLaunchKernel");
  EXPECT_EQ(first.saved(), Duration::Us(10));
  EXPECT_FALSE(first.flat);
  EXPECT_FALSE(first.bend.has_value());
}

TEST(Causal, WhatSavesMostComesFirst) {
  CausalProfile p = Profile(*ParseGraph(kTwoStreams));
  for (size_t i = 1; i < p.curves.size(); ++i) {
    EXPECT_GE(p.curves[i - 1].saved(), p.curves[i].saved());
  }
}

TEST(Causal, EveryTaskThatWorksIsInOneGroupBesideItsLayer) {
  Graph graph = RandomGraph(3, {.tasks = 200});
  std::vector<int> seen(graph.size());
  for (const WorkGroup& g : WorkGroups(graph)) {
    if (g.apart) continue;  // parts of the host work
    for (TaskId t : g.tasks) seen[t.index()] += g.family != Family::kLayer;
  }
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    const bool works = !t.removed && t.kind != TaskKind::kWait && t.kind != TaskKind::kDelay;
    EXPECT_EQ(seen[i], works ? 1 : 0) << i;
  }
}

// What `speedup` says about the same tasks.
Duration Faster(const Graph& graph, const std::string& select, double by) {
  Graph copy = graph;
  auto scenario = ParseScenario(fmt::format("speedup('{}',{})", select, by));
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  auto applied = Apply((*scenario)[0], copy);
  EXPECT_TRUE(applied.ok()) << applied.status();
  return StepTime(copy, *Simulate(copy));
}

TEST(Causal, EveryPointIsWhatSpeedupPredicts) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    // Recorded graphs have no removed tasks.
    const Graph graph = RandomGraph(seed, {.tasks = 60, .removed = false});
    for (const char* select : {"kind:gpu", "kind:host", "kind:kernel"}) {
      auto selector = Selector::Compile(select);
      ASSERT_TRUE(selector.ok());
      const WorkGroup group{Family::kSelected, select, selector->Select(graph)};
      if (group.tasks.empty()) continue;
      auto profile = ProfileCauses(graph, {&group, 1}, {.points = 4});
      ASSERT_TRUE(profile.ok()) << profile.status();
      const SpeedupCurve& c = profile->curves[0];
      EXPECT_EQ(c.steps[0], StepTime(graph, *Simulate(graph)));
      EXPECT_EQ(c.steps[2], Faster(graph, select, 2));
      EXPECT_EQ(c.steps[3], Faster(graph, select, 4));
    }
  }
}

TEST(Causal, TheSameWithAnyNumberOfThreads) {
  const Graph graph = RandomGraph(5, {.tasks = 300});
  CausalProfile one = Profile(graph, {.jobs = 1}), many = Profile(graph, {.jobs = 5});
  ASSERT_EQ(one.curves.size(), many.curves.size());
  for (size_t i = 0; i < one.curves.size(); ++i) {
    EXPECT_EQ(one.curves[i].name, many.curves[i].name);
    EXPECT_EQ(one.curves[i].steps, many.curves[i].steps);
  }
}

TEST(Causal, CountsTheGroupsItLeavesOut) {
  const Graph graph = *ParseGraph(kTwoStreams);
  CausalProfile p = Profile(graph, {.most = 1});
  EXPECT_EQ(p.left_out, 1u);  // one of the two calls
  EXPECT_EQ(p.curves.size() + p.left_out, WorkGroups(graph).size());
}

}  // namespace
}  // namespace daydream
