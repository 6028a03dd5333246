#include "report/questions/far_longer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "graph/build.h"
#include "graph/validate.h"
#include "report/predict/what_if.h"
#include "report/questions/findings.h"
#include "simulator/simulate.h"
#include "tests/graph/trace_sketch.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

struct Hold {
  int step, op;  // 1 .. 5 count; 0 .. 9
  double ms;
};

// Six marked steps of ten operators that launch a kernel each: five of 0.5 ms with a kernel of 2
// ms, so that the GPU is behind, and five of 4 ms with a kernel of 1 ms, which it waits for. Some
// launches take longer. `more`: every other step begins with five more launches.
BuiltGraph Build(const std::vector<Hold>& holds, bool more = false) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0, done = 0;
  for (int step = 0; step < 6; ++step) {
    const double begin = now;
    for (int i = 0; more && step % 2 == 1 && i < 5; ++i, now += 100) {
      s.Launch(cpu, gpu, "small", now, 10, now + 20, 10);
    }
    for (int op = 0; op < 10; ++op) {
      double held = 0;
      for (const Hold& h : holds) held += h.step == step && h.op == op ? h.ms * 1000 : 0;
      const double host = op < 5 ? 500 : 4000, kernel = op < 5 ? 2000 : 1000;
      s.Op(cpu, "aten::linear", now, host - 50 + held);
      const double ready = std::max(now + host - 80 + held, done);
      s.Launch(cpu, gpu, "kernel", now + host - 100, 10 + held, ready, kernel);
      done = ready + kernel;
      now += host + held;
    }
    s.Mark(cpu, fmt::format("ProfilerStep#{}", step), begin, now - begin);
  }
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

std::vector<Hold> InEachStep(double ms) {
  std::vector<Hold> holds;
  for (int step = 0; step < 6; ++step) holds.push_back({step, 4, ms});
  return holds;
}

struct Asked {
  std::vector<Prediction> predictions;
  std::vector<Finding> findings;
};

Asked Ask(const std::vector<Hold>& holds) {
  BuiltGraph built = Build(holds);
  auto replay = CheckReplay(built, nullptr);
  EXPECT_TRUE(replay.ok());
  auto health = MakeSteady(built, *replay);
  EXPECT_TRUE(health.ok());
  EXPECT_TRUE(Validate(built.graph).ok()) << Validate(built.graph);
  std::vector<std::vector<Application>> scenarios;
  for (const char* spec : {"graphs", "aot"}) scenarios.push_back(*ParseScenario(spec));
  auto result = PredictAll(built, *replay, scenarios, {.intervals = false});
  EXPECT_TRUE(result.ok()) << result.status();
  return {std::move(result->predictions), std::move(health->findings)};
}

TEST(FarLonger, ACallThatEachStepMakesIsFoundWhereItTakesFarLonger) {
  const auto found = FindFarLonger(Build({{2, 3, 60}, {4, 7, 90}}).graph);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(found[0].taken().ms(), 60, 0.1);
  EXPECT_NEAR(found[1].taken().ms(), 90, 0.1);
  EXPECT_EQ(FindFarLonger(Build({{2, 3, 60}, {4, 3, 90}}).graph).size(), 2u)
      << "two of five steps are not the program's own";
}

TEST(FarLonger, WhatEachStepDoesIsNone) {
  EXPECT_TRUE(FindFarLonger(Build(InEachStep(60)).graph).empty());
  EXPECT_TRUE(FindFarLonger(Build(InEachStep(60), true).graph).empty())
      << "the fifth launch of one step is the tenth of the next";
}

TEST(FarLonger, NoOptionSavesAnyOfIt) {
  const Asked usual = Ask({});
  for (const std::vector<Hold>& holds : {std::vector<Hold>{{2, 3, 60}, {4, 7, 90}},
                                         {{2, 3, 60}, {4, 3, 60}},
                                         {{1, 1, 9}, {2, 3, 9}, {3, 5, 9}, {4, 7, 9}, {5, 9, 9}}}) {
    const Asked held = Ask(holds);
    double ms = 0;
    for (const Hold& h : holds) ms += h.ms;
    EXPECT_NEAR((held.predictions[0].step - usual.predictions[0].step).ms(), ms / 5, 0.5);
    for (size_t i = 1; i < held.predictions.size(); ++i) {
      ASSERT_TRUE(held.predictions[i].error.ok()) << held.predictions[i].error;
      EXPECT_LE(held.predictions[0].step - held.predictions[i].step,
                usual.predictions[0].step - usual.predictions[i].step + Duration::Us(250))
          << held.predictions[i].name;
    }
    EXPECT_THAT(held.findings,
                testing::Contains(testing::Field(&Finding::text,
                                                 testing::HasSubstr("no option saves any of it"))));
  }
}

}  // namespace
}  // namespace daydream
