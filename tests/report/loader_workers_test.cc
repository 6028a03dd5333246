#include "report/loader_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "report/predict/what_if.h"
#include "report/questions/findings.h"
#include "simulator/simulate.h"
#include "tests/graph/trace_sketch.h"
#include "tests/real_traces.h"
#include "trace/importer.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

constexpr std::string_view kNext = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";

// A step is next(), a launch, a kernel and the wait for it. Loader processes hand over
// `together` batches every 30 ms for each of them; the others lie ready, which are received in
// `ready_us`, and so do the `at_first`.
struct LoaderRun {
  int steps = 12, together = 1, at_first = 0;
  double batch_us = 30'000, ready_us = 100, kernel_us = 10'000;
  std::string_view next = kNext;
};

BuiltGraph BuildRun(const LoaderRun& run) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0, came = 0;
  for (int step = 0; step < run.steps; ++step) {
    const double begin = now;
    if (step < run.at_first) {
      came = now;
    } else if (step % run.together == 0) {
      came += run.batch_us * run.together;
    }
    const double received = std::max(now + run.ready_us, came);
    s.Mark(cpu, run.next, now, received - now);
    s.Op(cpu, "aten::linear", received + 10, 100);
    s.Launch(cpu, gpu, "gemm", received + 20, 10, received + 35, run.kernel_us);
    s.Call(cpu, "cudaDeviceSynchronize", received + 120, run.kernel_us - 80);
    now = received + run.kernel_us + 60;
    s.Mark(cpu, fmt::format("ProfilerStep#{}", step), begin, now - begin);
  }
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

BuiltGraph BuildLoader(int steps, int together, double batch_us = 30'000,
                       std::string_view next = kNext) {
  return BuildRun({.steps = steps, .together = together, .batch_us = batch_us, .next = next});
}

Duration PlayedStep(const Graph& graph) {
  auto timeline = Simulate(graph);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return StepTime(graph, *timeline);
}

Duration StepWith(const Graph& graph, std::string_view opt) {
  auto scenario = ParseScenario(opt);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  auto played = Play(graph, *scenario);
  EXPECT_TRUE(played.ok()) << played.status();
  return StepTime(played->graph, played->timeline);
}

// As a steady step: loader waits became ends of the workers' work.
BuiltGraph Steady(BuiltGraph built) {
  auto replay = CheckReplay(built, nullptr);
  EXPECT_TRUE(replay.ok());
  EXPECT_TRUE(MakeSteady(built, *replay).ok());
  return built;
}

// A host of 2 ms a step that waits for its GPU (4 ms) nowhere; every fourth batch is `late_us`
// late.
BuiltGraph BuildAhead(int steps, double late_us) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0, done = 0, came = 0;
  for (int step = 0; step < steps; ++step) {
    const double begin = now;
    if (step % 4 == 3) came += late_us;
    const double received = std::max(now + 100, step % 4 == 3 ? came : 0);
    s.Mark(cpu, kNext, now, received - now);
    s.Op(cpu, "aten::linear", received + 10, 100);
    done = std::max(done, received + 35);
    const double kernel = step == 0 ? 12'000 : 4'000;
    s.Launch(cpu, gpu, "gemm", received + 20, 10, done, kernel);
    done += kernel;
    now = received + 1'900;
    s.Mark(cpu, fmt::format("ProfilerStep#{}", step), begin, now - begin);
  }
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

