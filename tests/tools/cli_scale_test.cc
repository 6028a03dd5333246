// `daydream scale` as users type it.
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/real_traces.h"
#include "tests/tools/cli_fixture.h"
#include "transforms/parallel/jitter.h"

namespace daydream {
namespace {

using testing::HasSubstr;

const std::string kTrace = DAYDREAM_SOURCE_DIR "/examples/resnet50-synthetic.ddtrace";

class CliScale : public CliFixture {
 protected:
  nlohmann::json Scale(const std::string& args) {
    const CliResult r = Run("scale " + kTrace + " " + args + " --format json");
    EXPECT_EQ(r.exit, 0) << r.err;
    return r.exit == 0 ? nlohmann::json::parse(r.out) : nlohmann::json();
  }
};

TEST_F(CliScale, OnePointForEachNumberOfGpus) {
  const auto json = Scale("--ranks 1,2,4..1024 --fabric ib-ndr");
  const auto& points = json["points"];
  ASSERT_EQ(points.size(), 11u);
  EXPECT_EQ(points[0]["ranks"], 1);
  EXPECT_EQ(points[10]["ranks"], 1024);
  EXPECT_EQ(points[0]["efficiency"], 1.0);
  EXPECT_EQ(points[0]["exposed_comm_ms"], 0.0);
  for (const auto& p : points) {
    const double step = p["step_ms"];
    EXPECT_LE(p["interval_ms"][0].get<double>(), step);
    EXPECT_GE(p["interval_ms"][1].get<double>(), step);
    EXPECT_LE(p["efficiency"].get<double>(), 1.0);
    EXPECT_FALSE(p["bound_by"].get<std::string>().empty());
  }
  EXPECT_GT(points[10]["step_ms"].get<double>(), points[1]["step_ms"].get<double>());
}

TEST_F(CliScale, WithoutJitterAllRanksAreAlike) {
  const auto json = Scale("--ranks 8 --fabric nvlink4 --jitter 0");
  const auto& p = json["points"][0];
  EXPECT_EQ(p["step_ms"], p["alike_ms"]);
  const double exposed = p["exposed_comm_ms"], step = p["step_ms"];
  EXPECT_NEAR(p["interval_ms"][1].get<double>() - step, 0.2 * exposed, 1e-5);
}

// One value here, in the option and in the help, and --jitter alone is that.
TEST_F(CliScale, HowMuchRanksDifferIsOneValueEverywhere) {
  const std::string args = "--ranks 8 --fabric nvlink4";
  const auto usual = Scale(args);
  EXPECT_EQ(usual["jitter"], kUsualJitter);
  EXPECT_EQ(Scale(args + " --jitter 1.5%"), usual);
  EXPECT_EQ(Scale(args + " --jitter"), usual);
  EXPECT_EQ(Scale("--jitter " + args), usual);
  EXPECT_EQ(Scale("--jitter=0.5% " + args)["jitter"], 0.005);
  EXPECT_THAT(Run("scale --help").out,
              testing::AllOf(HasSubstr("--jitter [PCT]"), HasSubstr("1.5%")));
  const CliResult swallowed = Run("scale " + kTrace + " --fabric --format json");
  EXPECT_EQ(swallowed.exit, 2);
  EXPECT_THAT(swallowed.err, HasSubstr("--fabric needs a value"));
}

TEST_F(CliScale, AFixedGlobalBatchIsSharedByAll) {
  const auto weak = Scale("--ranks 4 --fabric nvlink4");
  const auto strong = Scale("--ranks 4 --fabric nvlink4 --fixed-global-batch");
  EXPECT_LT(strong["points"][0]["step_ms"].get<double>(),
            weak["points"][0]["step_ms"].get<double>());
  EXPECT_LT(strong["points"][0]["efficiency"].get<double>(), 1);
}

TEST_F(CliScale, ShardingTheOptimizerIsAStrategy) {
  EXPECT_EQ(Scale("--ranks 8 --fabric nvlink4 --strategy zero1")["strategy"], "zero1");
}

TEST_F(CliScale, OptimizationsStandBesideTheStrategy) {
  const std::string args = "--ranks 1,16 --fabric efa100 --jitter 0";
  const auto plain = Scale(args), thin = Scale(args + " --also 'powersgd(4,overlap=yes)'");
  EXPECT_EQ(thin["points"][0]["step_ms"], plain["points"][0]["step_ms"]);
  EXPECT_LT(thin["points"][1]["exposed_comm_ms"].get<double>(),
            plain["points"][1]["exposed_comm_ms"].get<double>());
}

TEST_F(CliScale, MoreRanksThatDifferWaitLonger) {
  const auto points = Scale("--ranks 2,8,64,512 --fabric ib-ndr --jitter 2%")["points"];
  double before = 0;
  for (const auto& p : points) {
    const double share = p["step_ms"].get<double>() / p["alike_ms"].get<double>();
    EXPECT_GT(share, before);
    before = share;
  }
  // The slowest of 512: three standard deviations, where nothing hides them.
  EXPECT_NEAR(before, 1 + 0.02 * 3.04, 0.012);
}

// What the slowest adds grows as it does in the mean of all draws, whichever few were drawn.
TEST_F(CliScale, TheSlowestOfManyIsThatOfTheMean) {
  const auto points = Scale("--ranks 64,128..1024 --fabric ib-ndr --jitter 2%")["points"];
  ASSERT_EQ(points.size(), 5u);
  const auto added = [](const nlohmann::json& p) {
    return (p["step_ms"].get<double>() - p["alike_ms"].get<double>()) /
           MaximumOf(p["ranks"].get<int64_t>()).mean;
  };
  for (const auto& p : points) EXPECT_NEAR(added(p) / added(points[0]), 1, 0.01) << p["ranks"];
}

// A what-if with ddp(n) and jitter is about the slowest of n, not about one draw.
TEST_F(CliScale, AWhatIfOfManyThatDifferIsThePointOfTheCurve) {
  const auto step = [&](const std::string& opt) {
    const CliResult r =
        Run(fmt::format("whatif {} --no-alone --opt '{}' --format json", kTrace, opt));
    EXPECT_EQ(r.exit, 0) << r.err;
    return nlohmann::json::parse(r.out)["scenarios"].back()["step_ms"].get<double>();
  };
  for (const char* strategy : {"ddp", "zero1"}) {
    for (int n : {2, 64}) {
      const double curve = Scale(fmt::format("--strategy {} --ranks {} --fabric efa100 --jitter 3%",
                                             strategy, n))["points"][0]["step_ms"];
      const std::string spread = fmt::format("{}({},fabric=efa100)", strategy, n);
      const double first = step("jitter(3%,seed=0)," + spread);
      EXPECT_NEAR(first / curve, 1, 0.01) << spread;
      EXPECT_GT(first / step(spread), 1.01) << spread;
      EXPECT_EQ(step(spread + ",jitter(3%,seed=4)"), first) << spread;
      EXPECT_EQ(step(spread + fmt::format(",jitter(3%,ranks={})", n)), first) << spread;
    }
  }
  const CliResult told = Run("whatif " + kTrace + " --opt 'ddp(64,fabric=efa100),jitter(3%)'");
  EXPECT_THAT(told.out, HasSubstr("jitter(sd=3%,ranks=64)"));
  EXPECT_THAT(OneLine(told.err), HasSubstr("the slowest of 64 ranks takes"));
}

TEST_F(CliScale, WhatCannotBeAnsweredIsSaid) {
  for (const char* opt : {"ddp(8)", "zero1(8)", "zero2(8)"}) {
    const CliResult r = Run(fmt::format("whatif {} --opt '{}'", kTrace, opt));
    EXPECT_THAT(r.err, HasSubstr("error[E0820]: which network joins the ranks?")) << opt;
    EXPECT_THAT(r.err, HasSubstr("ddp(8, fabric=nvlink4)")) << opt;
    EXPECT_THAT(r.err, HasSubstr("daydream fabric list")) << opt;
  }
  EXPECT_THAT(Run("scale " + kTrace + " --ranks 2 --fabric nvlnk4").err, HasSubstr("nvlink4"));
  EXPECT_THAT(Run("scale " + kTrace + " --ranks 0 --fabric nvlink4").err, HasSubstr("E0104"));
  EXPECT_THAT(Run("scale " + kTrace + " --ranks 4..x --fabric nvlink4").err, HasSubstr("E0104"));
  EXPECT_THAT(Run("scale " + kTrace + " --ranks 4..1 --fabric nvlink4").err,
              HasSubstr("--ranks 4..1: 1 is less than 4"));
  // A node of eight holds no sixteen; the other points are answered.
  const CliResult r = Run("scale " + kTrace + " --ranks 8,16 --fabric nvlink4 --format json");
  EXPECT_EQ(r.exit, 4);
  EXPECT_THAT(r.err, HasSubstr("E0823"));
  const auto json = nlohmann::json::parse(r.out);
  EXPECT_TRUE(json["points"][1]["step_ms"].is_null());
  EXPECT_EQ(json["points"][1]["error"], "E0823");
  EXPECT_THAT(r.err, HasSubstr(json["points"][1]["what"].get<std::string>()));
  EXPECT_GT(json["points"][0]["step_ms"].get<double>(), 0);
}

TEST_F(CliScale, WhatFindsNothingToChangeIsSaid) {
  const std::string args = "scale " + kTrace + " --ranks 2 --fabric nvlink4 --also ";
  EXPECT_THAT(Run(args + "flash-attn").err,
              HasSubstr("warning[W0603]: flash-attn finds nothing to change"));
  // What each of several tells is told.
  const CliResult r = Run(args + "amp");
  EXPECT_THAT(r.err,
              testing::AllOf(HasSubstr("161 gradients in 5 buckets"), HasSubstr("assumes bf16"),
                             testing::Not(HasSubstr("nothing to change"))));
}

TEST_F(CliScale, WhatHoldsForManyNumbersOfGpusIsSaidOnce) {
  const std::filesystem::path trace = RealTraceFolder() / "training/resnet18-bs128-2080ti.json.gz";
  if (!std::filesystem::exists(trace)) GTEST_SKIP() << "no " << trace;
  const CliResult r = Run("scale " + trace.string() + " --ranks 2,4,8 --fabric nvlink4");
  EXPECT_EQ(r.exit, 4);
  const size_t first = r.err.find("error[E0815]");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(r.err.find("error[", first + 1), std::string::npos) << r.err;
}

// The step is mostly work of the GPU however many exchange gradients; what they lose is another
// question. Where thousands exchange them behind backward, over 25 Gbit/s each, it is that.
TEST_F(CliScale, WhatBoundsAStepIsNotWhatMakesItLonger) {
  const auto fast = Scale("--ranks 1,2,256 --fabric ib-ndr --jitter 0.5%")["points"];
  EXPECT_EQ(fast[0]["lost_to"], "");
  EXPECT_EQ(fast[2]["lost_to"], "exposed communication");
  for (const auto& p : fast) EXPECT_EQ(p["bound_by"], "compute");
  const auto slow =
      Scale("--ranks 4096 --fabric eth25-roce --jitter 0 --with overlap=no,bucket=1MB")["points"];
  EXPECT_EQ(slow[0]["bound_by"], "exposed communication");
  const CliResult r = Run("scale " + kTrace + " --ranks 1,2,256 --fabric ib-ndr --jitter 0.5%");
  EXPECT_THAT(r.out, HasSubstr("lost to exposed communication: 256 GPUs"));
}

// Ranks of one run are draws: each stands for all, and they tell how much they differ.
TEST_F(CliScale, AFolderOfRanksIsTheirMean) {
  const std::string run = DAYDREAM_SOURCE_DIR "/examples/two-ranks-synthetic";
  const CliResult r = Run("scale " + run + " --ranks 1,2 --fabric nvlink4 --format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  const auto both = nlohmann::json::parse(r.out);
  EXPECT_EQ(both["recorded"], nlohmann::json({0, 1}));
  EXPECT_GT(both["jitter"].get<double>(), 0.1);
  double sum = 0;
  for (int rank : {0, 1}) {
    const CliResult one = Run(fmt::format(
        "scale {} --rank {} --ranks 1 --fabric nvlink4 --jitter 0 --format json", run, rank));
    ASSERT_EQ(one.exit, 0) << one.err;
    const auto json = nlohmann::json::parse(one.out);
    EXPECT_FALSE(json.contains("recorded"));
    sum += json["step_ms"].get<double>();
  }
  EXPECT_NEAR(both["step_ms"].get<double>(), sum / 2, 0.02);
}

// Each of eight recorded ranks stands for all: 632.5 ms is what they take together.
TEST_F(CliScale, AnyRankOfARunTellsTheStepOfAll) {
  const auto folder = RealTraceFolder() / "ranks" / "megatron-tp8";
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) GTEST_SKIP() << "no " << folder;
  // 80 % of eight are six; with the difference of these ranks it is one more.
  for (const auto& [jitter, least] : {std::pair("--jitter 1.8%", 7), {"--jitter", 6}}) {
    int inside = 0;
    double off = 0;
    for (int rank = 0; rank < 8; ++rank) {
      const CliResult r =
          Run(fmt::format("scale {}/rank{}.json.gz --ranks 8 --fabric nvlink3 {} --format json",
                          folder.string(), rank, jitter));
      ASSERT_EQ(r.exit, 0) << r.err;
      const auto p = nlohmann::json::parse(r.out)["points"][0];
      inside +=
          p["interval_ms"][0].get<double>() <= 632.5 && p["interval_ms"][1].get<double>() >= 632.5;
      off += std::abs(p["step_ms"].get<double>() / 632.5 - 1) / 8;
    }
    EXPECT_GE(inside, least) << jitter;
    EXPECT_LE(off, 0.03) << jitter;
  }
}

}  // namespace
}  // namespace daydream
