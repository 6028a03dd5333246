// Rows of sweeps are those of fresh predictions, however much they have in common with rows before
// (report/predict/known_shapes, CauseGames, WhatIfOptions::row).
#include "report/predict/known_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "graph/text.h"
#include "report/parallel.h"
#include "report/predict/begun_rows.h"
#include "report/predict/predict.h"
#include "report/questions/sweep.h"
#include "simulator/simulate.h"
#include "tests/example_graph.h"
#include "tests/scenario.h"
#include "transforms/scenario/apply.h"

namespace daydream {
namespace {

// What begins alike, ends alike, and comes out with one shape or several; limits, parts that find
// nothing to do, and errors.
std::vector<std::vector<Application>> Scenarios() {
  std::vector<std::string> specs = {
      "free-host,speedup(kernel:.,2)", "no-data-wait,amp", "remove(nothing-is-called-so)",
      "remove(nothing-is-called-so),amp", "straggler(3,gpu=0.5),fuse"};
  for (const char* by : {"1.05", "2", "1000"}) {
    for (const char* form :
         {"speedup(kernel:.,{})", "fuse,speedup(kernel:.,{})", "speedup(kernel:.,{}),amp",
          "amp,fuse,speedup(kind:host,{})", "amp,speedup(kernel:gemm,{}),speedup(kernel:relu,{})",
          "batch(x{})", "batch(x{}),amp", "gpu(h100),speedup(kernel:.,{})",
          "graphs,speedup(kind:host,{})", "batch(x2),speedup(kernel:.,{})",
          "gpu(h100),speedup(kernel:nothing-is-called-so,{})",
          "fuse,compile,speedup(kernel:.,{})"}) {
      std::string spec = form;
      for (size_t at = 0; (at = spec.find("{}")) != std::string::npos;) spec.replace(at, 2, by);
      specs.push_back(spec);
    }
  }
  for (const char* rate : {"1GB/s", "25GB/s"}) {
    specs.push_back(fmt::format("pin-memory(rate={})", rate));
    specs.push_back(fmt::format("speedup(kernel:.,2),pin-memory(rate={})", rate));
    specs.push_back(fmt::format("amp,pin-memory(rate={}),fuse", rate));
  }
  std::vector<std::vector<Application>> scenarios;
  for (const std::string& spec : specs) {
    if (ParseScenario(spec).ok()) scenarios.push_back(ScenarioInTurn(spec));
  }
  return scenarios;
}

struct Recorded {
  explicit Recorded(const std::string& example)
      : built(Example(example)), replay(CheckReplay(built, nullptr).value()) {}
  SweepRunner Runner() const {
    return SweepRunner::Make(built, replay, {.intervals = false}).value();
  }
  BuiltGraph built;
  ReplayCheck replay;
};

// What whatif says of all there is to tell.
Prediction Fresh(const Recorded& r, const std::vector<Application>& scenario) {
  const WhatIfOptions options{.alone = false, .intervals = false};
  return PredictAll(r.built, r.replay, std::span(&scenario, 1), options).value().predictions.back();
}

TEST(KnownShapes, RowsAreWhatWhatIfSaysOfEachAlone) {
  const std::vector<std::vector<Application>> scenarios = Scenarios();
  for (const char* example : {"resnet50", "launch-bound"}) {
    const Recorded r(example);
    const SweepRunner runner = r.Runner();
    size_t failed = 0, low = 0, left_out = 0, bound = 0;
    for (size_t i = 0; i < scenarios.size(); ++i) {
      const SweepRow row = runner.Run(i, scenarios[i]);
      const Prediction p = Fresh(r, scenarios[i]);
      SCOPED_TRACE(fmt::format("{} {}", example, p.name));
      EXPECT_EQ(row.code, p.error.ok() ? "" : DiagnosticOf(p.error).code);
      failed += !p.error.ok();
      if (!p.error.ok()) continue;
      EXPECT_EQ(row.step, p.step);
      EXPECT_EQ(row.steps, p.steps);
      EXPECT_EQ(row.confidence, p.confidence) << p.why;
      EXPECT_EQ(row.bound, p.bound);
      EXPECT_EQ(row.memory, p.memory_change);
      EXPECT_EQ(row.left_out.empty(), p.left_out.empty());
      low += row.confidence == Confidence::kLow;
      left_out += !p.left_out.empty();
      bound += p.bound;
    }
    EXPECT_GT(failed, 0) << example;
    EXPECT_GT(left_out, 0) << example;
    EXPECT_GT(bound, 0) << example;
    EXPECT_GT(low, bound) << example;
    EXPECT_LT(low, scenarios.size() - failed) << example;
  }
}

TEST(KnownShapes, RowsHangOnNeitherOrderNorThreads) {
  const std::vector<std::vector<Application>> scenarios = Scenarios();
  const Recorded r("resnet50");
  const auto rows = [&](unsigned threads, bool backwards) {
    const SweepRunner runner = r.Runner();
    std::vector<SweepRow> all(scenarios.size());
    ForEachParallel(scenarios.size(), threads, [&](size_t i) {
      const size_t at = backwards ? scenarios.size() - 1 - i : i;
      all[at] = runner.Run(at, scenarios[at]);
    });
    return all;
  };
  const std::vector<SweepRow> one = rows(1, false);
  EXPECT_EQ(rows(1, true), one);
  EXPECT_EQ(rows(3, false), one);
}

Graph Edited(const Graph& recorded, const std::string& spec) {
  Graph graph = recorded;
  EXPECT_TRUE(ApplyAll(ScenarioInTurn(spec), graph).ok()) << spec;
  return graph;
}

TEST(KnownShapes, GraphsWithOtherTimesHaveOnePlan) {
  const BuiltGraph built = Example("resnet50");
  GraphCopies copies(built.graph);
  KnownShapes shapes(copies);
  EXPECT_FALSE(shapes.Play(Edited(built.graph, "fuse,speedup(kernel:.,1.5)")).has_value());
  const auto first = shapes.Play(Edited(built.graph, "fuse,speedup(kernel:.,2)"));
  ASSERT_TRUE(first.has_value());
  for (const char* by : {"1.5", "3", "9"}) {
    const Graph graph = Edited(built.graph, fmt::format("fuse,speedup(kernel:.,{})", by));
    const auto played = shapes.Play(graph);
    ASSERT_TRUE(played.has_value());
    EXPECT_EQ(played->shape, first->shape);
    const Timeline timeline = Simulate(graph).value();
    EXPECT_EQ(played->step, StepTime(graph, timeline));
    EXPECT_EQ(played->periods, StepPeriods(graph, timeline));
  }
}

// One edge with another lag is another shape, of as many tasks and edges.
TEST(KnownShapes, AnotherShapeOfTheSameSizeIsPlayedByItself) {
  const BuiltGraph built = Example("resnet50");
  GraphCopies copies(built.graph);
  KnownShapes shapes(copies);
  Graph one = built.graph, other = built.graph;
  other.mutable_edges().front().lag += Duration::Us(50);
  shapes.Play(one);
  const auto known = shapes.Play(one);
  ASSERT_TRUE(known.has_value());
  int count = 0;
  for (int times = 0; times < 5; ++times) {
    const auto played = shapes.Play(other);
    if (!played.has_value()) continue;
    ++count;
    EXPECT_NE(played->shape, known->shape);
    EXPECT_EQ(played->step, StepTime(other, Simulate(other).value()));
  }
  EXPECT_GT(count, 0);
}

// Two rows that begin alike show that it pays; the third one goes on from there.
TEST(BegunRows, AreKeptOnceTheyWereAskedForTwice) {
  const BuiltGraph built = Example("launch-bound");
  GraphCopies copies(built.graph);
  BegunRows begun(built.graph.size());
  const std::vector<Application> one = ScenarioInTurn("amp"), other = ScenarioInTurn("fuse");
  for (int times = 0; times < 2; ++times) {
    EXPECT_FALSE(begun.IsWanted(one, EditNotes::kKept));
    EXPECT_EQ(begun.Find(one, EditNotes::kKept), nullptr);
  }
  EXPECT_TRUE(begun.IsWanted(one, EditNotes::kKept));
  EXPECT_FALSE(begun.IsWanted(one, EditNotes::kOneAStep));
  EXPECT_FALSE(begun.IsWanted(other, EditNotes::kKept));
  begun.Keep(one, EditNotes::kKept, {.graph = copies.Make(), .trail = MemoryTrail({})});
  EXPECT_FALSE(begun.IsWanted(one, EditNotes::kKept));
  EXPECT_NE(begun.Find(one, EditNotes::kKept), nullptr);
  EXPECT_EQ(begun.Find(one, EditNotes::kOneAStep), nullptr);
  EXPECT_EQ(begun.Find(other, EditNotes::kKept), nullptr);
}

using Sums = std::map<std::string, int64_t>;  // by optimization

Sums SumsOf(const std::vector<CauseShare>& shares) {
  Sums sums;
  for (const CauseShare& s : shares) sums[s.opt] += s.delta.ns;
  return sums;
}

TEST(CauseGames, TellOfEachQuestionWhatItsOwnGameDoes) {
  for (const char* example : {"resnet50", "launch-bound"}) {
    const BuiltGraph built = Example(example);
    const Duration before = StepTime(built.graph, Simulate(built.graph).value());
    for (const char* form : {"fuse,speedup(kernel:.,{})", "amp,fuse,speedup(kind:host,{})",
                             "amp,pin-memory(rate={}GB/s)"}) {
      CauseGames games;
      for (const char* value : {"1.05", "1.5", "2", "40"}) {
        std::string spec = form;
        spec.replace(spec.find("{}"), 2, value);
        SCOPED_TRACE(fmt::format("{} {}", example, spec));
        Graph after = built.graph;
        std::vector<CauseJournal> journals;
        const auto keep = [&](const Application& a, Applied* done) {
          if (done == nullptr) return absl::OkStatus();
          journals.push_back({.opt = std::string(a.transform->name),
                              .causes = done->causes,
                              .edits = done->edits,
                              .edge_edits = done->edge_edits});
          return absl::OkStatus();
        };
        ASSERT_TRUE(ApplyAll(ScenarioInTurn(spec), after, keep).ok());
        CauseQuestion question{.before = &built.graph,
                               .after = &after,
                               .step_before = before,
                               .step_after = StepTime(after, Simulate(after).value()),
                               .journals = journals};
        const Sums alone = SumsOf(ShareByCause(question));
        EXPECT_EQ(SumsOf(games.Share(question)), alone);
        question.by_opt = true;
        EXPECT_EQ(SumsOf(ShareByCause(question)), alone);
        EXPECT_EQ(SumsOf(games.Share(question)), alone);
      }
    }
  }
}

}  // namespace
}  // namespace daydream
