// The checks of a replay that can fail, on graphs where it is known what they have to say.
#include "report/predict/self_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/text.h"
#include "report/predict/what_if.h"
#include "report/predict/why_it_fails.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

// Each step launches one kernel of 90 us, every 100 us. `lag` and `delay` of step 2 are its own.
Graph Steps(int lag_us, int delay_us) {
  std::string text = "lane cpu thread\nlane gpu stream\n";
  for (int i = 0; i < 4; ++i) text += fmt::format("step \"{}\" period 100us\n", i);
  for (int i = 0; i < 4; ++i) {
    text += fmt::format("h{0} cpu host 100us \"op\" step={0}\n", i);
    const int lag = i == 2 ? lag_us : 5, delay = i == 2 ? delay_us : 0;
    if (delay > 0) {
      text += fmt::format(
          "d{0} gpu delay {1}us \"(unexplained)\" step={0} after h{0} launch +5us\n", i, delay);
    }
    text +=
        fmt::format("k{0} gpu kernel 90us \"gemm\" step={0} after h{0} launch +{1}us\n", i, lag);
  }
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << Message(graph.status());
  return graph.ok() ? *std::move(graph) : Graph();
}

TEST(SelfCheck, StepsThatAreAlikePassAll) {
  const Graph graph = Steps(5, 0);
  EXPECT_EQ(UnexplainedShare(graph, Duration::Us(1)), 0);
  const auto repeated = RepeatTest(graph), crossed = CrossTest(graph);
  ASSERT_TRUE(repeated.has_value());
  ASSERT_TRUE(crossed.has_value());
  EXPECT_EQ(repeated->steps, 3u);
  EXPECT_NEAR(repeated->error, 0, 1e-9);
  EXPECT_NEAR(crossed->error, 0, 1e-9);
}

TEST(SelfCheck, ALagThatOneStepHasAloneFailsAcrossSteps) {
  Graph graph = Steps(65, 0);  // the kernel of step 2 starts 60 us later, so that step is longer
  auto timeline = Simulate(graph);
  ASSERT_TRUE(timeline.ok());
  const std::vector<Duration> periods = StepPeriods(graph, *timeline);
  for (size_t s = 1; s < 4; ++s) graph.mutable_step(s).recorded_period = periods[s - 1];
  const auto crossed = CrossTest(graph);
  ASSERT_TRUE(crossed.has_value());
  EXPECT_EQ(crossed->worst_step, "2");
  EXPECT_NEAR(crossed->worst, 100.0 / 160 - 1, 1e-6);
}

// Predictions are of the mean, so that no table is refused for one step of many.
TEST(SelfCheck, AStepThatIsOffIsNamedAndTheMeanDecides) {
  ReplayCheck check;
  check.repeated = StepTest{.error = -0.001, .steps = 4, .worst_step = "Step#8", .worst = 0.162};
  check.crossed = StepTest{.error = 0.001, .steps = 4, .worst_step = "Step#7", .worst = -0.12};
  EXPECT_LT(check.worst().error, 0.01);
  EXPECT_EQ(check.baseline_doubt(), "");
  EXPECT_EQ(check.step_doubt(),
            "Step#8 played by itself is off by +16.2 % (the mean of the steps is not)");
  check.repeated->worst = 0.09;
  EXPECT_THAT(check.step_doubt(), testing::HasSubstr("Step#7 with the lags of the others"));
  check.crossed->worst = -0.09;
  EXPECT_EQ(check.step_doubt(), "");
}

TEST(SelfCheck, DelaysThatNoRuleExplainsAreAShareOfTheStep) {
  Graph graph = Steps(5, 60);
  const Duration step = StepTime(graph, Simulate(graph).value());
  const double share = UnexplainedShare(graph, step).value();
  EXPECT_GT(share, 0.05);
  EXPECT_LT(share, 0.35);
}

TEST(SelfCheck, AStepThatTookLongerThanItCanFailsByItself) {
  Graph graph = Steps(5, 0);
  graph.mutable_step(3).recorded_period = Duration::Us(200);  // something else was going on
  const auto repeated = RepeatTest(graph);
  ASSERT_TRUE(repeated.has_value());
  EXPECT_EQ(repeated->worst_step, "3");
  EXPECT_NEAR(repeated->worst, -0.5, 1e-6);
}

// What host and GPU take in step `i`.
struct StepTimes {
  int host_us, gpu_us;
};

