// Waits for loader workers that are too few to tell how often steps wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "report/predict/what_if.h"
#include "report/questions/findings.h"
#include "tests/graph/trace_sketch.h"
#include "transforms/analysis/loader.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// Steps of 10 ms. Those of `late` wait 26 ms more for their batch. The first does not count.
BuiltGraph Build(int steps, const std::vector<int>& late) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0;
  for (int step = 0; step < steps; ++step) {
    const double begin = now;
    const double received = now + (std::ranges::count(late, step) > 0 ? 26'000 : 100);
    s.Mark(cpu, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", now,
           received - now);
    s.Op(cpu, "aten::linear", received + 10, 100);
    s.Launch(cpu, gpu, "gemm", received + 20, 10, received + 35, 9'800);
    s.Call(cpu, "cudaDeviceSynchronize", received + 120, 9'720);
    now = received + 9'900;
    s.Mark(cpu, fmt::format("ProfilerStep#{}", step), begin, now - begin);
  }
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

std::vector<Fetch> FetchesOf(const Graph& graph) { return FindFetches(graph, LoaderScopes(graph)); }

std::string Refusal(const Graph& recorded) {
  Graph graph = recorded;
  auto prefetch = ParseScenario("prefetch(workers=8,recorded=4)");
  return std::string(Apply(prefetch->front(), graph).status().message());
}

struct Judged {
  BuiltGraph built;
  ReplayCheck replay;
  std::vector<Finding> findings;

  std::optional<Finding> Of(FindingKind kind) const {
    const auto f =
        std::ranges::find(findings, kind, [](const Finding& finding) { return finding.kind; });
    return f == findings.end() ? std::nullopt : std::optional(*f);
  }
};

Judged Judge(BuiltGraph built) {
  ReplayCheck replay = CheckReplay(built, nullptr).value();
  std::vector<Finding> findings = MakeSteady(built, replay).value().findings;
  return {std::move(built), std::move(replay), std::move(findings)};
}

TEST(LoaderFewWaits, OneWaitIsNoRateAndAdviceSaysWhatOptionsDo) {
  const Judged one = Judge(Build(8, {4}));
  const std::vector<Fetch> fetches = FetchesOf(one.built.graph);
  EXPECT_FALSE(FindLoaderRate(one.built.graph, fetches).has_value());
  const auto few = FindFewWaits(one.built.graph, fetches);
  ASSERT_TRUE(few.has_value());
  EXPECT_EQ(few->count, 1);
  EXPECT_NEAR(few->time.ms(), 26, 0.01);
  EXPECT_THAT(Refusal(one.built.graph),
              testing::AllOf(testing::HasSubstr("in one step only"),
                             testing::Not(testing::HasSubstr("hardly ever"))));
  const auto loader = one.Of(FindingKind::kLoader);
  ASSERT_TRUE(loader.has_value());
  EXPECT_EQ(loader->about, About::kPredictions);
  EXPECT_THAT(loader->text, testing::HasSubstr("in one wait"));
  EXPECT_THAT(loader->fix, testing::StartsWith("record more steps"));
  EXPECT_FALSE(one.Of(FindingKind::kLongCall).has_value()) << "told once";
}

// It is not counted, and was recorded all the same.
TEST(LoaderFewWaits, TheStepBeforeThoseThatCountIsTheOtherWait) {
  const Judged two = Judge(Build(8, {0, 4}));
  const std::vector<Fetch> fetches = FetchesOf(two.built.graph);
  const auto rate = FindLoaderRate(two.built.graph, fetches);
  ASSERT_TRUE(rate.has_value());
  EXPECT_FALSE(rate->is_sure);
  EXPECT_EQ(rate->lay_ready, 0);
  EXPECT_NEAR(rate->batch.ms(), (4 * 9.9 + 3 * 0.1 + 26) / 4, 0.01);
  EXPECT_THAT(Refusal(two.built.graph), testing::HasSubstr("in two steps only"));
  ASSERT_TRUE(two.Of(FindingKind::kLoader).has_value());
  EXPECT_THAT(two.Of(FindingKind::kLoader)->text, testing::HasSubstr("two waits"));
}

// The step may be bound by its loader, whatever becomes of the GPU.
TEST(LoaderFewWaits, AFasterGpuMayGainNothing) {
  const auto predicted = [](BuiltGraph built) {
    const Judged judged = Judge(std::move(built));
    const std::vector<std::vector<Application>> scenarios = {
        ParseScenario("speedup(kind:kernel,by=2)").value()};
    return PredictAll(judged.built, judged.replay, scenarios)->predictions.at(1);
  };
  for (const std::vector<int>& late : {std::vector{4}, {0, 4}}) {
    const Prediction p = predicted(Build(8, late));
    EXPECT_GT(p.speedup, 1.1);
    EXPECT_LE(*p.least_speedup, 1);
    EXPECT_EQ(p.confidence, Confidence::kLow);
    EXPECT_THAT(p.why, testing::HasSubstr("loader workers"));
  }
  EXPECT_GT(*predicted(Build(8, {})).least_speedup, 1.1) << "no wait";
}

TEST(LoaderFewWaits, ABatchBetweenManyThatLayReadyCameLate) {
  const BuiltGraph late = Build(20, {10}), early = Build(20, {3});
  EXPECT_FALSE(FindFewWaits(late.graph, FetchesOf(late.graph)).has_value());
  EXPECT_TRUE(FindFewWaits(early.graph, FetchesOf(early.graph)).has_value());
}

TEST(LoaderFewWaits, AWaitOfTheStepBeforeIsAFindingWhereFewCount) {
  const auto found = Judge(Build(4, {0})).Of(FindingKind::kLoader);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->about, About::kProgram);
  EXPECT_THAT(found->text, testing::HasSubstr("waited 26.0 ms"));
  EXPECT_FALSE(Judge(Build(12, {0})).Of(FindingKind::kLoader).has_value()) << "none of eleven did";
}

}  // namespace
}  // namespace daydream
