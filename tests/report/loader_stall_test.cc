// Loader workers beside a stall of the program: what they did meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "report/loader_workers.h"
#include "report/predict/what_if.h"
#include "report/questions/findings.h"
#include "simulator/simulate.h"
#include "tests/graph/trace_sketch.h"
#include "transforms/analysis/loader.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

constexpr double kBatchUs = 30'000, kKernelUs = 10'000, kReadyUs = 100, kStallUs = 400'000;
constexpr size_t kAheadOf = 8;

enum class Meanwhile { kNothing, kStoodStill, kWentOn };

// 40 steps of a kernel of 10 ms, whose batches workers make in 30 ms each, no more than 8 ahead. A
// launch in the middle takes 400 ms, while the workers stand still or go on.
BuiltGraph WithStall(Meanwhile workers) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  std::vector<double> received;
  double now = 0, made = 0;
  for (int step = 0; step < 40; ++step) {
    const double begin = now;
    const double asked = received.size() < kAheadOf ? 0 : received[received.size() - kAheadOf];
    made = std::max(made, asked) + kBatchUs;
    received.push_back(std::max(now + kReadyUs, made));
    s.Mark(cpu, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", now,
           received.back() - now);
    now = received.back();
    const bool held_up = step == 20 && workers != Meanwhile::kNothing;
    if (held_up && workers == Meanwhile::kStoodStill) made += kStallUs;
    const double call = 10 + (held_up ? kStallUs : 0);
    s.Op(cpu, "aten::linear", now + 10, 90 + call);
    s.Launch(cpu, gpu, "gemm", now + 20, call, now + 25 + call, kKernelUs);
    now += call;
    s.Call(cpu, "cudaDeviceSynchronize", now + 110, kKernelUs - 80);
    now += kKernelUs + 60;
    s.Mark(cpu, fmt::format("ProfilerStep#{}", step), begin, now - begin);
  }
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

struct SteadyLoader {
  BuiltGraph built;
  Health health;
};

SteadyLoader SteadyOf(Meanwhile workers) {
  BuiltGraph built = WithStall(workers);
  auto replay = CheckReplay(built, nullptr);
  EXPECT_TRUE(replay.ok());
  auto health = MakeSteady(built, *replay);
  EXPECT_TRUE(health.ok());
  return {std::move(built), *std::move(health)};
}

double StepMs(const Graph& graph, std::string_view opt) {
  auto played = Play(graph, ParseScenario(opt).value());
  EXPECT_TRUE(played.ok()) << played.status();
  return StepTime(played->graph, played->timeline).ms();
}

TEST(LoaderStall, TheStepIsWhatTheWorkersMakeOfIt) {
  for (const Meanwhile workers :
       {Meanwhile::kNothing, Meanwhile::kStoodStill, Meanwhile::kWentOn}) {
    const SteadyLoader steady = SteadyOf(workers);
    const Graph& graph = steady.built.graph;
    EXPECT_EQ(steady.health.stalls.all.size(), workers == Meanwhile::kNothing ? 0 : 1);
    const std::vector<Fetch> fetches = FindFetches(graph, LoaderScopes(graph));
    EXPECT_NEAR(FindLoaderRate(graph, fetches)->batch.ms(), 30, 0.1);
    EXPECT_NEAR(StepTime(graph, Simulate(graph).value()).ms(), 30, 0.3);
    EXPECT_NEAR(StepMs(graph, "free-gpu"), 30, 0.3) << "bound by the loader";
    EXPECT_NEAR(StepMs(graph, "prefetch(workers=2,recorded=1)"), 15, 1);
    EXPECT_NEAR(StepMs(graph, "cache(fetch=50%)"), 15, 1);
  }
}

TEST(LoaderStall, TheFindingTellsTheRateBesideIt) {
  for (const Meanwhile workers : {Meanwhile::kStoodStill, Meanwhile::kWentOn}) {
    const SteadyLoader steady = SteadyOf(workers);
    const auto f = std::ranges::find(steady.health.findings, FindingKind::kLoader,
                                     [](const Finding& x) { return x.kind; });
    ASSERT_NE(f, steady.health.findings.end());
    EXPECT_THAT(f->text, testing::HasSubstr("a batch every 30.0 ms"));
  }
}

}  // namespace
}  // namespace daydream