// Recorded as they play: one kernel a step.
Graph Played(size_t steps, StepTimes (*of)(size_t)) {
  std::string text = "lane cpu thread\nlane gpu stream\n";
  for (size_t i = 0; i < steps; ++i) text += fmt::format("step \"{}\" period 100us\n", i);
  for (size_t i = 0; i < steps; ++i) {
    text += fmt::format(
        "h{0} cpu host {1}us \"op\" step={0}\n"
        "k{0} gpu kernel {2}us \"gemm\" step={0} after h{0} launch +5us\n",
        i, of(i).host_us, of(i).gpu_us);
  }
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << Message(graph.status());
  if (!graph.ok()) return {};
  const std::vector<Duration> periods = StepPeriods(*graph, Simulate(*graph).value());
  for (size_t s = 1; s < steps; ++s) graph->mutable_step(s).recorded_period = periods[s - 1];
  return *std::move(graph);
}

// The host takes 100 us a step, and the GPU 160 and 20 in turn.
Graph StepsInTurn(size_t steps) {
  return Played(steps, [](size_t i) -> StepTimes { return {100, i % 2 == 0 ? 160 : 20}; });
}

// A loader holds up the host of every fourth step; the GPU has a backlog of the three before.
Graph EveryFourthIsHeldUp(size_t steps) {
  return Played(steps, [](size_t i) -> StepTimes { return {i % 4 == 3 ? 580 : 100, 190}; });
}

// A long step leaves the next one a host that is ahead, which hides it.
TEST(SelfCheck, RunsOfStepsDecideWhereStepsLeaveSlackToTheNext) {
  Graph graph = StepsInTurn(9);
  ReplayCheck check;
  check.repeated = RepeatTest(graph);
  ASSERT_TRUE(check.repeated.has_value());
  EXPECT_NEAR(check.repeated->error, 0.30, 0.01) << "(160 + 100) / 2 for 100";
  ASSERT_TRUE(check.repeated->runs.has_value());
  EXPECT_EQ(check.repeated->runs->steps, 2u);
  EXPECT_NEAR(check.repeated->runs->error, 0, 1e-9);
  EXPECT_EQ(check.baseline_doubt(), "");
  EXPECT_THAT(check.step_doubt(), testing::HasSubstr("(2 steps in a row are not)"));
}

// Five steps in a row, with one that is held up, eat a backlog that is not there when they go on:
// the first half of eleven and the second are 12 % shorter over and over. What ends with the
// backlog that it began with takes what it took.
TEST(SelfCheck, RunsThatLeaveTheBacklogTheyFoundDecide) {
  for (size_t steps : {5, 9, 12, 13}) {
    ReplayCheck check;
    check.repeated = RepeatTest(EveryFourthIsHeldUp(steps));
    ASSERT_TRUE(check.repeated.has_value());
    EXPECT_GT(check.repeated->error, 0.1) << "each by itself";
    ASSERT_TRUE(check.repeated->runs.has_value());
    EXPECT_GE(check.repeated->runs->steps, 3u);
    EXPECT_NEAR(check.repeated->runs->error, 0, 0.005) << steps;
    EXPECT_EQ(check.baseline_doubt(), "");
  }
}

// The reason of a refusal is that of the check that fails.
TEST(SelfCheck, EachCheckHasItsOwnReason) {
  ReplayCheck check;
  check.crossed = StepTest{.error = 0.2, .steps = 4, .worst_step = "", .worst = 0.2};
  EXPECT_THAT(std::string(WhyItFails(check)), testing::HasSubstr("lags"));
  check.repeated = StepTest{.error = -0.3, .steps = 4, .worst_step = "", .worst = -0.3};
  EXPECT_THAT(std::string(WhyItFails(check)), testing::HasSubstr("over and over"));
  check.unexplained = 0.4;
  EXPECT_THAT(std::string(WhyItFails(check)), testing::HasSubstr("delays"));
}

// What no rule explains in all of them fails in runs, too.
TEST(SelfCheck, RunsOfStepsThatTookLongerThanTheyCanFail) {
  Graph graph = StepsInTurn(9);
  for (size_t s = 1; s < 9; ++s) graph.mutable_step(s).recorded_period += Duration::Us(50);
  ReplayCheck check;
  check.repeated = RepeatTest(graph);
  ASSERT_TRUE(check.repeated.has_value());
  EXPECT_NEAR(check.repeated->error, 130.0 / 150 - 1, 0.01);
  ASSERT_TRUE(check.repeated->runs.has_value());
  EXPECT_NEAR(check.repeated->runs->error, 100.0 / 150 - 1, 1e-6);
  EXPECT_THAT(check.baseline_doubt(), testing::HasSubstr("2 steps in a row"));
}

TEST(SelfCheck, OneStepHasNoOthersToBorrowFrom) {
  const auto graph = ParseGraph("lane a thread\nlane s stream\nstep \"0\"\nx a host 5ns\n");
  ASSERT_TRUE(graph.ok());
  EXPECT_FALSE(CrossTest(*graph).has_value());
}

}  // namespace
}  // namespace daydream
