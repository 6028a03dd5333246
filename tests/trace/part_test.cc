#include "trace/part/part.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/graph/trace_sketch.h"

namespace daydream {
namespace {

// Steps that take so many ms each on the GPU, and one that ends the last.
Steps StepsOf(const std::vector<double>& ms, size_t launches = 100) {
  Steps steps{.method = StepMethod::kProfilerStep, .lane = LaneId(0), .steps = {}};
  int64_t at = 0;
  for (size_t i = 0; i <= ms.size(); ++i) {
    const auto length = static_cast<int64_t>((i < ms.size() ? ms[i] : 1) * 1e6);
    steps.steps.push_back({.label = "step " + std::to_string(i),
                           .begin = Instant::AtNs(at),
                           .end = Instant::AtNs(at + length),
                           .why = {},
                           .launched = launches,
                           .gpu_begin = Instant::AtNs(at + 1000)});
    at += length;
  }
  return steps;
}

TEST(Part, AShortRecordingIsAskedAsAWhole) {
  const Steps steps = StepsOf(std::vector<double>(100, 5));
  EXPECT_FALSE(ChooseSteps(steps, 1000, 1000).has_value());
  EXPECT_FALSE(ChooseSteps(steps, 1300, 1000).has_value()) << "three quarters are no part";
  EXPECT_TRUE(ChooseSteps(steps, 1400, 1000).has_value());
}

TEST(Part, WhatSaysNothingOfOtherStepsIsAskedAsAWhole) {
  Steps window = StepsOf(std::vector<double>(100, 5));
  window.method = StepMethod::kWindow;
  EXPECT_FALSE(ChooseSteps(window, 1'000'000, 1000).has_value());
  Steps labelled = StepsOf(std::vector<double>(100, 5));
  labelled.steps[3].labelled = true;
  EXPECT_FALSE(ChooseSteps(labelled, 1'000'000, 1000).has_value()) << "others take its layers";
  Steps no_gpu = StepsOf(std::vector<double>(100, 5));
  for (Step& step : no_gpu.steps) step.gpu_begin.reset();
  EXPECT_FALSE(ChooseSteps(no_gpu, 1'000'000, 1000).has_value());
}

TEST(Part, EqualStepsAreTheFirstWithAWholeQueueBeforeThem) {
  const auto range = ChooseSteps(StepsOf(std::vector<double>(1000, 5)), 1'000'000, 100'000);
  ASSERT_TRUE(range.has_value());
  // 100 steps are allowed: 21 of 100 launches hold more than two queues, one stands behind.
  EXPECT_EQ(*range, (StepRange{.first = 1, .last = 78, .before = 1, .behind = 1}))
      << "from " << range->first << " to " << range->last;
  const auto later = StepsAround(StepsOf(std::vector<double>(1000, 5)), 500, 507);
  EXPECT_EQ(*later, (StepRange{.first = 500, .last = 507, .before = 21, .behind = 1}));
}

TEST(Part, EightStepsCountWhateverTheyHold) {
  const auto range = ChooseSteps(StepsOf(std::vector<double>(100, 5)), 100'000'000, 1000);
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->last - range->first + 1, kFewestSteps);
}

TEST(Part, TheRunWhoseMeanIsThatOfAllStandsForThem) {
  std::vector<double> ms(100);
  for (size_t i = 0; i < 100; ++i)
    ms[i] = i < 90 ? 5 + 0.02 * static_cast<double>(i % 10) : 8;  // mean 5.4
  for (size_t i = 0; i < 8; ++i) ms[40 + i] = i % 2 == 0 ? 5.2 : 5.55;
  const auto range = ChooseSteps(StepsOf(ms), 100'000'000, 1000);
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->first, 40u);
}

TEST(Part, OfRunsWithThatMeanItIsTheOneThatDiffersAsAllDo) {
  std::vector<double> ms(96);
  for (size_t i = 0; i < 96; ++i) ms[i] = i % 8 == 3 ? 9 : 5;  // mean 5.5
  for (size_t i = 0; i < 8; ++i) ms[i + 1] = 5.5;
  const auto range = ChooseSteps(StepsOf(ms), 100'000'000, 1000);
  ASSERT_TRUE(range.has_value());
  EXPECT_GT(range->first, 8u) << "eight of 5.5 ms have that mean, too";
}

TEST(Part, UnevenStepsTakeMore) {
  std::vector<double> ms(320);
  for (size_t i = 0; i < 320; ++i) ms[i] = i % 32 == 20 ? 40 : 5;  // mean 6.1
  // 10 of 321 steps are allowed, and four times as many.
  const auto range = ChooseSteps(StepsOf(ms, 1000), 321'000, 10'000);
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->last - range->first + 1, 32u);
}

TEST(Part, WhereMoreDoNotHelpAFewStandAndAreUnlike) {
  std::vector<double> ms(320, 5);
  ms[200] = 500;  // mean 6.5
  const auto range = ChooseSteps(StepsOf(ms, 1000), 321'000, 10'000);
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->last - range->first + 1, kFewestSteps);
  const std::shared_ptr<const Trace> part =
      PartOf(*TraceSketch().Build(), StepsOf(ms), *range, PartIs::kChosen);
  EXPECT_GT(part->part->unlike(), kUnlikeSteps);
  EXPECT_EQ(part->part->longest, "step 200");
  EXPECT_EQ(part->part->longest_time, Duration::Ms(500));
}

