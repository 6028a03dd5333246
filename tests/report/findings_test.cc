#include "report/questions/findings.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/questions/launch_findings.h"
#include "report/summary.h"
#include "report/unequal_steps.h"
#include "simulator/simulate.h"
#include "tests/graph/trace_sketch.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

struct Judged {
  BuiltGraph built;
  ReplayCheck replay;
  Health health;
};

Judged Judge(TraceSketch& s) {
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  auto replay = CheckReplay(*built, nullptr);
  EXPECT_TRUE(replay.ok());
  auto health = MakeSteady(*built, *replay);
  EXPECT_TRUE(health.ok());
  return {*std::move(built), *std::move(replay), *std::move(health)};
}

// Marked steps of 3 ms: `op` (1 ms, and `extra_us` more in the n-th step), and two operators that
// launch a kernel each at their end.
void AddSteps(TraceSketch& s, std::string_view op, const std::vector<double>& extra_us) {
  LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0;
  for (size_t i = 0; i < extra_us.size(); ++i) {
    const double begin = now;
    s.Op(cpu, op, now, 1000 + extra_us[i]);
    now += 1000 + extra_us[i];
    for (int k = 0; k < 2; ++k) {
      s.Op(cpu, "aten::linear", now, 1000);
      s.Launch(cpu, gpu, "kernel", now + 900, 10, now + 920, 500);
      now += 1000;
    }
    s.Mark(cpu, fmt::format("ProfilerStep#{}", i), begin, now - begin);
  }
}

auto IsOf(FindingKind kind) { return Field("kind", &Finding::kind, kind); }

TEST(Findings, ASteadyRecordingHasNone) {
  TraceSketch s;
  AddSteps(s, "aten::relu", {0, 0, 0, 0, 0});
  const Judged j = Judge(s);
  EXPECT_TRUE(j.health.findings.empty()) << j.health.findings[0].text;
  EXPECT_EQ(j.replay.doubt, "");
}

// Eight steps of four kernels; one kernel of the fifth step takes as long as is asked.
std::vector<Finding> WithALongKernel(double us) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0;
  for (int step = 0; step < 8; ++step) {
    const double begin = now;
    for (int k = 0; k < 4; ++k) {
      const double takes = step == 4 && k == 3 ? us : 500;
      s.Op(cpu, "aten::linear", now, takes + 500);
      s.Launch(cpu, gpu, "kernel", now + 100, 10, now + 120, takes);
      now += takes + 500;
    }
    s.Mark(cpu, fmt::format("ProfilerStep#{}", step), begin, now - begin);
  }
  return Judge(s).health.findings;
}

