#include "report/stalls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "graph/validate.h"
#include "report/questions/findings.h"
#include "simulator/simulate.h"
#include "tests/graph/trace_sketch.h"

namespace daydream {
namespace {

// `steps` marked steps of 20 ms: ten launches of 1 ms each, 2 ms apart. In `at`, the operator
// around the fifth launch takes `stall_ms` more; from `at` on when `always`.
struct Program {
  int steps = 1;
  int at = 0;
  double stall_ms = 0;
  bool always = false;
  std::string op = "aten::linear";
  bool marks = true;
  double pause_ms = 0;  // outside of operators in `at`, from `at` on when `always`
};

BuiltGraph Build(const Program& p) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0;
  for (int step = 0; step < p.steps; ++step) {
    const double begin = now;
    for (int i = 0; i < 10; ++i) {
      const bool stalls = i == 5 && (p.always ? step >= p.at : step == p.at) && p.stall_ms > 0;
      const double extra = stalls ? p.stall_ms * 1000 : 0;
      s.Op(cpu, i == 5 ? p.op : "aten::linear", now, 1900 + extra);
      s.Launch(cpu, gpu, "kernel", now + 1800 + extra, 10, now + 1820 + extra, 1000);
      const bool pauses = i == 7 && (p.always ? step >= p.at : step == p.at);
      now += 2000 + extra + (pauses ? p.pause_ms * 1000 : 0);
    }
    if (p.marks) s.Mark(cpu, fmt::format("ProfilerStep#{}", step), begin, now - begin);
  }
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

Duration StepOf(const Graph& graph) {
  auto timeline = Simulate(graph);
  EXPECT_TRUE(timeline.ok());
  return StepTime(graph, *timeline);
}

TEST(Stalls, ALongPieceOfTheOnlyStepIsOne) {
  const BuiltGraph built = Build({.stall_ms = 300, .op = "delta_r2", .marks = false});
  const Stalls stalls = FindStalls(built.graph);
  ASSERT_EQ(stalls.all.size(), 1u);
  EXPECT_EQ(stalls.all[0].what, "delta_r2");
  EXPECT_EQ(stalls.all[0].kind, StallKind::kOp);
  EXPECT_NEAR(stalls.taken.ms(), 300, 1);
  EXPECT_FALSE(stalls.no_step);
}

TEST(Stalls, TheStepWithoutItIsTheStepThatNeverHadIt) {
  BuiltGraph with = Build({.stall_ms = 300, .op = "delta_r2", .marks = false});
  const BuiltGraph without = Build({.op = "delta_r2", .marks = false});
  const Stalls stalls = FindStalls(with.graph);
  TakeOut(stalls.all, with.graph);
  EXPECT_NEAR(StepOf(with.graph).ms(), StepOf(without.graph).ms(), 0.5);
}

TEST(Stalls, TheMarkOfAStepIsNotNamedAsOne) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 400'000;
  for (int i = 0; i < 10; ++i, now += 2000) {
    s.Op(cpu, "aten::linear", now, 1900);
    s.Launch(cpu, gpu, "kernel", now + 1800, 10, now + 1820, 1000);
  }
  s.Mark(cpu, "ProfilerStep#3", 0, now);
  auto built = BuildGraph(s.Build());
  ASSERT_TRUE(built.ok()) << built.status();
  const Stalls stalls = FindStalls(built->graph);
  ASSERT_EQ(stalls.all.size(), 1);
  EXPECT_EQ(stalls.all[0].what, "the time outside of operators");
}

TEST(Stalls, NothingOfASteadyProgramIsOne) {
  for (const Program& p : {Program{.marks = false}, Program{.steps = 6}}) {
    EXPECT_TRUE(FindStalls(Build(p).graph).all.empty());
  }
}

TEST(Stalls, AFetchOfABatchIsNone) {
  EXPECT_TRUE(FindStalls(Build({.stall_ms = 300,
                                .op = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                                .marks = false})
                             .graph)
                  .all.empty());
}

TEST(Stalls, OfSeveralStepsWhatHappensInOneIsOne) {
  const Stalls stalls = FindStalls(Build({.steps = 6, .at = 3, .stall_ms = 300}).graph);
  ASSERT_EQ(stalls.all.size(), 1u);
  EXPECT_NEAR(stalls.taken.ms(), 300, 1);
}

TEST(Stalls, OfSeveralStepsWhatHappensInMoreStays) {
  EXPECT_TRUE(
      FindStalls(Build({.steps = 6, .at = 2, .stall_ms = 300, .always = true}).graph).all.empty());
}

TEST(Stalls, TwoStepsAreEnoughToCompare) {
  const Stalls stalls = FindStalls(Build({.steps = 3, .at = 2, .stall_ms = 300}).graph);
  ASSERT_EQ(stalls.all.size(), 1u);
  EXPECT_NEAR(stalls.taken.ms(), 300, 1);
}

// Collections of garbage, say: they are part of what a stopwatch shows, and nobody's gain.
TEST(Stalls, WhatHappensInSomeStepsStaysAndIsNotSaved) {
  const Stalls stalls =
      FindStalls(Build({.steps = 8, .at = 6, .stall_ms = 300, .always = true}).graph);
  EXPECT_TRUE(stalls.all.empty());
  ASSERT_EQ(stalls.waits.size(), 2u);
  EXPECT_NEAR(stalls.waits[0].taken().ms(), 300, 1);
}

TEST(Stalls, APauseInOneOfSeveralStepsIsOne) {
  const Stalls stalls = FindStalls(Build({.steps = 6, .at = 3, .pause_ms = 300}).graph);
  ASSERT_EQ(stalls.all.size(), 1u);
  EXPECT_EQ(stalls.all[0].kind, StallKind::kOutside);
  EXPECT_NEAR(stalls.taken.ms(), 300, 1);
  const Stalls more =
      FindStalls(Build({.steps = 6, .at = 4, .always = true, .pause_ms = 300}).graph);
  EXPECT_TRUE(more.all.empty()) << "in two of five steps it is the program's own";
}

// Five marked steps of 20 ms that their GPU is bound by, which is up to 11 ms behind the host.
// Everything that begins from 66 ms on, between two operators, was recorded `later_ms` later.
BuiltGraph BuildWithATimeThatJumps(double later_ms) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  const auto at = [&](double us) { return us < 66'000 ? us : us + later_ms * 1000; };
  double now = 0, done = 0;
  for (int step = 0; step < 5; ++step) {
    const double begin = now;
    for (int i = 0; i < 10; ++i) {
      const double ready = std::max(now + 40, done);
      s.Op(cpu, "aten::linear", at(now), 100);
      s.Launch(cpu, gpu, "kernel", at(now + 10), 10, at(ready), 1900);
      done = ready + 2000;
      now += 800;
    }
    now = begin + 20'000;
    s.Mark(cpu, fmt::format("ProfilerStep#{}", step), at(begin), at(now) - at(begin));
  }
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

// As in two recordings that became one, or on a machine that was suspended: the GPU's backlog is
// there as before, so that no rule knows why it stands still.
TEST(Stalls, WhatStoodStillMeanwhileIsTakenOutToo) {
  BuiltGraph jumps = BuildWithATimeThatJumps(3000);
  auto replay = CheckReplay(jumps, nullptr);
  ASSERT_TRUE(replay.ok());
  EXPECT_NEAR(replay->measured.ms(), 770, 1);
  auto health = MakeSteady(jumps, *replay);
  ASSERT_TRUE(health.ok());
  EXPECT_NEAR(health->steady.ms(), StepOf(BuildWithATimeThatJumps(0).graph).ms(), 0.5);
  for (const Finding& f : health->findings) {
    EXPECT_NE(f.kind, FindingKind::kUnexplained) << "none of it is left: " << f.text;
  }
}

// `times` kernels in each of five steps; memory of 1 ms is taken before each and given back.
BuiltGraph BuildChurn(int times, double call_us) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0;
  for (int step = 0; step < 5; ++step) {
    const double begin = now;
    for (int i = 0; i < times; ++i) {
      s.Call(cpu, "cudaMalloc", now, call_us);
      s.Launch(cpu, gpu, "kernel", now + call_us + 10, 10, now + call_us + 30, 500);
      s.Call(cpu, "cudaFree", now + call_us + 600, call_us);
      now += 2 * call_us + 1000;
    }
    s.Mark(cpu, fmt::format("ProfilerStep#{}", step), begin, now - begin);
  }
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

TEST(Stalls, MemoryThatGoesBackAndForthInEveryStepIsOneInEach) {
  BuiltGraph churns = BuildChurn(12, 1000);
  const Stalls stalls = FindStalls(churns.graph);
  ASSERT_FALSE(stalls.all.empty());
  for (const Stall& s : stalls.all) EXPECT_EQ(s.kind, StallKind::kChurn) << s.what;
  EXPECT_FALSE(stalls.no_step);
  auto replay = CheckReplay(churns, nullptr);
  ASSERT_TRUE(replay.ok());
  auto health = MakeSteady(churns, *replay);
  ASSERT_TRUE(health.ok());
  EXPECT_NEAR(replay->measured.ms(), 36, 0.5);
  EXPECT_NEAR(health->steady.ms(), 12, 0.5) << "as without the calls";
  EXPECT_EQ(replay->steady, health->steady);
  EXPECT_THAT(replay->doubt, testing::HasSubstr("12 cudaFree and 12 cudaMalloc"));
  // The first step that counts holds the last cudaFree of the one that does not, which stays.
  EXPECT_THAT(replay->doubt, testing::HasSubstr("36.0 ms recorded a step; 12.2 ms without"));
}

// Ten rounds of three operators of 5 us and a kernel, with an exchange between ranks at the end or
// without; two rounds take 40 ms an operator more.
BuiltGraph BuildHeldUp(bool ranks) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0;
  for (int round = 0; round < 10; ++round) {
    for (const char* name : {"aten::view", "aten::empty", "aten::expand"}) {
      const double time = round == 3 || round == 7 ? 40'005 : 5;
      s.Op(cpu, name, now, time);
      now += time + 10;
    }
    s.Launch(cpu, gpu, "kernel", now, 10, now + 20, 50);
    now += 1000;
  }
  if (ranks) s.Collective(gpu, "ncclDevKernel_AllReduce_Sum_f16_RING_LL", now, 500, 0, "");
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

TEST(Stalls, OperatorsThatWereHeldUpAreTakenOut) {
  BuiltGraph held = BuildHeldUp(false);
  const Stalls stalls = FindStalls(held.graph);
  EXPECT_EQ(stalls.all.size(), 6u);
  EXPECT_TRUE(stalls.waits.empty());
  const Duration before = StepOf(held.graph);
  TakeOut(stalls.all, held.graph);
  EXPECT_NEAR((before - StepOf(held.graph)).ms(), 240, 0.5);
}

TEST(Stalls, OfARankOfSeveralTheyStayAndNothingMakesThemShorter) {
  BuiltGraph held = BuildHeldUp(true);
  const Stalls stalls = FindStalls(held.graph);
  EXPECT_TRUE(stalls.all.empty());
  ASSERT_EQ(stalls.waits.size(), 6u);
  const Duration before = StepOf(held.graph);
  KeepAsWaits(stalls.waits, held.graph);
  EXPECT_TRUE(Validate(held.graph).ok()) << Validate(held.graph);
  EXPECT_EQ(StepOf(held.graph), before);
  for (const Stall& s : stalls.waits) held.graph.mutable_task(s.task).duration = {};
  EXPECT_EQ(StepOf(held.graph), before);
}

// Ten rounds that launch 50 ms of GPU work each and take the host as long; in the fifth an operator
// is held up for 40 ms, which the GPU waits for.
BuiltGraph BuildBusyAndHeldUp() {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0;
  for (int round = 0; round < 10; ++round) {
    const double time = round == 5 ? 40'005 : 5;
    s.Op(cpu, "aten::view", now, time);
    now += time + 10;
    s.Launch(cpu, gpu, "kernel", now, 10, now + 20, 50'000);
    now += 50'020;
  }
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

TEST(Stalls, OneThatIsHeldUpForALittleStays) {
  const BuiltGraph held = BuildBusyAndHeldUp();
  const Stalls stalls = FindStalls(held.graph);
  EXPECT_TRUE(stalls.all.empty()) << "40 of 540 ms";
  ASSERT_EQ(stalls.waits.size(), 1u);
  EXPECT_NEAR(stalls.waits[0].taken().ms(), 40, 0.1);
}

// As graphs and aot do, which launch the whole step before the GPU is through with a tenth of it.
TEST(Stalls, LaunchingAheadOfTheGpuDoesNotHideOne) {
  for (const bool gpu_stood_still : {false, true}) {
    BuiltGraph held = BuildBusyAndHeldUp();
    const auto timeline = Simulate(held.graph);
    ASSERT_TRUE(timeline.ok());
    const Duration before = StepOf(held.graph);
    KeepAsWaits(FindStalls(held.graph).waits, held.graph, gpu_stood_still ? &*timeline : nullptr);
    EXPECT_TRUE(Validate(held.graph).ok()) << Validate(held.graph);
    EXPECT_EQ(StepOf(held.graph), before);
    size_t kept = 0;
    for (size_t i = 0; i < held.graph.size(); ++i) kept += IsHeldUp(held.graph, TaskId(i));
    EXPECT_EQ(kept, 1u);
    for (size_t i = 0; i < held.graph.size(); ++i) {
      Task& t = held.graph.mutable_task(TaskId(i));
      if (held.graph.lane(t.lane).lane.kind == LaneKind::kThread) t.duration = t.gap = {};
    }
    EXPECT_NEAR(StepOf(held.graph).ms(), gpu_stood_still ? 540 : 500, 1);
  }
}

TEST(Stalls, AFewCallsForMemoryAreNone) {
  EXPECT_TRUE(FindStalls(BuildChurn(8, 1000).graph).all.empty()) << "few";
  EXPECT_TRUE(FindStalls(BuildChurn(12, 50).graph).all.empty()) << "short";
}

// Five steps of 20 kernels. One has 40 calls of 5 ms that give memory back and 20 that take some,
// the others have `elsewhere` such calls each.
BuiltGraph BuildOneCleanUp(int elsewhere) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0;
  for (int step = 0; step < 5; ++step) {
    const double begin = now;
    const auto call = [&](const char* name, double us) {
      s.Call(cpu, name, now, us);
      now += us + 2;
    };
    for (int i = 0; i < 20; ++i) {
      const bool cleans = step == 3 && i == 10;
      for (int k = 0; k < (cleans ? 40 : i == 10 ? elsewhere : 0); ++k) call("cudaFree", 5000);
      for (int k = 0; k < (cleans ? 20 : i == 10 ? elsewhere : 0); ++k) call("cudaMalloc", 1500);
      s.Launch(cpu, gpu, "kernel", now, 10, now + 20, 500);
      now += 1000;
    }
    s.Mark(cpu, fmt::format("ProfilerStep#{}", step), begin, now - begin);
  }
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

// Each takes what such calls always take, and no more than a quarter of a step.
TEST(Stalls, AnAllocatorThatCleansUpInOneStepIsOne) {
  BuiltGraph cleans = BuildOneCleanUp(0);
  const Stalls stalls = FindStalls(cleans.graph);
  EXPECT_EQ(stalls.all.size(), 60u);
  for (const Stall& s : stalls.all) EXPECT_EQ(s.kind, StallKind::kMemory) << s.what;
  auto replay = CheckReplay(cleans, nullptr);
  ASSERT_TRUE(replay.ok());
  auto health = MakeSteady(cleans, *replay);
  ASSERT_TRUE(health.ok());
  EXPECT_GT(replay->measured.ms(), 75);
  EXPECT_NEAR(health->steady.ms(), 20, 0.5);
  EXPECT_THAT(health->findings.front().text,
              testing::HasSubstr("without what happens once: cudaFree in ProfilerStep#3 (200.0 ms, "
                                 "40 times), cudaMalloc in ProfilerStep#3 (30.0 ms, 20 times)"));
}

TEST(Stalls, MemoryThatOtherStepsTakeTooIsNone) {
  EXPECT_TRUE(FindStalls(BuildOneCleanUp(1).graph).all.empty());
}

TEST(Stalls, WorkThatTheGpuHidesIsNone) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Op(cpu, "aten::linear", 0, 100);
  s.Launch(cpu, gpu, "long", 10, 5, 20, 300'000);
  s.Op(cpu, "slow", 200, 200'000);
  s.Launch(cpu, gpu, "next", 200'300, 5, 300'100, 100);
  auto built = BuildGraph(s.Build());
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_TRUE(FindStalls(built->graph).all.empty());
}

TEST(Stalls, WhereCudaStartsTheOnlyStepIsNone) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Op(cpu, "aten::empty_strided", 0, 3'000'000);
  s.Call(cpu, "cudaDeviceGetStreamPriorityRange", 10, 2'900'000);
  s.Op(cpu, "aten::linear", 3'000'100, 1'000);
  s.Launch(cpu, gpu, "kernel", 3'000'200, 10, 3'000'220, 500);
  s.Mark(cpu, "ProfilerStep#0", 0, 3'002'000);
  auto built = BuildGraph(s.Build());
  ASSERT_TRUE(built.ok()) << built.status();
  const Stalls stalls = FindStalls(built->graph);
  ASSERT_FALSE(stalls.all.empty());
  EXPECT_EQ(stalls.all[0].kind, StallKind::kStart);
  EXPECT_TRUE(stalls.no_step);

  auto replay = CheckReplay(*built, nullptr);
  ASSERT_TRUE(replay.ok());
  EXPECT_TRUE(replay->repeated.has_value());
  auto health = MakeSteady(*built, *replay);
  ASSERT_TRUE(health.ok());
  EXPECT_EQ(DiagnosticOf(replay->no_step).code, "E0607");
  // What is said of steps is said of nothing.
  EXPECT_FALSE(replay->repeated.has_value());
  for (const Finding& f : health->findings) EXPECT_NE(f.kind, FindingKind::kLongCall) << f.text;
  auto scenario = ParseScenario("free-gpu");
  const std::vector<std::vector<Application>> scenarios = {*scenario};
  auto result = PredictAll(*built, *replay, scenarios);
  ASSERT_TRUE(result.ok()) << result.status();
  for (const Prediction& p : result->predictions) {
    EXPECT_EQ(DiagnosticOf(p.error).code, "E0607") << p.name;
  }
}

// Most of a window lies between the operators of the program: whether each step has that, and what
// is one, nothing says without marks.
TEST(Stalls, WithoutMarksAndMostlyOutsideOfOperatorsNothingIsAStep) {
  for (const bool marked : {false, true}) {
    TraceSketch s;
    const LaneId cpu = s.Thread(), gpu = s.Stream();
    double now = 0;
    for (int i = 0; i < 10; ++i, now += i == 5 ? 100'000 : 2000) {
      s.Op(cpu, "aten::linear", now, 1900);
      s.Launch(cpu, gpu, "kernel", now + 1800, 10, now + 1820, 1000);
    }
    if (marked) s.Mark(cpu, "ProfilerStep#3", 0, now);
    auto built = BuildGraph(s.Build());
    ASSERT_TRUE(built.ok()) << built.status();
    const Stalls stalls = FindStalls(built->graph);
    ASSERT_FALSE(stalls.all.empty());
    EXPECT_EQ(stalls.all[0].kind, StallKind::kOutside);
    EXPECT_EQ(stalls.no_step, !marked);
  }
}

// Whatever else happens in it, a step that is marked is one.
TEST(Stalls, APauseLeavesTheStepThatIsMarked) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0;
  for (int i = 0; i < 6; ++i, now += i == 3 ? 701'000 : 1000) {
    s.Op(cpu, "aten::linear", now, 900);
    s.Launch(cpu, gpu, "kernel", now + 800, 10, now + 820, 500);
  }
  s.Mark(cpu, "ProfilerStep#3", 0, now);
  auto built = BuildGraph(s.Build());
  ASSERT_TRUE(built.ok()) << built.status();
  const Stalls stalls = FindStalls(built->graph);
  EXPECT_FALSE(stalls.no_step);
  EXPECT_NEAR((stalls.time - stalls.taken).ms(), 6, 0.2);
}

TEST(Stalls, AnotherThreadThatBeginsAfterItBeginsAsMuchEarlier) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream(), other = s.Thread(101);
  s.Op(cpu, "slow", 0, 300'000);
  s.Op(cpu, "aten::linear", 300'000, 1'000);
  s.Launch(cpu, gpu, "kernel", 300'200, 10, 300'220, 500);
  s.Op(other, "aten::add", 302'000, 1'000);
  s.Launch(other, gpu, "kernel", 302'200, 10, 302'220, 500);
  auto built = BuildGraph(s.Build());
  ASSERT_TRUE(built.ok()) << built.status();
  const Stalls stalls = FindStalls(built->graph);
  ASSERT_EQ(stalls.all.size(), 1u);
  TakeOut(stalls.all, built->graph);
  EXPECT_LT(StepOf(built->graph).ms(), 10);
}

// As where a file holds one process twice.
TEST(Stalls, WhatTwoThreadsDoAtOnceCountsOnce) {
  TraceSketch s;
  const LaneId gpu = s.Stream();
  for (const int64_t tid : {TraceSketch::kProcess, int64_t{200}}) {
    const LaneId cpu = s.Thread(tid);
    const double late = tid == 200 ? 100 : 0;
    s.Op(cpu, "delta_r2", late, 300'000);
    for (int i = 0; i < 20; ++i) {
      const double now = 300'000 + late + i * 1000;
      s.Op(cpu, "aten::linear", now, 900);
      s.Launch(cpu, gpu, "kernel", now + 300, 10, now + 320, 40);
    }
  }
  auto built = BuildGraph(s.Build());
  ASSERT_TRUE(built.ok()) << built.status();
  const Stalls stalls = FindStalls(built->graph);
  EXPECT_EQ(stalls.all.size(), 2u);
  EXPECT_NEAR(stalls.taken.ms(), 300.1, 1);
  EXPECT_LT(stalls.taken, stalls.time);
}

}  // namespace
}  // namespace daydream
