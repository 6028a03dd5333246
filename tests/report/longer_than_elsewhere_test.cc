#include "report/questions/longer_than_elsewhere.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "graph/build.h"
#include "graph/validate.h"
#include "report/predict/what_if.h"
#include "report/questions/findings.h"
#include "report/windows.h"
#include "simulator/simulate.h"
#include "tests/graph/trace_sketch.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

constexpr std::string_view kWorkers =
    "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
constexpr std::string_view kNoWorkers =
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";

// Six marked steps: a batch, then ten operators that launch a kernel each, 1.9 ms of the host and 1
// ms of the GPU. Every step does something outside of operators for 3 ms; step 3 pauses as well.
struct Program {
  double pause_ms = 0;
  std::set<int> pauses_in = {3};
  double late_ms = 0;  // its batch
  std::string_view loader = kWorkers;
  bool moves = false;  // the 3 ms are behind another operator in every other step
};

BuiltGraph Build(const Program& p) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0;
  for (int step = 0; step < 6; ++step) {
    const double begin = now;
    const double fetch = 100 + (step == 3 ? p.late_ms * 1000 : 0);
    s.Op(cpu, std::string(p.loader), now, fetch);
    now += fetch + 20;
    for (int i = 0; i < 10; ++i) {
      s.Op(cpu, "aten::linear", now, 1900);
      s.Launch(cpu, gpu, "kernel", now + 1800, 10, now + 1820, 1000);
      now += 2000;
      if (i == (p.moves && step % 2 == 1 ? 5 : 2)) now += 3000;
      if (i == 7 && p.pauses_in.contains(step)) now += p.pause_ms * 1000;
    }
    s.Mark(cpu, fmt::format("ProfilerStep#{}", step), begin, now - begin);
  }
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

std::vector<Prediction> Ask(const Program& p, std::vector<const char*> specs) {
  BuiltGraph built = Build(p);
  auto replay = CheckReplay(built, nullptr);
  EXPECT_TRUE(replay.ok());
  auto health = MakeSteady(built, *replay);
  EXPECT_TRUE(health.ok());
  EXPECT_TRUE(Validate(built.graph).ok()) << Validate(built.graph);
  EXPECT_TRUE(health->stalls.all.empty()) << "it is not far longer than the others' 3 ms";
  std::vector<std::vector<Application>> scenarios;
  for (const char* spec : specs) scenarios.push_back(*ParseScenario(spec));
  auto result = PredictAll(built, *replay, scenarios, {.intervals = false});
  EXPECT_TRUE(result.ok()) << result.status();
  return std::move(result->predictions);
}

TEST(LongerThanElsewhere, WhatOtherStepsDoNotHaveIsFound) {
  const auto found = FindLongerThanElsewhere(Build({.pause_ms = 9}).graph);
  ASSERT_EQ(found.size(), 2u) << "9 ms beside 3 of others, and 3 beside none";
  for (const Stall& s : found) EXPECT_EQ(s.kind, StallKind::kOutside);
  EXPECT_NEAR((found[0].taken() + found[1].taken()).ms(), 8, 0.2) << "1 ms is the host's noise";
}

TEST(LongerThanElsewhere, WhatEachStepDoesSomewhereIsNot) {
  EXPECT_TRUE(FindLongerThanElsewhere(Build({}).graph).empty());
  EXPECT_TRUE(FindLongerThanElsewhere(Build({.moves = true}).graph).empty());
}

TEST(LongerThanElsewhere, ABatchThatComesLateIsOneOfWorkersOnly) {
  const auto found = FindLongerThanElsewhere(Build({.late_ms = 9}).graph);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, StallKind::kBatch);
  EXPECT_TRUE(FindLongerThanElsewhere(Build({.late_ms = 9, .loader = kNoWorkers}).graph).empty())
      << "which is work of this process";
}

// The first batch of workers that a pause of 300 ms started again, beside steps of 23.1 ms.
TEST(LongerThanElsewhere, TheRestOfWhatHappensOnceIsInNoStep) {
  const auto told_of = [](double late_ms, size_t counted, double steady_ms) {
    BuiltGraph built = Build({.pause_ms = 300, .late_ms = late_ms});
    auto replay = CheckReplay(built, nullptr);
    EXPECT_TRUE(replay.ok());
    const auto health = MakeSteady(built, *replay);
    EXPECT_TRUE(health.ok());
    EXPECT_EQ(CountedSteps(built.graph).size(), counted) << late_ms;
    EXPECT_NEAR(health->steady.ms(), steady_ms, 0.1) << late_ms;
    EXPECT_EQ(replay->steady, health->steady);
    return health->findings.front().text;
  };
  EXPECT_THAT(told_of(60, 4, 23.1), testing::HasSubstr("ProfilerStep#3 does not count"));
  EXPECT_THAT(told_of(2, 5, 23.1 + 2.0 / 5), testing::Not(testing::HasSubstr("not count")));
}

TEST(LongerThanElsewhere, NoWorkThatTheHostIsSparedTakesItAway) {
  for (const char* spec : {"graphs", "aot"}) {
    const auto usual = Ask({}, {spec});
    for (const Program& p : {Program{.pause_ms = 9}, Program{.late_ms = 9}}) {
      const auto with = Ask(p, {spec});
      ASSERT_TRUE(with[1].error.ok()) << with[1].error;
      EXPECT_NEAR((with[0].step - usual[0].step).ms(), 9.0 / 5, 0.1);
      EXPECT_LE(with[0].step - with[1].step, usual[0].step - usual[1].step + Duration::Us(250))
          << spec;
    }
  }
}

std::vector<Finding> FindingsOf(const Program& p) {
  BuiltGraph built = Build(p);
  auto replay = CheckReplay(built, nullptr);
  EXPECT_TRUE(replay.ok());
  auto health = MakeSteady(built, *replay);
  EXPECT_TRUE(health.ok());
  return health->findings;
}

TEST(LongerThanElsewhere, PausesOfSomeStepsPutTheStepInDoubt) {
  const auto some = [](const Finding& f) { return f.kind == FindingKind::kSomeSteps; };
  const auto of_two = FindingsOf({.pause_ms = 60, .pauses_in = {2, 4}});
  const auto found = std::ranges::find_if(of_two, some);
  ASSERT_NE(found, of_two.end());
  EXPECT_EQ(found->about, About::kStep);
  EXPECT_THAT(found->text,
              testing::StartsWith("2 pauses in some steps take 114.0 ms longer than the same work "
                                  "in others (the time outside of operators: 60.1 ms)"));
  EXPECT_TRUE(std::ranges::none_of(FindingsOf({.pause_ms = 2, .pauses_in = {2, 4}}), some))
      << "steps are alike";
}

TEST(LongerThanElsewhere, BatchesThatAreAlwaysReadyTakeItAway) {
  const auto usual = Ask({}, {"no-data-wait"});
  const auto late = Ask({.late_ms = 9}, {"no-data-wait"});
  EXPECT_EQ(late[1].step, usual[1].step);
}

}  // namespace
}  // namespace daydream