TEST(Findings, AKernelAHundredTimesAsLongAsThoseOfItsNameIsTold) {
  const auto told = Contains(
      AllOf(IsOf(FindingKind::kPause), Field("text", &Finding::text, HasSubstr("of its name"))));
  EXPECT_THAT(WithALongKernel(60'000), told);
  EXPECT_THAT(WithALongKernel(40'000), testing::Not(told)) << "eighty times";
}

// A kernel without others of its name, with 20 of its stream of which those from the second on
// begin 1 ms apart. It takes as long as is asked.
TEST(Findings, AKernelDuringWhichOthersOfItsStreamBeginIsTold) {
  const auto found = [](double us) {
    TraceSketch s;
    LaneId cpu = s.Thread(), gpu = s.Stream();
    for (int step = 0; step < 4; ++step) {
      const double now = 20'000 * step;
      for (int i = 0; i < 20; ++i) {
        const bool own = step == 2 && i == 1;
        s.Op(cpu, "aten::linear", now + 1000 * i, 900);
        s.Launch(cpu, gpu, own ? "lone" : "kernel", now + 1000 * i + 100, 10, now + 1000 * i + 120,
                 own ? us : 500);
      }
      s.Mark(cpu, fmt::format("ProfilerStep#{}", step), now, 20'000);
    }
    return Judge(s).health.findings;
  };
  const auto told = Contains(AllOf(
      IsOf(FindingKind::kPause), Field("text", &Finding::text, HasSubstr("begin before it ends"))));
  EXPECT_THAT(found(15'000), told);
  EXPECT_THAT(found(900), testing::Not(told));
}

TEST(Findings, OneTimeWorkIsNamedWithBothStepsAndMakesAllConfidenceLow) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Op(cpu, "delta_r2", 0, 300'000);
  for (int i = 0; i < 20; ++i) {
    s.Op(cpu, "aten::linear", 300'000 + i * 1000, 900);
    s.Launch(cpu, gpu, "kernel", 300'800 + i * 1000, 10, 300'820 + i * 1000, 500);
  }
  Judged j = Judge(s);
  ASSERT_FALSE(j.health.findings.empty());
  const Finding& f = j.health.findings[0];
  EXPECT_EQ(f.kind, FindingKind::kOneTime);
  EXPECT_EQ(f.about, About::kStep);
  EXPECT_THAT(f.text, HasSubstr("delta_r2"));
  EXPECT_THAT(f.text, HasSubstr("320"));  // recorded
  EXPECT_THAT(f.text, HasSubstr("20."));  // without
  EXPECT_NE(j.replay.doubt, "");
  auto scenario = ParseScenario("graphs(min_nodes=2)");
  ASSERT_TRUE(scenario.ok());
  const std::vector<std::vector<Application>> scenarios = {*scenario};
  auto result = PredictAll(j.built, j.replay, scenarios);
  ASSERT_TRUE(result.ok()) << result.status();
  for (const Prediction& p : result->predictions) {
    ASSERT_TRUE(p.error.ok()) << p.error;
    EXPECT_EQ(p.confidence, Confidence::kLow);
    EXPECT_EQ(p.why, j.replay.doubt);
    EXPECT_LT(p.step.ms(), 30) << "the stall is in no step";
  }
}

// One window without marks: what was launched at 500 us runs 7.8 ms later, behind work that was
// launched before the recording.
TEST(Findings, AGpuThatWasBusyBeforeTheWindowPutsTheStepInDoubt) {
  auto sketch = [](double first) {
    TraceSketch s;
    LaneId cpu = s.Thread(), gpu = s.Stream();
    s.Op(cpu, "aten::linear", 0, 2400);
    for (int i = 0; i < 20; ++i)
      s.Launch(cpu, gpu, "kernel", 500 + i * 50, 10, first + i * 500, 500);
    return s;
  };
  TraceSketch late = sketch(8310), at_once = sketch(515);
  const Judged busy = Judge(late), idle = Judge(at_once);
  EXPECT_THAT(idle.health.findings, Not(Contains(IsOf(FindingKind::kCutStep))));
  ASSERT_THAT(busy.health.findings, Contains(IsOf(FindingKind::kCutStep)));
  const auto f = std::ranges::find(busy.health.findings, FindingKind::kCutStep, &Finding::kind);
  EXPECT_EQ(f->about, About::kStep);
  EXPECT_EQ(f->time, Duration::Us(7800));
  EXPECT_THAT(f->text, HasSubstr("7.80 ms after its launch"));
  EXPECT_NE(busy.replay.doubt, "");
}

// 30 of 50 kernels of the window were launched before it. Where as many launches of the window have
// no kernel in it, its end cuts as its begin does.
TEST(Findings, WorkThatWasLaunchedBeforeTheWindowIsNoPartOfIt) {
  auto sketch = [](int launches_without) {
    TraceSketch s;
    LaneId cpu = s.Thread(), gpu = s.Stream();
    s.Op(cpu, "aten::linear", 0, 2400);
    for (int i = 0; i < 30; ++i) s.Kernel(gpu, "earlier", 10 + i * 500, 500);
    for (int i = 0; i < 20; ++i) {
      s.Launch(cpu, gpu, "kernel", 500 + i * 50, 10, 15'010 + i * 500, 500);
    }
    for (int i = 0; i < launches_without; ++i) {
      s.Call(cpu, "cudaLaunchKernel", 1510 + i * 20, 10, 1000 + static_cast<uint32_t>(i));
    }
    return s;
  };
  TraceSketch whole = sketch(0), cut = sketch(30);
  const Judged j = Judge(whole), both = Judge(cut);
  EXPECT_THAT(both.health.findings, Not(Contains(IsOf(FindingKind::kCutStep))));
  const auto f = std::ranges::find(j.health.findings, FindingKind::kCutStep, &Finding::kind);
  ASSERT_NE(f, j.health.findings.end());
  EXPECT_THAT(f->text, HasSubstr("the first 30 GPU operations, up to 15.0 ms into it, were"));
  EXPECT_EQ(f->about, About::kStep);
  EXPECT_NEAR(j.health.steady.ms(), 10, 0.1);
}

// As the pieces of a backlog, which say when the queue got free, not what ran (rule Q5).
TEST(Findings, WhatWasNotRecordedIsNoOperationWithoutALaunch) {
  TraceSketch s;
  AddSteps(s, "aten::relu", {0, 0, 0});
  auto built = BuildGraph(s.Build());
  ASSERT_TRUE(built.ok()) << built.status();
  Graph& graph = built->graph;
  const auto findings = [&] {
    return FindingsOfLaunches(graph, {false, true, true}, 2, Duration::Ms(3));
  };
  const auto first =
      std::ranges::find(graph.tasks(), TaskKind::kKernel, [](const Task& t) { return t.kind; });
  ASSERT_NE(first, graph.tasks().end());
  const TaskId kernel(static_cast<uint32_t>(first - graph.tasks().begin()));
  Task piece{.duration = Duration::Ms(5), .lane = first->lane, .kind = TaskKind::kKernel};
  graph.InsertBefore(kernel, piece);
  EXPECT_THAT(findings(), Not(Contains(IsOf(FindingKind::kNoLaunches))));
  piece.event = 0;
  graph.InsertBefore(kernel, piece);
  const std::vector<Finding> found = findings();
  ASSERT_THAT(found, Contains(IsOf(FindingKind::kNoLaunches)));
  EXPECT_THAT(found[0].text, HasSubstr("1 of 7 GPU operations")) << "six have a launch";
}

TEST(Findings, UnequalStepsNameTheWorkThatMakesThemSo) {
  TraceSketch s;
  AddSteps(s, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
           {0, 0, 4000, 0, 0, 0, 4000, 0, 0});
  const Judged j = Judge(s);
  EXPECT_THAT(j.health.findings, Contains(IsOf(FindingKind::kUnequalSteps)));
  for (const Finding& f : j.health.findings) {  // the longest is some times as long as the median
    EXPECT_LE(f.share, 1) << f.text;
    if (f.kind != FindingKind::kUnequalSteps) continue;
    EXPECT_THAT(f.text, HasSubstr("recorded steps take"));
    EXPECT_GT(f.share, 0.5);
    EXPECT_LT(f.share, 1);
  }
  EXPECT_TRUE(j.health.stalls.all.empty());
  const auto cause = WhatMakesStepsUnequal(j.built.graph);
  ASSERT_TRUE(cause.has_value());
  EXPECT_THAT(cause->name, HasSubstr("DataLoader"));
  EXPECT_GT(cause->share, 0.9);
  // Windows begin 0.42 ms into next(), with the end of the GPU work before: that much of the next
  // one is in each, but the last.
  EXPECT_NEAR((cause->most - cause->least).ms(), 4.42, 0.01);
}

// Every second step launches its work behind 10 ms of GPU work and waits 40 ms: the wait begins in
// the window of the step before and is not all in it.
TEST(Findings, WorkThatReachesIntoTheNextStepCountsInBoth) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0, free = 0;
  for (int step = 0; step < 9; ++step) {
    const double begin = now, wait = step % 2 == 0 ? 100 : 40'000;
    for (int i = 0; i < 5; ++i) {
      free = std::max(free, now + 20);
      s.Launch(cpu, gpu, "kernel", now, 10, free, 2000);
      free += 2000, now += 20;
    }
    s.Op(cpu, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", now, wait);
    now += wait;
    s.Mark(cpu, fmt::format("ProfilerStep#{}", step), begin, now - begin);
  }
  const Judged j = Judge(s);
  const auto cause = WhatMakesStepsUnequal(j.built.graph);
  ASSERT_TRUE(cause.has_value());
  EXPECT_THAT(cause->name, HasSubstr("DataLoader"));
  const std::vector<Duration>& steps = j.replay.measured_steps;
  EXPECT_LE(cause->most, *std::max_element(steps.begin(), steps.end()));
}

TEST(Findings, AClockThatChangesIsOfNoKernel) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0, free = 0;
  for (int step = 0; step < 9; ++step) {
    const double begin = now, slower = step < 5 ? 1 : 1.4;
    for (const char* kernel : {"gemm", "relu", "norm", "conv"}) {
      s.Op(cpu, "aten::op", now, 95);
      free = std::max(free, now + 20);
      s.Launch(cpu, gpu, kernel, now + 5, 10, free, 1000 * slower);
      free += 1000 * slower;
      now += 100;
    }
    s.Mark(cpu, fmt::format("ProfilerStep#{}", step), begin, now - begin);
  }
  const auto cause = WhatMakesStepsUnequal(Judge(s).built.graph);
  ASSERT_TRUE(cause.has_value());
  EXPECT_EQ(cause->name, "GPU work as a whole");
  EXPECT_NEAR(cause->share, 1, 0.01);
  EXPECT_NEAR((cause->most - cause->least).ms(), 1.6, 0.01);
}

TEST(Findings, AnOperatorOfMoreThanHalfOfEveryStepIsOne) {
  TraceSketch s;
  AddSteps(s, "aten::nonzero", {9000, 9000, 9000, 9000, 9000});
  const Judged j = Judge(s);
  ASSERT_THAT(j.health.findings, Contains(IsOf(FindingKind::kLongCall)));
  EXPECT_THAT(j.health.findings[0].where, HasSubstr("aten::nonzero"));
}

// next() of a loader in Python makes a tensor first, and then waits in no operator.
TEST(Findings, AWaitForABatchOfMoreThanHalfOfTheStepIsOne) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  constexpr std::string_view kNext =
      "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
  s.Mark(cpu, "ProfilerStep#1", 0, 8000);
  s.Mark(cpu, kNext, 10, 6000);
  s.Op(cpu, "aten::empty", 10, 1);
  s.Op(cpu, "aten::linear", 6100, 1800);
  s.Launch(cpu, gpu, "kernel", 6200, 10, 6220, 1500);
  const Judged j = Judge(s);
  ASSERT_THAT(j.health.findings, Contains(IsOf(FindingKind::kLongCall)));
  const Finding& found = j.health.findings[0];
  EXPECT_THAT(found.text, HasSubstr("one call of enumerate(DataLoader)"));
  EXPECT_EQ(found.time, Duration::Us(5999));
  EXPECT_THAT(found.fix, HasSubstr("one does not tell whether every batch takes as long"));
}

TEST(Findings, AThreadThatWaitsForWorkIsNone) {
  TraceSketch s;
  AddSteps(s, "aten::relu", {0, 0, 0, 0, 0});
  const LaneId metrics = s.Thread(2);
  for (int step = 0; step < 5; ++step) s.Mark(metrics, "metrics", 3000 * step + 100, 300);
  EXPECT_TRUE(Judge(s).health.findings.empty());
}

TEST(Findings, WhatIsLongerInSomeStepsIsToldOnce) {
  TraceSketch s;
  AddSteps(s, "aten::relu", {0, 0, 0, 90'000, 0, 0, 90'000, 0});
  const std::vector<Finding> found = Judge(s).health.findings;
  EXPECT_THAT(found, Contains(IsOf(FindingKind::kSomeSteps)));
  EXPECT_THAT(found, Not(Contains(IsOf(FindingKind::kLongCall))));
}

TEST(Findings, CopiesWithoutGpuRecordsDoSo) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 10; ++i) {
    s.Call(cpu, "cudaMemcpyAsync", i * 100, 5, 50 + i);
    if (i % 2 == 0) continue;
    s.Copy(gpu, Memory::kPinned, Memory::kDevice, 1 << 20, i * 100 + 8, 50, 50 + i);
  }
  ASSERT_THAT(Judge(s).health.findings, Contains(IsOf(FindingKind::kPartialGpu)));
}

// Ten kernels, of which the first `without` take no time.
Judged WithTimelessKernels(int without) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 10; ++i)
    s.Launch(cpu, gpu, "kernel", i * 100, 5, i * 100 + 8, i < without ? 0 : 50);
  return Judge(s);
}

TEST(Findings, GpuWorkThatTakesNoTimeMakesAllConfidenceLow) {
  const Judged j = WithTimelessKernels(3);
  ASSERT_THAT(j.health.findings, Contains(IsOf(FindingKind::kNoTime)));
  EXPECT_THAT(j.replay.doubt, HasSubstr("3 of 10 GPU operations take 0 ns"));
  EXPECT_TRUE(j.replay.no_step.ok());
}

TEST(Findings, NothingIsPredictedWhereHalfOfItTakesNoTime) {
  EXPECT_THAT(DiagnosticOf(WithTimelessKernels(5).replay.no_step).why, HasSubstr("5 of its 10"));
}

TEST(Findings, LaunchesWithoutGpuRecordsPutTheStepInDoubt) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 10; ++i) {
    if (i < 5) {
      s.Launch(cpu, gpu, "kernel", i * 100, 5, i * 100 + 8, 50);
    } else {
      s.Call(cpu, "cudaLaunchKernel", i * 100, 5, 50 + i);
    }
  }
  const Judged j = Judge(s);
  ASSERT_THAT(j.health.findings, Contains(IsOf(FindingKind::kPartialGpu)));
  EXPECT_NE(j.replay.doubt, "");
}

TEST(Findings, GraphsWithoutRecordsAreAGuessThatMakesAllConfidenceLow) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 5; ++i) {
    const double begin = i * 3000;
    s.Launch(cpu, gpu, "a", begin, 5, begin + 8, 500);
    s.Call(cpu, "cudaGraphLaunch", begin + 10, 5, 70 + i);
    s.Launch(cpu, gpu, "b", begin + 20, 5, begin + 2508, 492);  // 2 ms of which nothing is known
    s.Mark(cpu, fmt::format("ProfilerStep#{}", i), begin, 3000);
  }
  const Judged j = Judge(s);
  ASSERT_THAT(j.health.findings, Contains(IsOf(FindingKind::kUnrecorded)));
  EXPECT_THAT(j.health.findings,
              Contains(Field("text", &Finding::text, HasSubstr("67 % of the step"))));
  EXPECT_THAT(j.replay.doubt, HasSubstr("not recorded"));
  const Summary summary =
      Summarize(j.built.graph, *Simulate(j.built.graph, {.blockers = true}), GroupBy::kClass);
  EXPECT_THAT(summary.groups, Contains(Field("name", &Group::name, kGuessed)));
  EXPECT_NEAR(summary.guessed.us() / summary.gpu_time.us(), 0.67, 0.01);
  for (const GroupBy by : {GroupBy::kOp, GroupBy::kLayer, GroupBy::kPhase, GroupBy::kStream}) {
    const Summary other =
        Summarize(j.built.graph, *Simulate(j.built.graph, {.blockers = true}), by);
    EXPECT_THAT(other.groups, Contains(Field("name", &Group::name, HasSubstr(kGuessed))))
        << Name(by);
  }
}

