// What is known about errors, and the kinds of predictions that it is known of.
#include "report/predict/residuals.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "report/predict/error_kind.h"
#include "report/predict/kernel_time.h"
#include "report/predict/what_if.h"
#include "tests/costmodel/costdata.h"
#include "tests/example_graph.h"
#include "trace/importer.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

TEST(Residuals, NoRowJudgesItsKin) {
  const std::vector<std::string> kOwn = {"ResNet-50"};
  const ModelError with = ModelErrorOf("prefetch");
  const ModelError without = ModelErrorOf("prefetch", kOwn);
  EXPECT_EQ(with.rows, without.rows + 2);
  EXPECT_LT(with.sigma, without.sigma);  // what was checked is known better
  EXPECT_EQ(without.rows, 0u);
  // What changes less than runs differ by says nothing about the model.
  EXPECT_EQ(ModelErrorOf("graphs").rows, 0u);
}

// Gains of programs that stand for others are no rows of their kind, which would be too wide for
// everybody who has the right trace.
TEST(Residuals, WhatStandsInForAnotherProgramIsAKindOfItsOwn) {
  const ModelError other = ModelErrorOf(kAnotherProgram), amp = ModelErrorOf("amp, no shapes");
  EXPECT_GT(other.rows, 5u);
  EXPECT_GT(other.sigma, amp.sigma);
  EXPECT_GT(amp.rows, 10u) << "of published gains of the recorded network";
  const std::vector<std::string> kin = {"ViT", "BERT-large"};
  EXPECT_EQ(ModelErrorOf(kAnotherProgram, kin).rows + 5, other.rows);
}

TEST(Residuals, TheMeanErrorOfAKindIsThatOfItsGroups) {
  const ModelError unknown = ModelErrorOf("no such thing");
  EXPECT_NEAR(unknown.mean, kMeanOfNormal * kPriorModelError, 1e-12);
  EXPECT_LT(ModelErrorOf("batch").mean, ModelErrorOf("compile").mean);
  EXPECT_LT(ModelErrorOf("gpu").mean, ModelErrorOf("gpu, slot-powered").mean);
}

TEST(Residuals, HeldRowsAreJudgedWithoutTheirOwnGroup) {
  // With the P4 left out nothing but the T4 speaks for cards that the slot feeds.
  const HeldRows slot = HeldRowsOf("gpu, slot-powered");
  EXPECT_EQ(slot.groups, 2u);
  EXPECT_EQ(slot.rows, 54u);
  EXPECT_GE(slot.share, kHeldWell);
  EXPECT_LT(slot.inside, slot.rows);
  const HeldRows gpu = HeldRowsOf("gpu");
  EXPECT_GE(gpu.share, kHeldWell);
  EXPECT_LE(gpu.inside, gpu.rows);
  EXPECT_EQ(HeldRowsOf("no such thing").rows, 0u);
  LeastChecked least;
  for (const char* kind : {"gpu", "gpu, slot-powered", "batch"}) least.Add(kind, {});
  EXPECT_EQ(least.kind, "gpu, slot-powered");
  least.Add("no such thing", {});
  EXPECT_EQ(least.kind, "no such thing");
  EXPECT_EQ(least.rows, 0u);
}

TEST(Residuals, AGroupCountsAsManyRowsAsItHasThatAreNotAlike) {
  EXPECT_EQ(RowsThatCount(100, 0), 100);
  EXPECT_EQ(RowsThatCount(100, 1), 1);
  EXPECT_NEAR(RowsThatCount(5, 0.25), 2.5, 1e-12);
  const ResidualGroup low = {"k", "low", 0, 2, 0, 2, 0, 0, {0.1, 0.1}};
  const ResidualGroup mixed = {"k", "mixed", 0, 2, 0, 2, 0, 0, {0.1, 0.2}};
  const ResidualGroup high = {"k", "high", 0, 2, 0, 2, 0, 0, {0.2, 0.2}};
  const auto alike = [](std::vector<const ResidualGroup*> groups) { return AlikeInGroups(groups); };
  EXPECT_NEAR(alike({&low, &high}), 1, 1e-12) << "all of the difference is between them";
  EXPECT_EQ(alike({&mixed, &mixed}), 0) << "none of it is";
  EXPECT_EQ(alike({&mixed}), 1) << "one group says nothing of another";
}

TEST(Residuals, AKindThatWasNeverCheckedIsAsWrongAsPublishedOnesWithAHeavyTail) {
  const ModelError unknown = ModelErrorOf("no such thing");
  EXPECT_EQ(unknown.rows, 0u);
  // Nine in ten of Student's t with two degrees of freedom are below 2.920.
  EXPECT_NEAR(unknown.sigma, kPriorModelError * 2.920 / 1.645, 1e-4);
}