TEST(Part, StepsThatDoNotCountEndARun) {
  Steps steps = StepsOf(std::vector<double>(40, 5));
  for (size_t i = 5; i < 40; i += 10) steps.steps[i].use = StepUse::kStub;
  const auto range = ChooseSteps(steps, 100'000'000, 1000);
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->first, 6u);
  EXPECT_EQ(range->last, 13u);
}

// 40 steps of 100 us: an op with a launch each, whose kernel runs when the next step has begun.
TraceSketch LongRecording() {
  TraceSketch sketch;
  for (int i = 0; i < 40; ++i) {
    const double at = 100.0 * i;
    sketch.Mark(sketch.Thread(), "ProfilerStep#" + std::to_string(i), at, 100);
    sketch.Op(sketch.Thread(), "aten::mm", at + 5, 60, i);
    sketch.Launch(sketch.Thread(), sketch.Stream(), "gemm", at + 10, 5, at + 110, 80);
    sketch.Launch(sketch.Thread(), sketch.Stream(), "relu", at + 20, 5, at + 192, 6);
  }
  sketch.Frame(sketch.Thread(), "train", 0, 4000);
  return sketch;
}

std::shared_ptr<const Trace> PartFrom(const Trace& trace, size_t first, size_t last) {
  const Steps steps = FindSteps(trace);
  StepRange range{.first = first, .last = last, .before = 1, .behind = 1};
  return PartOf(trace, steps, range, PartIs::kNamed);
}

TEST(Part, HoldsWhatARecorderOfItsStepsWouldHave) {
  const auto whole = LongRecording().Build();
  const auto part = PartFrom(*whole, 10, 17);
  EXPECT_EQ(part->rows() + part->part->rows_left_out, whole->rows());
  EXPECT_EQ(part->provenance.counts.back().count, part->part->rows_left_out);
  size_t calls = 0, known = 0, kernels = 0;
  for (size_t row = 0; row < part->rows(); ++row) {
    EXPECT_GE(part->start[row], Instant::AtNs(900'000)) << "step 9 is the first that is there";
    calls += part->kind[row] == EventKind::kCall;
    kernels += part->kind[row] == EventKind::kKernel;
    if (part->kind[row] != EventKind::kKernel) {
      EXPECT_LE(part->End(row), Instant::AtNs(1'900'000)) << part->EventName(row);
      continue;
    }
    known += std::ranges::count(part->correlation, part->correlation[row]) == 2;
  }
  EXPECT_EQ(calls, 20u);
  EXPECT_EQ(known, 20u) << "what these steps launched runs to its end";
  EXPECT_EQ(kernels, 22u) << "and two ran that were launched before";
}

TEST(Part, RowsAreInOrderAndKeepTheirDetails) {
  const auto whole = LongRecording().Build();
  const auto part = PartFrom(*whole, 10, 17);
  ASSERT_EQ(part->lane_begin.size(), part->lanes.size() + 1);
  EXPECT_EQ(part->lane_begin.back(), part->rows());
  for (size_t row = 1; row < part->rows(); ++row) {
    if (part->lane[row] != part->lane[row - 1]) continue;
    EXPECT_LE(part->start[row - 1], part->start[row]);
    if (part->start[row - 1] < part->start[row]) continue;
    EXPECT_GE(part->End(row - 1), part->End(row));
  }
  EXPECT_EQ(part->EventName(part->lane_begin[0]), "train") << "cut at the begin, and the longest";
  int64_t sequence = 9;
  for (size_t row = 0; row < part->rows(); ++row) {
    if (part->kind[row] != EventKind::kOp) continue;
    EXPECT_EQ(part->ops.at(part->detail[row]).sequence, sequence++);
  }
  EXPECT_EQ(part->ops.size(), 10u) << "and no others";
}

TEST(Part, StepsAreThoseThatWereFoundInTheWhole) {
  const auto part = PartFrom(*LongRecording().Build(), 10, 17);
  const Steps steps = FindSteps(*part);
  ASSERT_EQ(steps.steps.size(), 10u);
  EXPECT_EQ(steps.measured(), 8u);
  EXPECT_EQ(steps.steps[0].use, StepUse::kBeside);
  EXPECT_EQ(steps.steps[1].label, "ProfilerStep#10");
  EXPECT_EQ(steps.steps[9].use, StepUse::kBeside);
}

TEST(Part, DependenciesGoWithTheirRows) {
  TraceSketch sketch = LongRecording();
  // Op of step 10 and op of step 12: a mark, an op and two launches of two rows each a step.
  sketch.Depend(10 * 6 + 1, 12 * 6 + 1);
  sketch.Depend(1, 12 * 6 + 1);
  const auto part = PartFrom(*sketch.Build(), 10, 17);
  ASSERT_EQ(part->dependencies.size(), 1u);
  EXPECT_EQ(part->ops[part->detail[part->dependencies[0].producer]].sequence, 10);
  EXPECT_EQ(part->ops[part->detail[part->dependencies[0].consumer]].sequence, 12);
}

}  // namespace
}  // namespace daydream