// A GPU that is done sooner with what came before the steps that count begins them sooner, while
// the last batch comes when it comes.
TEST(LoaderWorkers, NoFasterGpuOrHostMakesAStepLonger) {
  for (int steps : {8, 12}) {  // the last one waits
    const BuiltGraph built = Steady(BuildAhead(steps, 50'000));
    const double recorded = PlayedStep(built.graph).ms();
    double before = recorded;
    for (double by : {1.05, 1.2, 1.5, 2.0, 10.0, 1000.0}) {
      const double step = StepWith(built.graph, fmt::format("speedup(kind:kernel,by={})", by)).ms();
      EXPECT_LE(step, before * (1 + 1e-7)) << steps << " steps, kernels " << by;
      before = step;
    }
    EXPECT_LE(StepWith(built.graph, "free-gpu").ms(), before * (1 + 1e-7)) << steps;
    EXPECT_LE(StepWith(built.graph, "free-launch").ms(), recorded * (1 + 1e-7)) << steps;
  }
}

TEST(LoaderWorkers, WhatIsNotTheLoaderMakesNoStepShorterThanTheyHandOverBatches) {
  const BuiltGraph built = Steady(BuildLoader(12, 1));
  EXPECT_NEAR(PlayedStep(built.graph).ms(), 30, 0.1) << "as recorded";
  EXPECT_NEAR(StepWith(built.graph, "free-gpu").ms(), 30, 0.1);
  EXPECT_NEAR(StepWith(built.graph, "speedup(kind:kernel,by=2)").ms(), 30, 0.1);
  EXPECT_NEAR(StepWith(built.graph, "speedup(kind:kernel,by=0.5)").ms(), 30, 0.1)
      << "20 ms are hidden behind the loader, too";
  EXPECT_NEAR(StepWith(built.graph, "speedup(kind:kernel,by=0.25)").ms(), 40.2, 0.2);
  EXPECT_NEAR(StepWith(built.graph, "no-data-wait").ms(), 10.1, 0.2);
}

TEST(LoaderWorkers, ThoseWhoseBatchesComeAllAtOnceHaveTheSameRate) {
  const BuiltGraph built = Steady(BuildLoader(25, 4));
  const double step = PlayedStep(built.graph).ms();
  EXPECT_NEAR(step, 30, 4) << "the last step of a window is an estimate";
  EXPECT_NEAR(StepWith(built.graph, "free-gpu").ms(), step, 0.05 * step);
  EXPECT_NEAR(StepWith(built.graph, "no-data-wait").ms(), 10.1, 0.2);
}

TEST(LoaderWorkers, TwiceAsManyMakeTwiceAsMany) {
  const BuiltGraph built = Steady(BuildLoader(24, 1));
  EXPECT_NEAR(StepWith(built.graph, "prefetch(workers=2,recorded=1)").ms(), 15, 1);
  EXPECT_NEAR(StepWith(built.graph, "prefetch(workers=8,recorded=1)").ms(), 10.2, 0.5);
  EXPECT_NEAR(StepWith(built.graph, "cache(fetch=50%)").ms(), 15, 0.5);
}

TEST(LoaderWorkers, AFindingTellsTheirRate) {
  BuiltGraph built = BuildLoader(12, 1);
  auto replay = CheckReplay(built, nullptr);
  ASSERT_TRUE(replay.ok());
  auto health = MakeSteady(built, *replay);
  ASSERT_TRUE(health.ok());
  const auto f = std::ranges::find(health->findings, FindingKind::kLoader,
                                   [](const Finding& x) { return x.kind; });
  ASSERT_NE(f, health->findings.end());
  EXPECT_EQ(f->about, About::kProgram);
  EXPECT_THAT(f->text, testing::HasSubstr("a batch every 30.0 ms"));
}

// They keep up with 10 ms; whether they do with 5 was not recorded.
TEST(LoaderWorkers, HowMuchFasterThoseAreThatKeepUpNobodyKnows) {
  const BuiltGraph ready = Steady(BuildLoader(12, 1, 8'000));
  EXPECT_TRUE(WorkersKeepUp(ready.graph));
  EXPECT_FALSE(WorkersKeepUp(Steady(BuildLoader(12, 1)).graph)) << "each step waits";
  constexpr std::string_view kAlone = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
  EXPECT_FALSE(WorkersKeepUp(Steady(BuildLoader(12, 1, 8'000, kAlone)).graph)) << "no workers";

  const auto conditions = [&](std::string_view opt) {
    const std::vector<std::vector<Application>> scenarios = {ParseScenario(opt).value()};
    const auto predicted = PredictAll(ready, CheckReplay(ready, nullptr).value(), scenarios);
    return predicted->predictions.at(1).changes.conditions;
  };
  EXPECT_THAT(conditions("speedup(kind:kernel,by=2)"),
              testing::ElementsAre(testing::HasSubstr("keep up with 10.2 ms")));
  EXPECT_THAT(conditions("speedup(kind:kernel,by=1.05)"), testing::IsEmpty());
}

// Steps of 10 ms that make their batches themselves, in times that repeat.
BuiltGraph MakesItsBatches(int steps, std::vector<double> batch_ms) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0;
  for (int step = 0; step < steps; ++step) {
    const double begin = now, made = batch_ms[step % batch_ms.size()] * 1000;
    s.Mark(cpu, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", now, made);
    now += made;
    s.Launch(cpu, gpu, "gemm", now + 20, 10, now + 35, 9'900);
    s.Call(cpu, "cudaDeviceSynchronize", now + 40, 9'950);
    now += 10'000;
    s.Mark(cpu, fmt::format("ProfilerStep#{}", step), begin, now - begin);
  }
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

std::string NoteOf(const Graph& graph, std::string_view opt) {
  Graph changed = graph;
  auto scenario = ParseScenario(opt);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  auto applied = Apply(scenario->front(), changed);
  EXPECT_TRUE(applied.ok()) << applied.status();
  return applied.ok() && !applied->changes.notes.empty() ? applied->changes.notes.front() : "";
}

TEST(LoaderWorkers, MoreThanOneChangeNothingWhereBatchesTakeLessThanTheRestOfAStep) {
  const BuiltGraph built = MakesItsBatches(12, {8});
  EXPECT_NEAR(StepWith(built.graph, "prefetch(1)").ms(), 10.1, 0.05);
  EXPECT_EQ(StepWith(built.graph, "prefetch(8)"), StepWith(built.graph, "prefetch(1)"));
  EXPECT_THAT(NoteOf(built.graph, "prefetch(1)"),
              testing::EndsWith("step took 10.0 ms: one keeps up, more change nothing"));
}

TEST(LoaderWorkers, WhatAStepWaitsForTooFewIsInTheNote) {
  const BuiltGraph built = MakesItsBatches(12, {200});
  for (const auto& [workers, waits] : {std::pair(1, 190), {4, 40}, {10, 10}, {16, 2}}) {
    const std::string spec = fmt::format("prefetch({})", workers);
    EXPECT_NEAR(StepWith(built.graph, spec).ms(), 10 + waits, 0.6) << spec;
    EXPECT_THAT(NoteOf(built.graph, spec), testing::HasSubstr(fmt::format("waits {}", waits)))
        << spec;
  }
  EXPECT_THAT(NoteOf(built.graph, "prefetch(20)"), testing::HasSubstr("20 keep up"));
}

// Of six batches five take 2 ms and one 38: on average less than the rest of a step, yet two that
// lie ready are through before it comes.
TEST(LoaderWorkers, OneIsSlowerThanEightWhereBatchesDifferMore) {
  const BuiltGraph built = MakesItsBatches(25, {2, 2, 2, 2, 2, 38});
  const double one = StepWith(built.graph, "prefetch(1)").ms();
  EXPECT_NEAR(one, 10 + 18.0 / 6, 0.2) << "18 of the 38 ms are waited for";
  EXPECT_NEAR(StepWith(built.graph, "prefetch(8)").ms(), 10.1, 0.05);
  EXPECT_THAT(NoteOf(built.graph, "prefetch(1)"),
              testing::AllOf(testing::HasSubstr("8.0 ms to make (at most 38.0)"),
                             testing::HasSubstr("waits 3.0 ms for them on average; 2 keep up")));
  EXPECT_THAT(NoteOf(built.graph, "prefetch(8)"),
              testing::EndsWith("2 keep up, more change nothing"));
}

TEST(LoaderWorkers, AWaitOnceInAWhileIsNoRate) {
  EXPECT_FALSE(FindLoaderWorkers(BuildLoader(120, 40).graph).has_value());
}

TEST(LoaderWorkers, TwoWaitsAreNoShorterForWhatIsNotTheLoader) {
  const BuiltGraph built = Steady(BuildLoader(9, 4));
  ASSERT_TRUE(FindLoaderWorkers(BuildLoader(9, 4).graph).has_value());
  const double step = PlayedStep(built.graph).ms();
  for (const char* opt : {"speedup(kind:kernel,by=2)", "free-gpu"}) {
    EXPECT_NEAR(StepWith(built.graph, opt).ms(), step, 0.1 * step) << opt;
  }
  auto prefetch = ParseScenario("prefetch(workers=8,recorded=4)");
  Graph graph = built.graph;
  EXPECT_THAT(std::string(Apply(prefetch->front(), graph).status().message()),
              testing::HasSubstr("in two steps only"))
      << "they may have come late";
}

// The first batch that it waits for was begun when that 8 places before was received.
TEST(LoaderWorkers, ThoseThatSlowDownAreWaitedForLongerByAFasterGpu) {
  const BuiltGraph built = Steady(BuildRun({.steps = 24, .at_first = 12}));
  const double step = PlayedStep(built.graph).ms(), saved = 5;
  EXPECT_NEAR(StepWith(built.graph, "speedup(kind:kernel,by=2)").ms(), step - 4 * saved / 23, 0.3)
      << "four of twelve steps without a wait are shorter";
}

TEST(LoaderWorkers, ReceivingABatchIsNoWait) {
  const LoaderRun received = {.batch_us = 1'000, .ready_us = 1'600, .kernel_us = 100'000};
  EXPECT_FALSE(FindLoaderWorkers(BuildRun(received).graph).has_value()) << "1.6 % of the step";
  LoaderRun waited = received;
  waited.kernel_us = 20'000;
  EXPECT_TRUE(FindLoaderWorkers(BuildRun(waited).graph).has_value()) << "7 % of it";
}

// Of the note "... hand one over every X ms": X.
double PeriodInNote(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) {
    const size_t at = note.find("over every ");
    if (at != std::string::npos) return std::stod(note.substr(at + 11));
  }
  return 0;
}

// Of its 29 steps the first took batches that lay ready: the first step that was recorded lasted
// 4.8 s.
TEST(LoaderWorkers, WhatLayReadyWhenTheWindowBeganIsNoRate) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  auto trace = ImportFile((RealTraceFolder() / "training/resnet18-bs128-2080ti.json.gz").string());
  ASSERT_TRUE(trace.ok()) << trace.status();
  auto recorded = BuildGraph(*trace);
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  const auto told = FindLoaderWorkers(recorded->graph);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->lay_ready, 8) << "two for each of four workers";
  const double rate = told->batch.ms();
  EXPECT_NEAR(rate, (14023.5 - 5907.6) / 20, 0.1);
  const BuiltGraph built = Steady(*std::move(recorded));
  EXPECT_NEAR(StepWith(built.graph, "prefetch(workers=4,recorded=4)").ms(), 333.6, 0.1);
  for (int of : {2, 4, 6}) {
    for (int workers : {3, 5, 6, 8, 16}) {
      if (workers == of) continue;
      auto scenario = ParseScenario(fmt::format("prefetch(workers={},recorded={})", workers, of));
      ASSERT_TRUE(scenario.ok()) << scenario.status();
      Graph graph = built.graph;
      auto applied = Apply(scenario->front(), graph);
      ASSERT_TRUE(applied.ok()) << applied.status();
      const double step = PlayedStep(graph).ms();
      const double period = PeriodInNote(applied->changes.notes);
      EXPECT_NEAR(period, rate * of / workers, 0.051) << workers << " of " << of;
      EXPECT_GE(step, period) << workers << " of " << of;
      if (period > 200) {
        EXPECT_LE(step, 1.02 * period) << workers << " of " << of;
      }
    }
  }
}

// Its loader hands over a batch every 0.4 s, while a step without waiting takes 0.16 s.
TEST(LoaderWorkers, AFasterGpuGainsNothingOnARecordingThatWaitsForThem) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  auto trace = ImportFile((RealTraceFolder() / "training/resnet18-bs128-2080ti.json.gz").string());
  ASSERT_TRUE(trace.ok()) << trace.status();
  auto recorded = BuildGraph(*trace);
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  const BuiltGraph built = Steady(*std::move(recorded));
  const double step = PlayedStep(built.graph).ms();
  EXPECT_NEAR(step, 333.6, 0.1);
  for (const char* opt : {"pin-memory", "amp", "graphs", "checkpointing", "gpu(to=A100)"}) {
    EXPECT_NEAR(StepWith(built.graph, opt).ms(), step, 0.015 * step) << opt;
  }
}

}  // namespace
}  // namespace daydream
