#include "costmodel/calibrate.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "costmodel/op_time.h"
#include "tests/costmodel/costdata.h"
#include "tests/source_tree.h"
#include "transforms/analysis/device_choice.h"
#include "transforms/analysis/rate_samples.h"

namespace daydream {
namespace {

using ::testing::HasSubstr;

// `n` products of a GPU that runs them as the model says, `factor` times slower.
std::vector<RateSample> Products(const DeviceSpec& gpu, size_t n, double factor) {
  std::vector<RateSample> samples;
  for (size_t i = 0; i < n; ++i) {
    const auto size = static_cast<int64_t>(1024 + 512 * (i % 7));
    RateSample sample{.work = WorkOfProduct({1, size, 4096, 1024})};
    sample.ns = PredictOp(gpu, sample.work, DType::kFp32).ns * factor;
    samples.push_back(std::move(sample));
  }
  return samples;
}

DeviceSpec L4() { return *FindDeviceSpec("L4"); }
CalibrationRules NoPrior(const DeviceSpec& like) { return {.like = &like, .source = "test"}; }

TEST(Calibrate, LeavesOutWhatIsFasterThanTheDataSheetAllows) {
  auto samples = Products(L4(), 10, 1);
  const auto impossible = Products(L4(), 3, 1e-2);
  samples.insert(samples.end(), impossible.begin(), impossible.end());
  for (size_t i = 10; i < samples.size(); ++i) samples[i].ns = std::max(samples[i].ns, 5e3);
  const Calibration c = *Calibrate(L4(), samples, NoPrior(L4()));
  EXPECT_EQ(c.impossible, 3u);
  EXPECT_EQ(c.unused, 3u);
  EXPECT_FALSE(Calibrate(L4(), impossible, NoPrior(L4())).ok());
}

// Samples that contradict each other say nothing of the next one.
TEST(Calibrate, KeepsTheRuleWhereHeldOutSamplesAreNoNearer) {
  auto samples = Products(L4(), 10, 1);
  for (size_t i = 0; i < samples.size(); ++i) samples[i].ns *= i % 2 == 0 ? 1.6 : 1.3;
  const Calibration better = *Calibrate(L4(), samples, NoPrior(L4()));
  EXPECT_FALSE(better.fits[0].by_rule);
  EXPECT_LT(better.fits[0].error_held_out, better.fits[0].error_before);
  samples = Products(L4(), 10, 1);
  const Calibration same = *Calibrate(L4(), samples, NoPrior(L4()));
  EXPECT_EQ(same.fits[0].by_rule, same.fits[0].kept == same.fits[0].prior);
}

TEST(Calibrate, FindsTheRateThatWasMeasured) {
  DeviceSpec slow = L4();
  slow.measured_fp32_gemm_tflops = slow.SustainedTflops(DType::kFp32) * 0.7;
  const auto samples = Products(slow, 200, 1);
  const Calibration c = *Calibrate(L4(), samples, NoPrior(L4()));
  ASSERT_EQ(c.fits.size(), 1u);
  EXPECT_NEAR(c.fits[0].alone / slow.measured_fp32_gemm_tflops, 1, 1e-3);
  EXPECT_NEAR(c.fits[0].kept / slow.measured_fp32_gemm_tflops, 1, 0.01);
  EXPECT_LT(c.fits[0].error_after, 0.01);
  EXPECT_GT(c.fits[0].error_before, 0.15);
  EXPECT_LT(c.fits[0].error_held_out, 0.01);
  EXPECT_EQ(c.device.measured_fp32_gemm_tflops, c.fits[0].kept);
  // Batched products run at the same clock.
  EXPECT_EQ(c.device.measured_fp32_batched_gemm_tflops, c.fits[0].kept);
}

TEST(Calibrate, MeasurementsThatAgreeWithTheRuleChangeNothing) {
  const Calibration c = *Calibrate(L4(), Products(L4(), 10, 1), NoPrior(L4()));
  EXPECT_NEAR(c.fits[0].kept / c.fits[0].prior, 1, 1e-4);
}

TEST(Calibrate, FewSamplesStayNearTheRule) {
  double last = 0;
  for (size_t n : {1, 3, 10, 100}) {
    const Calibration c = *Calibrate(L4(), Products(L4(), n, 1.3), NoPrior(L4()));
    const double moved = std::log(c.fits[0].prior / c.fits[0].kept);
    EXPECT_GT(moved, last) << n;
    EXPECT_LT(moved, std::log(c.fits[0].prior / c.fits[0].alone)) << n;
    last = moved;
  }
}

TEST(Calibrate, NoRateIsAboveTheDataSheet) {
  auto samples = Products(L4(), 300, 1);
  for (RateSample& s : samples) s.ns = PredictOp(L4(), s.work, s.dtype).bound_ns;
  const Calibration c = *Calibrate(L4(), samples, NoPrior(L4()));
  EXPECT_TRUE(c.fits[0].at_peak);
  EXPECT_LE(c.device.measured_fp32_gemm_tflops, L4().fp32_tflops);
}

TEST(Calibrate, TimesInAnotherUnitAreRefused) {
  auto samples = Products(L4(), 10, 1000);
  const auto refused = Calibrate(L4(), samples, NoPrior(L4()));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(DiagnosticOf(refused.status()).code, "E0806");
  EXPECT_THAT(DiagnosticOf(refused.status()).fix, HasSubstr("microseconds"));
  // A GPU that is held back by its power limit is none of these.
  EXPECT_TRUE(Calibrate(L4(), Products(L4(), 10, 3), NoPrior(L4())).ok());
}

TEST(Calibrate, OneWildSampleDoesNotDecide) {
  auto samples = Products(L4(), 20, 1);
  samples[7].ns *= 50;
  EXPECT_NEAR(
      Calibrate(L4(), samples, NoPrior(L4()))->fits[0].kept / L4().SustainedTflops(DType::kFp32), 1,
      0.05);
}

TEST(Calibrate, ASimilarGpuCorrectsTheRule) {
  // Nothing but one sample of another rate is known: products start where T4's were.
  const DeviceSpec t4 = *FindDeviceSpec("T4");
  const Calibration c = *Calibrate(L4(), Products(L4(), 1, 1), {.like = &t4, .source = "test"});
  EXPECT_NEAR(
      c.fits[0].prior,
      L4().RuleTflops(DType::kFp32) * t4.measured_fp32_gemm_tflops / t4.RuleTflops(DType::kFp32),
      1e-9);
  EXPECT_THAT(c.prior_from, HasSubstr("T4"));
}

TEST(Calibrate, SpreadOfTheRulesIsThatOfTheFittedGpus) {
  double sum = 0;
  int n = 0;
  for (const DeviceSpec& spec : DeviceSpecs()) {
    for (double rate : {spec.measured_fp32_gemm_tflops, spec.measured_fp32_batched_gemm_tflops}) {
      if (rate <= 0) continue;
      sum += std::pow(std::log(rate / spec.RuleTflops(DType::kFp32)), 2);
      ++n;
    }
  }
  EXPECT_EQ(n, 14);  // five of NVIDIA's GPUs and two of AMD's, single and batched products
  EXPECT_NEAR(std::sqrt(sum / n), 0.16, 0.005);  // kSpreadOfRules
}

TEST(Calibrate, SaysWhatItCannotUse) {
  std::vector<RateSample> samples = {
      {.work = *WorkOfConvolution({8, 64, 56, 56}, {64, 64, 3, 3}, {8, 64, 56, 56}), .ns = 1e6},
      {.work = WorkOfElements(10), .ns = 1e6}};
  EXPECT_EQ(DiagnosticOf(Calibrate(L4(), samples, NoPrior(L4())).status()).code, "E0806");
  EXPECT_THAT(DiagnosticOf(Calibrate(L4(), {}, NoPrior(L4())).status()).what,
              HasSubstr("no measured operation with known sizes"));
  const auto good = Products(L4(), 1, 1);
  samples.insert(samples.end(), good.begin(), good.end());
  EXPECT_EQ(Calibrate(L4(), samples, NoPrior(L4()))->unused, 2u);
}

// Real measurements: a few rows set the rate, the others judge it. Where the rule is right there is
// nothing to gain and little to lose; P100 runs these products at two thirds of its rule.
TEST(Calibrate, AHandfulOfRowsHelpsWhereTheRuleIsOff) {
  if (!HasCostdata("gemm.csv.gz")) GTEST_SKIP() << "no measurements at " << CostdataFolder();
  for (const char* gpu : {"T4", "A100-80", "V100", "P100"}) {
    std::vector<RateSample> all;
    ForEachCostRow("gemm.csv.gz", [&](const CostRow& row) {
      if (row.at("sp") != "te" || row.at("gpu") != gpu || row.at("op") != "linear") return;
      if (row.Number("us") < 300) return;  // the host's launch is in it
      all.push_back({.work = WorkOfProduct(
                         {1, row.Whole("b") * row.Whole("m"), row.Whole("n"), row.Whole("k")}),
                     .ns = row.Number("us") * 1e3});
    });
    ASSERT_GT(all.size(), 500u);
    std::vector<RateSample> few, rest;
    for (size_t i = 0; i < all.size(); ++i) (i % 97 == 7 ? few : rest).push_back(all[i]);
    const std::string name = std::string(gpu) == "V100"      ? "V100-PCIE-32GB"
                             : std::string(gpu) == "A100-80" ? "A100-PCIE-80GB"
                             : std::string(gpu) == "P100"    ? "P100-PCIE-16GB"
                                                             : "T4";
    DeviceSpec bare = *FindDeviceSpec(name);
    const DeviceSpec fitted = bare;
    bare.measured_fp32_gemm_tflops = bare.measured_fp32_batched_gemm_tflops = 0;
    if (name.starts_with("P100")) bare.fp32_tflops *= 1.25;  // a data sheet that promises too much
    auto error = [&](const DeviceSpec& device) {
      CostErrors errors;
      for (const RateSample& s : rest) errors.Add(PredictOp(device, s.work, s.dtype).ns, s.ns);
      return errors.mean();
    };
    const Calibration c = *Calibrate(bare, few, {.like = &bare, .source = "test"});
    fmt::print("{}: rule {:.1f} %, {} samples {:.1f} %, all training rows {:.1f} %\n", gpu,
               error(bare), few.size(), error(c.device), error(fitted));
    EXPECT_LE(error(c.device), error(bare) + 1.5) << gpu;
    if (std::string(gpu) == "P100") {
      // More than half of what all training rows gain.
      EXPECT_LE(error(c.device), (error(bare) + error(fitted)) / 2);
    }
  }
}

std::string Problem(std::string_view table) {
  auto samples = ReadRateTable("t.csv", table);
  if (samples.ok()) return fmt::format("{} samples", samples->size());
  const Diagnostic d = DiagnosticOf(samples.status());
  return fmt::format("{}|{}|{}", d.code, d.what, d.where);
}

TEST(RateTable, ReadsOperationsByTheirColumns) {
  const auto samples = *ReadRateTable("t.csv",
                                      "op,b,m,k,n,h,bytes,dtype,us\n"
                                      "linear,2,512,1024,4096,,,fp32,100\n"
                                      "bmm,16,512,64,512,,,fp16,50\r\n"
                                      "# a comment\n"
                                      "\n"
                                      "softmax,8192,,,,1024,,,70\n"
                                      "memory,,,,,,64000000,,90.5\n");
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(samples[0].work, WorkOfProduct({1, 1024, 4096, 1024}));
  EXPECT_EQ(samples[1].work, WorkOfProduct({16, 512, 512, 64}));
  EXPECT_EQ(samples[1].dtype, DType::kFp16);
  EXPECT_EQ(samples[2].work.rows->columns, 1024);
  EXPECT_EQ(samples[3].work.elements, 16e6);
  EXPECT_EQ(samples[3].ns, 90500);
}

TEST(RateTable, MistakesAreLocated) {
  EXPECT_THAT(Problem(""), HasSubstr("E0805|the table has no column 'op'"));
  EXPECT_THAT(Problem("op,us\nlinear,5\n"), HasSubstr("needs a value in column 'm'|t.csv:2:1"));
  EXPECT_THAT(Problem("op,bytes,us\nmemory,12,-3\n"), HasSubstr("'-3' is no us|t.csv:2:11"));
  EXPECT_THAT(Problem("op,bytes,us\nmemory,12MB,3\n"), HasSubstr("'12MB' is no bytes|t.csv:2:8"));
  EXPECT_THAT(Problem("op,bytes,us\nmemory,1e300,3\n"), HasSubstr("E0805"));
  EXPECT_THAT(Problem("op,us\nconv,3\n"), HasSubstr("'conv' is no known operation"));
  EXPECT_THAT(Problem("op,us,dtype\nlinear,3,fp12\n"), HasSubstr("'fp12' is no known format"));
  EXPECT_THAT(Problem("op,us\n,3\n"), HasSubstr("no operation"));
  EXPECT_THAT(Problem(std::string_view("\x1f\x8b\0", 3)), HasSubstr("neither a table"));
}

// --- the command

class CalibrateCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("daydream-rates-{}", ::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) { return (folder_ / name).string(); }
  int Run(const std::string& args) {
    return WEXITSTATUS(std::system(
        fmt::format("{} calibrate {} >{} 2>{}", DAYDREAM_BINARY, args, Path("out"), Path("err"))
            .c_str()));
  }
  std::string Err() { return ReadText(Path("err")); }
  std::filesystem::path folder_;
};

TEST_F(CalibrateCommand, WritesADeviceThatCanBeNamed) {
  std::ofstream(Path("ops.csv")) << "op,b,m,k,n,bytes,us\n"
                                    "linear,1,4096,4096,4096,,15000\n"
                                    "memory,,,,,400000000,1700\n";
  const std::string out = Path("my.textproto");
  ASSERT_EQ(Run(fmt::format("{} --gpu L4 -o {}", Path("ops.csv"), out)), 0) << Err();
  EXPECT_THAT(Err(), HasSubstr("fp32 products"));
  const auto device = ChooseDevice(out);
  ASSERT_TRUE(device.ok());
  EXPECT_GT(device->spec.measured_fp32_gemm_tflops, 0);
  EXPECT_THAT(device->spec.measured_source, HasSubstr("ops.csv"));
  EXPECT_EQ(device->spec.measured_residuals.size(), 2u);
  // What was calibrated may be calibrated again.
  EXPECT_EQ(Run(fmt::format("{} --gpu {}", Path("ops.csv"), out)), 0) << Err();
}

TEST_F(CalibrateCommand, ARecordingIsAsGoodAsATable) {
  const std::string trace = DAYDREAM_SOURCE_DIR "/examples/resnet50-synthetic.ddtrace";
  EXPECT_EQ(Run(trace), 0) << Err();
  EXPECT_THAT(ReadText(Path("out")), HasSubstr("name: \"A100-SXM4-40GB\""));
  EXPECT_EQ(Run(fmt::format("{} --against {}", trace, trace)), 0) << Err();
  EXPECT_THAT(Err(), HasSubstr("were also measured on the other GPU"));
}

TEST_F(CalibrateCommand, SaysWhatIsMissing) {
  std::ofstream(Path("ops.csv")) << "op,us\nlinear,3\n";
  EXPECT_EQ(Run(Path("ops.csv") + " --gpu L4"), 2);
  EXPECT_THAT(Err(), HasSubstr("error[E0805]"));
  EXPECT_EQ(Run(Path("none.csv") + " --gpu L4"), 3);
  std::ofstream(Path("ops.csv")) << "op,bytes,us\nmemory,1e8,300\n";
  EXPECT_EQ(Run(Path("ops.csv")), 2);
  EXPECT_THAT(Err(), HasSubstr("--gpu is needed"));
  EXPECT_EQ(Run(Path("ops.csv") + " --gpu L5"), 2);
  EXPECT_THAT(Err(), HasSubstr("error[E0801]"));
}

}  // namespace
}  // namespace daydream