TEST(Findings, MemoryThatIsTakenAndGivenBackInAStepIsOne) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 30; ++i) {
    s.Call(cpu, "cudaMalloc", i * 1000, 100);
    s.Launch(cpu, gpu, "kernel", i * 1000 + 200, 5, i * 1000 + 208, 700);
    s.Call(cpu, "cudaFree", i * 1000 + 300, 20);
  }
  const Judged j = Judge(s);
  ASSERT_THAT(j.health.findings, Contains(IsOf(FindingKind::kAllocator)));
  EXPECT_THAT(j.health.findings, Contains(Field("text", &Finding::text, HasSubstr("30 cudaFree"))));
  EXPECT_EQ(j.replay.doubt, "") << "the step is what it is";
}

TEST(Findings, AnAllocatorThatIsOffIsNotToldToTakeMoreRoom) {
  for (const bool every_tensor : {false, true}) {
    TraceSketch s;
    const LaneId cpu = s.Thread(), gpu = s.Stream();
    for (int i = 0; i < 30; ++i) {
      const double begin = i * 1000;
      s.Op(cpu, "aten::empty", begin, 150);
      s.Call(cpu, "cudaMalloc", begin, 100);
      for (int k = 0; k < (every_tensor ? 0 : 2); ++k)
        s.Op(cpu, "aten::empty", begin + 160 + k * 10, 5);
      s.Launch(cpu, gpu, "kernel", begin + 200, 5, begin + 208, 700);
      s.Call(cpu, "cudaFree", begin + 300, 20);
    }
    const Judged j = Judge(s);
    const std::string fix = every_tensor ? "MEMORY_CACHING" : "expandable_segments";
    EXPECT_THAT(j.health.findings, Contains(AllOf(IsOf(FindingKind::kAllocator),
                                                  Field("fix", &Finding::fix, HasSubstr(fix)))));
  }
}

TEST(Findings, TheWorstComeFirst) {
  std::vector<Finding> all = {
      {.kind = FindingKind::kAllocator, .about = About::kProgram, .share = 0.9},
      {.kind = FindingKind::kReplay, .about = About::kPredictions, .share = 0.1},
      {.kind = FindingKind::kUnexplained, .about = About::kPredictions, .share = 0.4},
      {.kind = FindingKind::kOneTime, .about = About::kStep, .share = 0.05}};
  SortFindings(all);
  EXPECT_EQ(all[0].kind, FindingKind::kOneTime);
  EXPECT_EQ(all[1].kind, FindingKind::kUnexplained);
  EXPECT_EQ(all[2].kind, FindingKind::kReplay);
  EXPECT_EQ(all[3].kind, FindingKind::kAllocator);
}

TEST(Findings, EveryKindHasAnotherName) {
  std::set<std::string_view> names;
  for (int k = 0; k <= static_cast<int>(FindingKind::kOther); ++k) {
    EXPECT_TRUE(names.insert(Name(static_cast<FindingKind>(k))).second) << k;
  }
}

}  // namespace
}  // namespace daydream
