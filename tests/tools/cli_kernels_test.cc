// `daydream kernels` as users type it: times of single kernels without a trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

#include <fmt/format.h>

#include "tests/tools/cli_fixture.h"

namespace daydream {
namespace {

using testing::HasSubstr;

class CliKernels : public CliFixture {};

TEST_F(CliKernels, AProductHasATimeAnIntervalALimiterAndASource) {
  const CliResult r = Run("kernels --gpu H100 --gemm 4096x4096x4096 --dtype bf16 --format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  const nlohmann::json json = nlohmann::json::parse(r.out);
  EXPECT_EQ(json["schema"], "daydream.kernels/1");
  const nlohmann::json& on = json["kernels"][0]["on"][0];
  EXPECT_EQ(on["gpu"], "H100-SXM5-80GB");
  // 137 GFLOP: 139 us at the data sheet's 989 TFLOPS.
  EXPECT_GT(on["us"], 139);
  EXPECT_LT(on["us"], 220);
  EXPECT_LT(on["interval_us"][0], on["us"]);
  EXPECT_GT(on["interval_us"][1], on["us"]);
  EXPECT_EQ(on["limiter"], "arithmetic");
  EXPECT_THAT(on["from"].get<std::string>(), HasSubstr("measured on H100-SXM5-80GB"));
}

TEST_F(CliKernels, ARowTimesAMatrixIsLimitedByMemory) {
  const CliResult r = Run("kernels --gpu H100 --vs B200 --gemm 1x16384x16384");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("memory"));
  EXPECT_THAT(r.out, HasSubstr("B200-SXM-180GB"));
}

TEST_F(CliKernels, ATableOfProductsIsAnsweredLineByLine) {
  const std::string path = Path("products.csv");
  std::ofstream(path) << "m,n,k,dtype\n1024,1024,1024,bf16\n1024,1024,1024,fp8\n";
  const CliResult r = Run("kernels --gpu H100 --csv " + path + " --format csv");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("1024x1024x1024 bf16"));
  EXPECT_THAT(r.out, HasSubstr("1024x1024x1024 fp8"));
  std::ofstream(path) << "m,n,k\n1024,1024,-1\n";
  const CliResult bad = Run("kernels --gpu H100 --csv " + path);
  EXPECT_EQ(bad.exit, 2);
  EXPECT_THAT(bad.err, HasSubstr("products.csv:2: k = '-1' is no size"));
}

// Engines cast A before each product, and their rows hold it; who measures the product alone does
// not.
TEST_F(CliKernels, NarrowFormatsHaveATimeWithTheCastAndOneWithout) {
  const std::string query = "kernels --gpu H100 --gemm 4096x1024x4096 --dtype fp8";
  const nlohmann::json on =
      nlohmann::json::parse(Run(query + " --format json").out)["kernels"][0]["on"][0];
  EXPECT_LT(on["without_cast"]["us"], 0.6 * on["us"].get<double>());
  EXPECT_THAT(on["from"].get<std::string>(), HasSubstr("with the cast of A"));
  EXPECT_THAT(on["without_cast"]["from"].get<std::string>(), HasSubstr("none in fp8"));
  EXPECT_THAT(Run(query).out, HasSubstr("4096x1024x4096 fp8, without the cast of A"));
  const std::string bf16 = "kernels --gpu H100 --gemm 4096x1024x4096 --format json";
  EXPECT_THAT(Run(bf16).out, testing::Not(HasSubstr("without_cast")));
}

// Fewer bytes of weights, the same arithmetic. Rows are of an A100 alone, none of int8 cores.
TEST_F(CliKernels, Int8WeightsAreReadFasterAndMultipliedNoFaster) {
  const auto us = [&](const char* shape, const char* dtype) {
    const CliResult r =
        Run(fmt::format("kernels --gpu A100 --gemm {} --dtype {} --format json", shape, dtype));
    EXPECT_EQ(r.exit, 0) << r.err;
    return nlohmann::json::parse(r.out)["kernels"][0]["on"][0]["us"].get<double>();
  };
  EXPECT_LT(us("1x16384x16384", "int8_wo"), 0.7 * us("1x16384x16384", "bf16"));
  EXPECT_NEAR(us("8192x8192x8192", "int8_wo") / us("8192x8192x8192", "bf16"), 1, 0.1);
  const CliResult h100 = Run("kernels --gpu H100 --gemm 1024x1024x1024 --dtype int8_wo");
  EXPECT_EQ(h100.exit, 2);
  EXPECT_THAT(h100.err, HasSubstr("int8_wo was not measured on GPUs like the H100"));
  const CliResult cores = Run("kernels --gpu A100 --gemm 1024x1024x1024 --dtype int8");
  EXPECT_EQ(cores.exit, 2);
  EXPECT_THAT(cores.err, HasSubstr("no product on int8 cores was measured"));
  EXPECT_EQ(Run("kernels --gpu A100 --elementwise 1024x1024 --dtype int8").exit, 0);
  EXPECT_EQ(Run("kernels --gpu A100 --elementwise 1024x1024 --dtype int8_wo").exit, 2);
}

TEST_F(CliKernels, WhatAGpuLacksIsRefused) {
  const CliResult r = Run("kernels --gpu A100 --gemm 1024x1024x1024 --dtype fp8");
  EXPECT_EQ(r.exit, 2);
  EXPECT_THAT(r.err, HasSubstr("has no tensor cores for fp8"));
  EXPECT_EQ(Run("kernels --gpu H100 --gemm 1024x1024").exit, 2);
  EXPECT_EQ(Run("kernels --gpu H100 --gemm 1024x1024x99999999999999999999").exit, 2);
  EXPECT_EQ(Run("kernels --gpu H100").exit, 2);
  EXPECT_EQ(Run("kernels --gemm 1024x1024x1024").exit, 2);
}

nlohmann::json AnswerOf(const CliResult& r) {
  EXPECT_EQ(r.exit, 0) << r.err;
  if (r.exit != 0) return {};
  return nlohmann::json::parse(r.out)["kernels"][0]["on"][0];
}

// An A100 moves 2039 GB/s by its data sheet.
TEST_F(CliKernels, LayerNormsLookupsAndAdamTakeWhatTheyMove) {
  const struct {
    const char* query;
    double bytes;
  } cases[] = {{"--layer-norm 65536x1024 --dtype fp32", 8.0 * 65536 * 1024},
               {"--embedding 65536x1024 --dtype fp32", 8.0 * 65536 * 1025},
               {"--adam 110000000 --dtype fp32", 28.0 * 110e6},
               {"--adam 110000000", 14.0 * 110e6}};
  for (const auto& c : cases) {
    const nlohmann::json on =
        AnswerOf(Run(fmt::format("kernels --gpu A100-SXM4-80GB --format json {}", c.query)));
    const double us = on["us"].get<double>(), least_us = c.bytes / 2039e3;
    EXPECT_GT(us, least_us) << c.query;
    EXPECT_LT(us, 1.7 * least_us) << c.query;
    EXPECT_LT(on["interval_us"][0].get<double>(), us) << c.query;
    EXPECT_GE(on["interval_us"][0].get<double>(), on["bound_us"].get<double>()) << c.query;
    EXPECT_GT(on["interval_us"][1].get<double>(), us) << c.query;
    EXPECT_EQ(on["limiter"], "memory") << c.query;
  }
  const nlohmann::json adam =
      AnswerOf(Run("kernels --gpu A100 --adam 1000000 --dtype fp32 --format json"));
  EXPECT_THAT(adam["from"].get<std::string>(), HasSubstr("not measured by size"));
  // A kernel of a few numbers takes its start.
  EXPECT_EQ(AnswerOf(Run("kernels --gpu A100 --layer-norm 1x64 --format json"))["limiter"],
            "launch");
  for (const char* bad : {"--layer-norm 8192", "--layer-norm 8192x0", "--embedding 1x2x3",
                          "--adam 10x10", "--embedding 99999999999x4"}) {
    EXPECT_EQ(Run(fmt::format("kernels --gpu A100 {}", bad)).exit, 2) << bad;
  }
}

// Figure 6 of FlashAttention-3's paper: FlashAttention-2 backward on an H100, 16,384 tokens.
TEST_F(CliKernels, AttentionBackwardIsAsPublished) {
  const struct {
    int length, width;
    double tflops;
  } rows[] = {{512, 64, 198},   {1024, 64, 238},  {2048, 64, 264},  {4096, 64, 279},
              {8192, 64, 287},  {16384, 64, 291}, {512, 128, 214},  {1024, 128, 260},
              {2048, 128, 291}, {4096, 128, 310}, {8192, 128, 318}, {16384, 128, 322}};
  for (const auto& row : rows) {
    const int batch = 16384 / row.length, heads = 2048 / row.width;
    const nlohmann::json on = AnswerOf(
        Run(fmt::format("kernels --gpu H100 --attention {}x{}x{}x{} --backward --format json",
                        batch, heads, row.length, row.width)));
    const double flops = 2.5 * 4 * batch * heads * 1.0 * row.length * row.length * row.width;
    EXPECT_NEAR(flops / on["us"].get<double>() * 1e-6 / row.tflops, 1, 0.02) << row.length;
    EXPECT_THAT(on["from"].get<std::string>(), HasSubstr("not measured by shape"));
  }
  EXPECT_EQ(Run("kernels --gpu B200 --attention 8x16x2048x128 --backward").exit, 2);
  EXPECT_EQ(Run("kernels --gpu H100 --attention 8x16x2048x256 --backward").exit, 2);
}

TEST_F(CliKernels, AttentionAndElementwiseHaveTimes) {
  EXPECT_EQ(Run("kernels --gpu A100 --attention 8x16x2048x128 --causal").exit, 0);
  EXPECT_EQ(Run("kernels --gpu V100 --attention 8x16x2048x128").exit, 2);
  EXPECT_EQ(Run("kernels --gpu V100 --elementwise 8192x4096 --dtype fp32").exit, 0);
}

}  // namespace
}  // namespace daydream
