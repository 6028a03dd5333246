// Four ways to play a graph must agree to the nanosecond: the plan, the plan with eight scenarios
// side by side, the event queue, and the naive oracle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "graph/text.h"
#include "graph/validate.h"
#include "simulator/schedule.h"
#include "simulator/simulate.h"
#include "tests/graph/random_graph.h"
#include "tests/simulator/oracle.h"

namespace daydream {
namespace {

constexpr uint64_t kSeeds = 1000;

RandomGraphOptions OptionsFor(uint64_t seed, size_t priority_lanes) {
  RandomGraphOptions options;
  options.tasks = 1 + seed % 60;
  options.lanes = priority_lanes + 1 + seed % 5;
  options.priority_lanes = priority_lanes;
  options.edges_per_task = static_cast<double>(seed % 7) * 0.5;
  options.longest = seed % 2 == 0 ? 3 : 1000;
  return options;
}

void ExpectEqual(const Timeline& a, const Timeline& b) {
  EXPECT_EQ(a.start, b.start);
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.makespan, b.makespan);
}

TEST(Differential, PlanScheduleAndOracleAgreeWhereLanesAreFixed) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph g = RandomGraph(seed, OptionsFor(seed, 0));
    ASSERT_TRUE(Validate(g).ok()) << Validate(g);
    const Timeline oracle = OracleTimeline(g);
    const auto linear = Simulate(g);
    ASSERT_TRUE(linear.ok()) << linear.status();
    ExpectEqual(*linear, oracle);
    const auto scheduled = Schedule(g);
    ASSERT_TRUE(scheduled.ok()) << scheduled.status();
    ExpectEqual(*scheduled, oracle);
    if (HasFailure()) FAIL() << FormatGraph(g);
  }
}

TEST(Differential, ScheduleAndOracleAgreeWhereLanesReorder) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph g = RandomGraph(seed, OptionsFor(seed, 1 + seed % 3));
    ASSERT_TRUE(Validate(g).ok()) << Validate(g);
    const auto scheduled = Simulate(g);
    ASSERT_TRUE(scheduled.ok()) << scheduled.status();
    ExpectEqual(*scheduled, OracleTimeline(g));
    if (HasFailure()) FAIL() << FormatGraph(g);
  }
}

TEST(Differential, BlockersDoNotChangeTheTimeline) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph g = RandomGraph(seed, OptionsFor(seed, seed % 3));
    ExpectEqual(*Simulate(g, {.blockers = true}), *Simulate(g));
  }
}

TEST(Differential, StepsPlayedAtOnceAreThoseOfTheTimeline) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Graph g = RandomGraph(seed, OptionsFor(seed, seed % 4 == 0 ? 1 : 0));
    std::mt19937_64 random(seed);
    for (size_t steps = seed % 5; steps > 0; --steps) {
      g.AddStep({.label = "step", .measured = random() % 3 > 0});
    }
    for (size_t i = 0; i < g.size() && !g.steps().empty(); ++i) {
      g.mutable_task(TaskId(i)).step = static_cast<uint16_t>(random() % g.steps().size());
    }
    const Timeline timeline = *Simulate(g);
    const auto played = PlaySteps(g);
    ASSERT_TRUE(played.ok()) << played.status();
    ExpectEqual(played->timeline, timeline);
    EXPECT_EQ(played->periods, StepPeriods(g, timeline));
    EXPECT_EQ(StepTime(g, played->periods), StepTime(g, timeline));
  }
}

TEST(Differential, PlanFollowsChangedNumbers) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Graph g = RandomGraph(seed, OptionsFor(seed, 0));
    const auto plan = Plan::Make(g);
    ASSERT_TRUE(plan.ok());
    for (size_t i = 0; i < g.size(); ++i) {
      Task& t = g.mutable_task(TaskId(i));
      if (t.kind != TaskKind::kWait) t.duration = t.duration * 3;
      t.gap = t.gap / 2;
    }
    for (Edge& e : g.mutable_edges()) e.lag += Duration::Ns(1);
    ExpectEqual(plan->Run(g), OracleTimeline(g));
  }
}

TEST(Differential, RunsWithOtherNumbersAgree) {
  std::mt19937_64 random(7);
  for (uint64_t seed = 0; seed < kSeeds / 4; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Graph g = RandomGraph(seed, OptionsFor(seed, 0));
    const auto plan = Plan::Make(g);
    ASSERT_TRUE(plan.ok());
    for (size_t s = 0; s < 1 + seed % 19; ++s) {
      std::vector<Duration> duration, gap;
      for (size_t i = 0; i < g.size(); ++i) {
        Task& t = g.mutable_task(TaskId(i));
        if (t.kind != TaskKind::kWait) t.duration = Duration::Ns(int64_t(random() % 100));
        duration.push_back(t.duration);
        gap.push_back(t.gap);
      }
      ExpectEqual(plan->Run(duration, gap), OracleTimeline(g));
    }
  }
}

}  // namespace
}  // namespace daydream
