// `daydream fabric` as users type it, and the reader of what nccl-tests prints.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "costmodel/network/sweep.h"
#include "tests/tools/cli_fixture.h"

namespace daydream {
namespace {

using testing::HasSubstr;

// As all_reduce_perf of nccl-tests 2.13 prints it, made up but for its form.
constexpr char kSweep[] = R"(# nThread 1 nGpus 1 minBytes 1024 maxBytes 268435456
#  Rank  0 Group  0 Pid  101 on     node-a device  0 [0x00] NVIDIA H100
#  Rank  1 Group  0 Pid  102 on     node-b device  0 [0x00] NVIDIA H100
#                                               out-of-place                  in-place
#       size     count   type redop root    time  algbw busbw #wrong  time  algbw busbw #wrong
#        (B) (elements)                     (us)  (GB/s) (GB/s)       (us) (GB/s) (GB/s)
        1024       256  float   sum   -1   30.00   0.03  0.03     0  29.00  0.04  0.04     0
     1048576    262144  float   sum   -1   60.00  17.48 17.48     0  59.00 17.77 17.77     0
    33554432   8388608  float   sum   -1   400.0  83.89 83.89     0  401.0 83.68 83.68     0
   268435456  67108864  float   sum   -1    2900  92.56 92.56     0   2901 92.53 92.53     0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 48.4
)";

TEST(Sweep, IsReadAsPrinted) {
  const auto sweep = ReadSweep(kSweep, "t");
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  EXPECT_THAT(sweep->points,
              testing::ElementsAre(SizePoint{1024, 30}, SizePoint{1048576, 60},
                                   SizePoint{33554432, 400}, SizePoint{268435456, 2900}));
  EXPECT_EQ(sweep->ranks, 2);
  EXPECT_EQ(sweep->nodes, 2);
  EXPECT_EQ(sweep->skipped, 0u);
}

// Old versions print neither operation nor root; launchers put their name before each line.
TEST(Sweep, ColumnsThatAVersionLacksAndPrefixesAreNotInTheWay) {
  const auto old =
      ReadSweep("  4194304  1048576  float  100.2  41.86  78.49  2e-07  99.8 42.0 78.8\n", "t");
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_THAT(old->points, testing::ElementsAre(SizePoint{4194304, 100.2}));
  const auto prefixed = ReadSweep(
      "# Collective test starting: all_gather_perf\n"
      "[1,0]<stdout>:  4194304  1048576  half  none  0  100.2  41.86  39.24  0  99.8 42.0 39.3 0\n"
      "[1,0]<stdout>:  8388608  1048576  half  none  0  garbage\r\n",
      "t");
  ASSERT_TRUE(prefixed.ok()) << prefixed.status();
  EXPECT_THAT(prefixed->points, testing::ElementsAre(SizePoint{4194304, 100.2}));
  EXPECT_EQ(prefixed->kind, CollectiveKind::kAllGather);
  EXPECT_EQ(prefixed->skipped, 1u);
}

// What cannot be a time, and what was computed wrong, is left out; the time in place is another
// one.
TEST(Sweep, ARowWithoutATimeIsNotTheOneInPlace) {
  const std::string rest = " 17.48 17.48     0  59.00 17.77 17.77     0\n";
  for (const char* time : {"nan", "-2500", "0", "inf", "N/A"}) {
    const auto sweep = ReadSweep(
        kSweep + std::string("  1048576    262144  float   sum   -1  ") + time + rest, "t");
    ASSERT_TRUE(sweep.ok()) << time;
    EXPECT_EQ(sweep->points.size(), 4u) << time;
    EXPECT_EQ(sweep->skipped, 1u) << time;
    EXPECT_EQ(sweep->skipped_line, 13u) << time;
  }
  const auto wrong = ReadSweep(
      kSweep + std::string("2097152 524288 float sum -1 99.0 21.18 21.18 5 59.0 35.5 35.5 0\n"),
      "t");
  ASSERT_TRUE(wrong.ok());
  EXPECT_EQ(wrong->points.size(), 4u);
  EXPECT_EQ(wrong->wrong, 1u);
}

TEST(Sweep, WithoutRowsIsRefused) {
  for (std::string_view text : {"", "hello\n", "1 2 float\n", "9 9 float nan inf -1\n"}) {
    const auto sweep = ReadSweep(text, "t");
    ASSERT_FALSE(sweep.ok()) << text;
    EXPECT_EQ(DiagnosticOf(sweep.status()).code, "E0822");
  }
}

class CliFabric : public CliFixture {};

TEST_F(CliFabric, FitGivesTimesAtAskedSizes) {
  Write("sweep.txt", kSweep);
  const CliResult r = Run("fabric fit " + Path("sweep.txt") +
                          " --collective all_reduce --ranks 16 --nodes 2 --at 1048576,16777216 "
                          "--format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  const nlohmann::json json = nlohmann::json::parse(r.out);
  ASSERT_EQ(json["points"].size(), 2u);
  EXPECT_EQ(json["points"][0]["bytes"], 1048576);
  EXPECT_NEAR(json["points"][0]["us"].get<double>(), 60, 0.01);
  EXPECT_GT(json["points"][1]["us"], 60);
  EXPECT_LT(json["points"][1]["us"], 400);
}

// Two sizes leave none out, and say nothing of sizes beyond them.
TEST_F(CliFabric, WhatAFitCannotTellIsSaid) {
  Write("sweep.txt", "1048576 262144 float 60.0 17.48 17.48\n2097152 1 float 90.0 23.3 23.3\n");
  const CliResult r = Run("fabric fit " + Path("sweep.txt") +
                          " --collective all_reduce --ranks 16 --at 1024,1048576,1e9 "
                          "--format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_TRUE(nlohmann::json::parse(r.out)["left_out_error_pct"]["mean"].is_null());
  EXPECT_THAT(r.err, HasSubstr("2 sizes of --at beyond what was measured, 1.0 MB to 2.1 MB"));
}

TEST_F(CliFabric, WhatWasFittedIsAFabricForOtherCommands) {
  Write("sweep.txt", kSweep);
  const std::string saved = Path("mine.fabric");
  ASSERT_EQ(
      Run("fabric fit " + Path("sweep.txt") + " --collective all_reduce --save " + saved).exit, 0);
  const CliResult r = Run("fabric show " + saved + " --ranks 2 --at 33554432 --format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  const nlohmann::json json = nlohmann::json::parse(r.out);
  EXPECT_NEAR(json["points"][0]["us"].get<double>(), 400, 0.01);
  EXPECT_EQ(json["points"][0]["source"], "sweep");
}

// A sweep over nodes says nothing of what stays in one: the rest is answered.
TEST_F(CliFabric, ASweepOfSeveralNodesIsAFabricToo) {
  Write("sweep.txt", kSweep);
  for (const auto& [ranks, nodes] : {std::pair(16, 2), {4, 2}, {7, 3}, {2, 2}}) {
    const std::string saved = Path(fmt::format("{}on{}.fabric", ranks, nodes));
    const std::string show = "fabric show " + saved + " --at 33554432 --format json --ranks ";
    const CliResult fit =
        Run(fmt::format("fabric fit {} --collective all_reduce --ranks {} --nodes {} --save {}",
                        Path("sweep.txt"), ranks, nodes, saved));
    ASSERT_EQ(fit.exit, 0) << fit.err;
    const CliResult r = Run(show + std::to_string(ranks));
    ASSERT_EQ(r.exit, 0) << r.err;
    const nlohmann::json point = nlohmann::json::parse(r.out)["points"][0];
    EXPECT_NEAR(point["us"].get<double>(), 400, 0.01) << ranks;
    EXPECT_EQ(point["source"], "sweep");
    const CliResult more = Run(show + "64");
    ASSERT_EQ(more.exit, 0) << more.err;
    EXPECT_TRUE(nlohmann::json::parse(more.out)["points"][0]["error_pct"].is_null());
    EXPECT_EQ(more.out.find("too fast if two nodes") != std::string::npos, nodes == 2) << more.out;
  }
  const std::string saved = Path("16on2.fabric");
  const CliResult few = Run("fabric show " + saved + " --ranks 4");
  EXPECT_EQ(few.exit, 2);
  EXPECT_THAT(few.err, HasSubstr("error[E0823]: sweep does not say what 4 ranks on 1 node take"));
  EXPECT_THAT(few.err, HasSubstr("only 16 ranks on 2 nodes were measured"));
  EXPECT_THAT(Run("fabric show " + saved).out,
              HasSubstr("GPUs of a node: no rate: what stays in it has no time"));
  const CliResult scale =
      Run(std::string("scale ") + kExampleTrace + " --ranks 4,16 --format json --fabric " + saved);
  EXPECT_EQ(scale.exit, 4);
  EXPECT_THAT(scale.err, HasSubstr("does not say what 4 ranks on 1 node take"));
  const nlohmann::json points = nlohmann::json::parse(scale.out)["points"];
  EXPECT_TRUE(points[0]["step_ms"].is_null());
  EXPECT_GT(points[1]["step_ms"].get<double>(), 0);
}

TEST_F(CliFabric, ThePictureIsOfTheRanksThatWereAskedFor) {
  const auto top = [&](int ranks) {
    const CliResult r = Run(fmt::format("fabric show efa3200 --ranks {} --at 1073741824", ranks));
    EXPECT_EQ(r.exit, 0) << r.err;
    const size_t bar = r.out.find(" |"), line = r.out.rfind('\n', bar);
    EXPECT_THAT(r.out, HasSubstr(fmt::format(". all_reduce on {} ranks", ranks)));
    return std::pair(r.out.substr(line + 1, bar - line - 1), r.out);
  };
  EXPECT_EQ(top(16).first, "  4.83 ms") << top(16).second;
  EXPECT_THAT(top(64).second, HasSubstr("7395.77"));
  EXPECT_EQ(top(64).first, "  7.40 ms") << top(64).second;
}

TEST_F(CliFabric, ListAndShowSayWhereNumbersAreFrom) {
  const CliResult list = Run("fabric list");
  ASSERT_EQ(list.exit, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("efa3200"));
  EXPECT_THAT(list.out, HasSubstr("ib-ndr"));
  const CliResult show = Run("fabric show efa3200 --ranks 64");
  ASSERT_EQ(show.exit, 0) << show.err;
  EXPECT_THAT(show.out, HasSubstr("for all_reduce at 64 on 8"));
  EXPECT_THAT(show.out, HasSubstr("awsome-distributed-training"));
  EXPECT_THAT(Run("fabric show nvlink4 --text").out, HasSubstr("fabric {"));
  EXPECT_THAT(Run("fabric show ib-ndr").out,
              testing::AllOf(HasSubstr("ib-ndr (roce-8x400): all_reduce on 16 ranks"),
                             HasSubstr("roce-8x400: no one machine")));
}

TEST_F(CliFabric, OfADerivedTimeNoErrorIsKnown) {
  const auto at = [&](int ranks) {
    const CliResult r =
        Run(fmt::format("fabric show efa3200 --ranks {} --at 1048576 --format json", ranks));
    EXPECT_EQ(r.exit, 0) << r.err;
    return nlohmann::json::parse(r.out)["points"][0]["error_pct"];
  };
  EXPECT_GT(at(16).get<double>(), 1);
  EXPECT_TRUE(at(64).is_null());
}

TEST_F(CliFabric, WhatIsMissingIsNamed) {
  Write("sweep.txt", "1048576 262144 float 60.0 17.48 17.48\n2097152 1 float 90.0 23.3 23.3\n");
  EXPECT_THAT(Run("fabric fit " + Path("sweep.txt")).err, HasSubstr("--collective all_reduce"));
  EXPECT_THAT(Run("fabric show nvlink5x").err, HasSubstr("did you mean 'nvlink"));
  EXPECT_THAT(Run("fabric show nvlink4 --ranks 16").err, HasSubstr("E0823"));
  const std::string fit = "fabric fit " + Path("sweep.txt") + " --collective all_reduce";
  EXPECT_THAT(Run(fit + " --ranks 8 --nodes 16").err, HasSubstr("8 ranks cannot be on 16 nodes"));
  EXPECT_THAT(Run(fit + " --ranks 1").err, HasSubstr("one rank sends nothing"));
  EXPECT_THAT(Run("fabric show").err, HasSubstr("`show` takes one name"));
  EXPECT_EQ(Run("fabric frobnicate").exit, 2);
  EXPECT_EQ(Run("fabric fit").exit, 2);
}

}  // namespace
}  // namespace daydream