// The prior where NVIDIA's own cards say nothing, from the rows that it names.
TEST(Residuals, FarPredictionsBeginAsWrongAsAPublishedRoofline) {
  if (!HasCostdata("e2e_labels.csv")) GTEST_SKIP() << "no data at " << CostdataFolder();
  std::map<std::string, std::vector<double>> squares;
  ForEachCostRow("e2e_labels.csv", [&](const CostRow& row) {
    if (row.at("roofline_ms").empty() || row.at("gpu") == "P4" || row.at("gpu") == "T4") return;
    const double predicted = row.Number("roofline_ms"), measured = row.Number("ms");
    const double error = ErrorOf("gpu", measured, predicted, measured);
    squares[row.at("gpu")].push_back(error * error);
  });
  EXPECT_EQ(squares.size(), 4u);
  double sum = 0;
  for (const auto& [gpu, all] : squares) {
    double of_gpu = 0;
    for (double square : all) of_gpu += square;
    sum += of_gpu / static_cast<double>(all.size());
  }
  EXPECT_NEAR(std::sqrt(sum / 4), kPriorFarGpuError, 0.005);
  EXPECT_GT(ModelErrorOf("gpu, other vendor, never").sigma, ModelErrorOf("gpu, never").sigma);
}

TEST(Residuals, ErrorsAreSharesOfTheEffectInEitherDirection) {
  // Twice as fast as before; measured 10 % longer, or 10 % shorter by as much.
  const double dose = std::log(2.0);
  EXPECT_NEAR(ErrorOf("amp", 100, 50, 55), 0.1 / dose, 1e-12);
  EXPECT_NEAR(ErrorOf("amp", 100, 50, 50 / 1.1), 0.1 / dose, 1e-12);
  EXPECT_NEAR(ErrorOf("gpu, by data sheet", 100, 99, 99 * 1.2), 0.2, 1e-12);
  EXPECT_LT(ErrorOf("amp", 100, 99, 50), 0);  // a change of 1 % says nothing of the model
}

TEST(Residuals, EveryGroupIsThereOnceAndItsErrorsAscend) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const ResidualGroup& g : Residuals()) {
    EXPECT_TRUE(seen.insert({g.kind, g.group}).second) << g.kind << ", " << g.group;
    const bool optimization = FindTransform(g.kind.substr(0, g.kind.find(','))) != nullptr;
    EXPECT_TRUE(optimization || g.kind == kAnotherProgram) << g.kind;
    EXPECT_TRUE(std::is_sorted(g.errors.begin(), g.errors.end())) << g.kind << ", " << g.group;
    EXPECT_LE(g.errors.size(), g.rows());
    EXPECT_LE(g.least, g.most);
  }
}

TEST(Residuals, GroupsThatAgreeNarrowAndNeverBelowMostOfTheirRows) {
  for (const char* kind : {"batch", "gpu", "amp"}) {
    const ModelError known = ModelErrorOf(kind);
    EXPECT_GT(known.rows, 0u) << kind;
    EXPECT_LT(known.sigma, ModelErrorOf(kind[0] == 'g' ? "gpu, never" : "never").sigma) << kind;
    size_t below = 0;
    for (const ResidualGroup& g : Residuals()) {
      if (g.kind != kind) continue;
      for (double e : g.errors) below += e <= 1.645 * known.sigma ? 1 : 0;
    }
    EXPECT_GE(10 * below, 8 * known.rows) << kind;
  }
}

TEST(ErrorKind, ByWhatIsKnownOfBothGpus) {
  const BuiltGraph built = Example("resnet50");  // on an A100
  auto kind = [&](const std::string& spec) {
    Graph graph = built.graph;
    const std::vector<Application> scenario = *ParseScenario(spec);
    auto applied = Apply(scenario[0], graph);
    EXPECT_TRUE(applied.ok()) << spec;
    return ErrorKindOf(scenario[0], built.graph, applied->changes.terms);
  };
  EXPECT_EQ(kind("gpu(V100-PCIE-32GB)").with_shapes, "gpu");
  EXPECT_EQ(kind("gpu(H100)").with_shapes, "gpu, by data sheet");
  EXPECT_EQ(kind("gpu(L4)").with_shapes, "gpu, slot-powered");
  EXPECT_EQ(kind("gpu(MI210)").with_shapes, "gpu, other vendor");
  EXPECT_EQ(kind("gpu(H100)").without_shapes, "gpu, by data sheet, no shapes");
  EXPECT_GT(kind("gpu(H100)").known, 0.5);
  EXPECT_EQ(kind("gpu(A100-SXM4-40GB)").measured, 1);  // the GPU that was recorded
  EXPECT_EQ(kind("amp").main(), "amp");
  EXPECT_EQ(kind("amp").without_shapes, "amp, no shapes");
}

TEST(KernelTime, PredictionsOfItAreSumsOfKernelsAndHaveIntervals) {
  const BuiltGraph built = Example("resnet50");
  const ReplayCheck was = MeasuredKernelTimes(built.graph);
  EXPECT_EQ(was.measured, KernelTime(built.graph));
  EXPECT_EQ(was.error(), 0);
  const std::vector<Application> scenario = *ParseScenario("gpu(H100)");
  const std::vector<std::vector<Application>> scenarios = {scenario};
  auto result =
      PredictAll(built, was, scenarios, {.alone = false, .explain = false, .kernel_time = true});
  ASSERT_TRUE(result.ok());
  const Prediction& p = result->predictions[result->main];
  Graph there = built.graph;
  ASSERT_TRUE(ApplyAll(scenario, there).ok());
  EXPECT_EQ(p.step, KernelTime(there));
  EXPECT_LT(*p.low, p.step);
  EXPECT_GT(*p.high, p.step);
  ASSERT_EQ(p.causes.size(), 1u);
  EXPECT_EQ(p.causes[0].delta, p.step - was.measured);
}

}  // namespace
}  // namespace daydream
