#include "trace/steps.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/trace_sketch.h"
#include "trace/step_launches.h"

namespace daydream {
namespace {

// Launches of `names`, one kernel each, from `us` on, 10 us apart; returns the time behind them.
double Launches(TraceSketch& sketch, double us, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    sketch.Launch(sketch.Thread(), sketch.Stream(), name, us, 4, us + 5, 5);
    us += 10;
  }
  return us;
}

const std::vector<std::string> kWork = {"conv", "relu", "gemm", "gemm_backward", "sgd"};

TEST(Steps, ProfilerStepMarksComeFirst) {
  TraceSketch sketch;
  double us = 0;
  for (int i = 0; i < 4; ++i) {
    double begin = us;
    us = Launches(sketch, us, kWork);
    sketch.Mark(sketch.Thread(), "Optimizer.step#SGD.step", us - 10, 9);
    sketch.Mark(sketch.Thread(), "ProfilerStep#" + std::to_string(7 + i), begin, us - begin);
  }
  Steps steps = FindSteps(*sketch.Build());
  EXPECT_EQ(steps.method, StepMethod::kProfilerStep);
  ASSERT_EQ(steps.steps.size(), 4u);
  EXPECT_EQ(steps.steps[0].label, "ProfilerStep#7");
  EXPECT_EQ(steps.steps[0].use, StepUse::kWarmUp);
  EXPECT_EQ(steps.measured(), 3u);
  EXPECT_EQ((steps.steps[1].end - steps.steps[1].begin).ns, 50000);
}

// Three marks of `length` us, 100 us apart, each around one iteration of 50 us.
Steps Marked(double length) {
  TraceSketch sketch;
  for (int i = 0; i < 3; ++i) {
    Launches(sketch, 100 * i, kWork);
    sketch.Mark(sketch.Thread(), "ProfilerStep#" + std::to_string(i), 100 * i, length);
  }
  return FindSteps(*sketch.Build());
}

TEST(Steps, MarksThatOverlapEndWhereTheNextBegins) {
  for (double length : {100.0, 100.001, 150.0}) {
    const Steps steps = Marked(length);
    ASSERT_EQ(steps.steps.size(), 3u) << length;
    EXPECT_EQ((steps.steps[0].end - steps.steps[0].begin).ns, 100'000) << length;
    EXPECT_EQ(steps.inside, 0u);
  }
}

TEST(Steps, MarksThatTakeNoTimeBeginTheirSteps) {
  const Steps steps = Marked(0);
  ASSERT_EQ(steps.steps.size(), 3u);
  EXPECT_EQ((steps.steps[1].end - steps.steps[1].begin).ns, 100'000);
  EXPECT_EQ((steps.steps[2].end - steps.steps[2].begin).ns, 44'000) << "to the end of the thread";
}

TEST(Steps, MarksInsideOfOthersAreCounted) {
  TraceSketch sketch;
  Launches(sketch, 0, kWork);
  for (int i = 0; i < 3; ++i) sketch.Mark(sketch.Thread(), "step " + std::to_string(i), 0, 50);
  sketch.Mark(sketch.Thread(), "step 4", 50, 50);
  const Steps steps = FindSteps(*sketch.Build());
  EXPECT_EQ(steps.steps.size(), 2u);
  EXPECT_EQ(steps.inside, 2u);
}

TEST(Steps, AStepWithHardlyAnyGpuWorkIsAStub) {
  TraceSketch sketch;
  double us = Launches(sketch, 0, kWork);
  sketch.Mark(sketch.Thread(), "ProfilerStep#1", 0, us);
  sketch.Mark(sketch.Thread(), "ProfilerStep#2", us + 1, 5);
  Steps steps = FindSteps(*sketch.Build());
  ASSERT_EQ(steps.steps.size(), 2u);
  EXPECT_EQ(steps.steps[0].use, StepUse::kMeasured);
  EXPECT_EQ(steps.steps[1].use, StepUse::kStub);
  EXPECT_EQ(steps.steps[1].why, "it launches 0 GPU tasks, a typical step 5");
}

TEST(Steps, ASlowFirstStepIsWarmUpAndSaysSo) {
  TraceSketch sketch;
  Launches(sketch, 0, kWork);
  Launches(sketch, 2000, kWork);
  sketch.Mark(sketch.Thread(), "ProfilerStep#1", 0, 1990);
  sketch.Mark(sketch.Thread(), "ProfilerStep#2", 2000, 500);
  Steps steps = FindSteps(*sketch.Build());
  ASSERT_EQ(steps.steps.size(), 2u);
  EXPECT_EQ(steps.steps[0].use, StepUse::kWarmUp);
  EXPECT_EQ(steps.steps[0].why, "the first step takes 2.0 ms, the median of the others 0.5 ms");
}

// Marks that begin as the one before ends, with launches at their end.
std::vector<StepUse> UsesOf(const std::vector<double>& lengths) {
  TraceSketch sketch;
  double us = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    Launches(sketch, us + lengths[i] - 60, kWork);
    sketch.Mark(sketch.Thread(), "ProfilerStep#" + std::to_string(i), us, lengths[i]);
    us += lengths[i];
  }
  std::vector<StepUse> uses;
  for (const Step& step : FindSteps(*sketch.Build()).steps) uses.push_back(step.use);
  return uses;
}

size_t WarmUpsOf(const std::vector<double>& lengths) {
  const std::vector<StepUse> uses = UsesOf(lengths);
  return static_cast<size_t>(std::ranges::count(uses, StepUse::kWarmUp));
}

TEST(Steps, StepsBehindTheFirstThatTakeClearlyLongerThanAllOthersAreWarmUpToo) {
  EXPECT_EQ(WarmUpsOf({900, 100, 100, 100, 100}), 1u);
  EXPECT_EQ(WarmUpsOf({900, 200, 100, 100, 100}), 2u);
  EXPECT_EQ(WarmUpsOf({900, 400, 200, 150, 100, 100, 100, 100}), 4u);
  EXPECT_EQ(WarmUpsOf({900, 130, 120, 100, 100, 100, 100}), 3u) << "120 is clearly more than 100";
  EXPECT_EQ(WarmUpsOf({900, 110, 100, 100, 100}), 1u) << "110 is not";
  EXPECT_EQ(WarmUpsOf({900, 200, 100, 100}), 1u) << "three are left";
}

TEST(Steps, AStepThatIsLongAgainLaterIsNoWarmUp) {
  EXPECT_EQ(WarmUpsOf({900, 200, 100, 100, 200, 100, 100}), 1u) << "every third step logs";
  EXPECT_EQ(WarmUpsOf({900, 200, 100, 900, 100, 100}), 2u) << "a stall says nothing of it";
  EXPECT_EQ(WarmUpsOf({900, 200, 100, 900, 900, 100, 100}), 1u) << "two may be of the program";
}

TEST(Steps, OptimizerStepsEndIterations) {
  TraceSketch sketch;
  double us = 0;
  for (int i = 0; i < 5; ++i) {
    us = Launches(sketch, us, kWork);
    sketch.Mark(sketch.Thread(), "Optimizer.step#Adam.step", us - 10, 9);
  }
  Steps steps = FindSteps(*sketch.Build());
  EXPECT_EQ(steps.method, StepMethod::kAnnotation);
  ASSERT_EQ(steps.steps.size(), 5u);
  EXPECT_EQ(steps.steps[1].label, "iteration 2");
  EXPECT_EQ((steps.steps[1].end - steps.steps[1].begin).ns, 50000);
  EXPECT_EQ(steps.measured(), 4u);
}

TEST(Steps, OtherAnnotationsCountWhenTheyHoldTheWork) {
  TraceSketch sketch;
  double us = 0;
  for (int i = 0; i < 4; ++i) {
    double begin = us;
    us = Launches(sketch, us, kWork);
    sketch.Mark(sketch.Thread(), "step " + std::to_string(i), begin, us - begin);
    sketch.Mark(sketch.Thread(), "small", begin, 9);
  }
  Steps steps = FindSteps(*sketch.Build());
  EXPECT_EQ(steps.method, StepMethod::kAnnotation);
  ASSERT_EQ(steps.steps.size(), 4u);
  EXPECT_EQ(steps.steps[3].label, "step 3");
}

TEST(Steps, WithoutMarksThePeriodOfTheLaunchesDecides) {
  TraceSketch sketch;
  double us = 0;
  for (int i = 0; i < 6; ++i) us = Launches(sketch, us, kWork);
  Steps steps = FindSteps(*sketch.Build());
  EXPECT_EQ(steps.method, StepMethod::kPeriod);
  ASSERT_EQ(steps.steps.size(), 6u);
  EXPECT_EQ((steps.steps[2].end - steps.steps[2].begin).ns, 50000);
}

TEST(Steps, LayersOfOneIterationAreNoSteps) {
  TraceSketch sketch;
  double us = Launches(sketch, 0, {"embed", "norm"});
  for (int i = 0; i < 12; ++i) us = Launches(sketch, us, {"qkv", "softmax", "av", "mlp"});
  Launches(sketch, us, {"head", "loss", "argmax"});
  Steps steps = FindSteps(*sketch.Build());
  EXPECT_EQ(steps.method, StepMethod::kWindow);
  ASSERT_EQ(steps.steps.size(), 1u);
  EXPECT_FALSE(steps.lane.valid());
  EXPECT_EQ(steps.measured(), 1u);
}

// As after the front of a recording was cut away, or where nothing was marked.
TEST(Steps, LayersThatFillTheWindowAreNoSteps) {
  const std::vector<std::string> layer = {"qkv", "softmax", "av", "mlp"};
  for (const bool whole : {true, false}) {  // with the call of the model, and without
    TraceSketch sketch;
    double us = 10;
    for (int i = 0; i < 12; ++i) {
      const double begin = us;
      us = Launches(sketch, us, layer);
      const std::string name = whole ? "Layer_0" : "Layer_" + std::to_string(i);
      sketch.Frame(sketch.Thread(), name, begin - 1, us - begin);
    }
    if (whole) sketch.Frame(sketch.Thread(), "Model_0", 1, us + 10);
    EXPECT_EQ(FindSteps(*sketch.Build()).method, StepMethod::kWindow) << whole;
  }
  // The same modules again: steps, wherever the recording begins.
  TraceSketch sketch;
  double us = 10;
  Launches(sketch, 0, {"mlp"});
  for (int i = 0; i < 12; ++i) {
    const double begin = us;
    us = Launches(sketch, us, layer);
    sketch.Frame(sketch.Thread(), "Model_0", begin - 1, us - begin);
  }
  EXPECT_EQ(FindSteps(*sketch.Build()).method, StepMethod::kPeriod);
}

// Marks that take no time: nothing says where the work behind them ends.
TEST(Steps, AStepWhoseNextMarkIsMissingIsLeftOut) {
  for (const int missing : {-1, 3}) {
    TraceSketch sketch;
    double us = 0;
    for (int i = 0; i < 7; ++i) {
      const double begin = us;
      us = Launches(sketch, us, kWork);
      if (i == missing) continue;
      sketch.Mark(sketch.Thread(), "ProfilerStep#" + std::to_string(98 + i), begin, 0);
    }
    const Steps steps = FindSteps(*sketch.Build());
    if (missing < 0) {
      EXPECT_EQ(steps.measured(), 6u);  // all but the first
      continue;
    }
    EXPECT_EQ(steps.measured(), 4u);
    EXPECT_EQ(steps.steps[2].use, StepUse::kStub);
    EXPECT_EQ(steps.steps[2].why,
              "the next mark is \"ProfilerStep#102\": one is missing behind it");
  }
}

// The profiler was off for 20 s: nothing of what it missed is there.
TEST(Steps, WhatLiesBetweenTwoWindowsOfAProfilerIsNoStep) {
  TraceSketch sketch;
  double us = 0;
  for (const int number : {98, 99, 100, 104, 105, 106}) {
    if (number == 104) us += 20e6;
    const double begin = us;
    us = Launches(sketch, us, kWork);
    sketch.Mark(sketch.Thread(), "ProfilerStep#" + std::to_string(number), begin, us - begin - 1);
  }
  const Steps steps = FindSteps(*sketch.Build());
  std::vector<StepUse> uses;
  for (const Step& s : steps.steps) uses.push_back(s.use);
  EXPECT_THAT(uses, testing::ElementsAre(StepUse::kWarmUp, StepUse::kMeasured, StepUse::kMeasured,
                                         StepUse::kNotRecorded, StepUse::kWarmUp,
                                         StepUse::kMeasured, StepUse::kMeasured));
}

TEST(Steps, AnEmptyTraceHasNone) { EXPECT_TRUE(FindSteps(*TraceSketch().Build()).steps.empty()); }

TEST(Steps, ThePeriodIsTheSmallestThatHolds) {
  std::vector<uint64_t> sequence;
  for (uint64_t i = 0; i < 100; ++i) sequence.push_back(i % 10);
  EXPECT_EQ(FindPeriod(sequence), 10u);
  sequence[55] = 77;
  EXPECT_EQ(FindPeriod(sequence), 0u);  // too short to forgive anything
  sequence.resize(25);
  EXPECT_EQ(FindPeriod(sequence), 0u);  // not three times
  EXPECT_EQ(FindPeriod({}), 0u);
}

// A program that accumulates gradients over two steps launches its optimizer in every second one.
TEST(Steps, AKindOfStepThatComesAgainIsNoStub) {
  TraceSketch sketch;
  double us = 0;
  for (int i = 0; i < 8; ++i) {
    const double begin = us;
    us = Launches(sketch, us, kWork);
    for (int k = 0; i % 2 == 1 && k < 40; ++k) us = Launches(sketch, us, {"adam"});
    sketch.Mark(sketch.Thread(), "ProfilerStep#" + std::to_string(i), begin, us - begin);
  }
  const Steps steps = FindSteps(*sketch.Build());
  EXPECT_EQ(steps.measured(), 7u);  // all but the first
  EXPECT_EQ(steps.steps[2].use, StepUse::kMeasured);
}

}  // namespace
}  // namespace daydream
