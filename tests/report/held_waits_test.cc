// A host that is held up in a call that waits for the GPU is told of, and what is predicted is what
// is predicted without.
#include "report/questions/held_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/simulate.h"
#include "tests/report/steady_answers.h"

namespace daydream {
namespace {

enum class In : uint8_t {
  kNothing,
  kReturn,  // a copy is done, and the call comes back late
  kSubmit,  // the GPU is done with all before, and the copy begins late
  kSync,    // what is waited for is done, and the call comes back late
};

struct Program {
  In in = In::kNothing;
  double ms = 0;
  std::vector<int> steps = {4};  // where it is held up
};

// Eight marked steps: ten launches of kernels that take longer than the host, a value that is read,
// an operator, and a wait for the stream.
std::shared_ptr<const Trace> Record(const Program& p) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0, done = 0;
  uint32_t correlation = 100'000;
  const auto launch = [&](double kernel) {
    s.Op(cpu, "aten::linear", now, 480);
    const double ready = std::max(now + 465, done + 2);
    s.Launch(cpu, gpu, "kernel", now + 450, 10, ready, kernel);
    done = ready + kernel;
    now += 500;
  };
  for (int step = 0; step < 8; ++step) {
    const double begin = now;
    const bool here = std::ranges::find(p.steps, step) != p.steps.end();
    const auto held = [&](In in) { return here && p.in == in ? p.ms * 1000 : 0; };
    for (int op = 0; op < 10; ++op) launch(900);
    const double copied = std::max(now + 12, done + 2) + held(In::kSubmit);
    done = copied + 2;
    const double back = done + 9 + held(In::kReturn);
    s.Op(cpu, "aten::item", now - 5, back - now + 10);
    s.Call(cpu, "cudaMemcpyAsync", now, back - now, ++correlation);
    s.Copy(gpu, Memory::kDevice, Memory::kPageable, 4, copied, 2, correlation);
    now = back + 20;
    launch(900);
    const double returns = done + 6 + held(In::kSync);
    s.Call(cpu, "cudaStreamSynchronize", now, returns - now, ++correlation);
    s.Sync(gpu, {.kind = SyncKind::kStream, .stream = 7}, done, correlation);
    now = returns + 20;
    s.Mark(cpu, fmt::format("ProfilerStep#{}", step), begin, now - begin);
  }
  return s.Build();
}

TEST(HeldWaits, WhatHappensOnceIsTakenOut) {
  const SteadyAnswers usual = AskSteady(Record({}));
  for (const In in : {In::kReturn, In::kSubmit, In::kSync}) {
    for (const double ms : {50, 400}) {
      SCOPED_TRACE(fmt::format("{} ms in {}", ms, static_cast<int>(in)));
      const SteadyAnswers held = AskSteady(Record({.in = in, .ms = ms}));
      ExpectTheSame(held, usual);
      ASSERT_FALSE(held.findings.empty());
      EXPECT_EQ(held.findings[0].kind, FindingKind::kOneTime) << held.findings[0].text;
      // A call that submits late is told with what it waited for the GPU before.
      EXPECT_GE(held.findings[0].time.ms(), ms - 0.5) << held.findings[0].text;
      EXPECT_LE(held.findings[0].time.ms(), ms + (in == In::kSubmit ? 5 : 0.5));
      const char* call = in == In::kSync ? "cudaStreamSynchronize" : "cudaMemcpyAsync";
      EXPECT_THAT(held.findings[0].text, testing::HasSubstr(call));
      for (const Prediction& p : held.predictions) {
        EXPECT_TRUE(!p.error.ok() || p.confidence == Confidence::kLow) << p.name;
      }
    }
  }
}

// Of what happens in several steps nothing is saved, and no step is refused.
TEST(HeldWaits, WhatHappensInSomeStepsStaysAndIsNotSaved) {
  const SteadyAnswers usual = AskSteady(Record({}));
  for (const In in : {In::kReturn, In::kSubmit, In::kSync}) {
    SCOPED_TRACE(static_cast<int>(in));
    const SteadyAnswers held = AskSteady(Record({.in = in, .ms = 70, .steps = {3, 5}}));
    const double longer = 2 * 70.0 / 7;
    ASSERT_EQ(held.predictions.size(), usual.predictions.size());
    for (const Prediction& p : usual.predictions) {
      const auto it = std::ranges::find(held.predictions, p.name, &Prediction::name);
      ASSERT_NE(it, held.predictions.end());
      ASSERT_EQ(it->error.ok(), p.error.ok()) << p.name << ": " << it->error;
      if (!p.error.ok() || p.bound) continue;  // a bound may be lower
      EXPECT_NEAR(it->step.ms(), p.step.ms() + longer, 0.01 * (p.step.ms() + longer)) << p.name;
    }
  }
}

TEST(HeldWaits, WhatEveryCallTakesIsNone) {
  auto built = BuildGraph(Record({.in = In::kReturn, .ms = 50, .steps = {0, 1, 2, 3, 4, 5, 6, 7}}));
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_FALSE(SplitHeldWaits(built->graph).graph.has_value());
}

TEST(HeldWaits, TheGraphPlaysAsBefore) {
  for (const In in : {In::kReturn, In::kSubmit, In::kSync}) {
    SCOPED_TRACE(static_cast<int>(in));
    auto built = BuildGraph(Record({.in = in, .ms = 50}));
    ASSERT_TRUE(built.ok()) << built.status();
    const Graph& before = built->graph;
    const HeldWaits held = SplitHeldWaits(before);
    ASSERT_EQ(held.calls.size(), 1u);
    const auto recorded = Simulate(before), again = Simulate(*held.graph);
    ASSERT_TRUE(recorded.ok());
    ASSERT_TRUE(again.ok());
    for (size_t i = 0; i < before.size(); ++i) {
      if (!IsGpu(before.tasks()[i].kind)) continue;
      EXPECT_EQ(recorded->start[i], again->start[i]) << before.TaskName(TaskId(i));
    }
  }
}

}  // namespace
}  // namespace daydream
