#include "costmodel/sm_share.h"

#include <random>

#include <gtest/gtest.h>

#include "report/predict/what_if.h"
#include "report/questions/colocation.h"
#include "report/questions/share_curve.h"
#include "simulator/simulate.h"
#include "tests/real_traces.h"
#include "trace/importer.h"

namespace daydream {
namespace {

const DeviceSpec& V100() { return *FindDeviceSpec("V100-SXM2-32GB"); }

ShareDemand Arithmetic(double blocks, int64_t threads) {
  return {.launch = {.blocks = blocks, .threads_per_block = threads}, .arithmetic = 1, .memory = 0};
}

TEST(SmShare, TheWholeGpuIsExactlyAsMeasured) {
  for (double blocks : {0.0, 1.0, 79.0, 80.0, 81.0, 12345.0}) {
    for (double memory : {0.0, 0.5, 2.0}) {
      ShareDemand demand = Arithmetic(blocks, 256);
      demand.memory = memory;
      EXPECT_EQ(ShareSlowdown(V100(), demand, 1, {}), 1) << blocks << " blocks";
    }
  }
}

TEST(SmShare, MoreIsNeverSlower) {
  std::mt19937 random(20240229);
  std::uniform_int_distribution<int> blocks(0, 3000), warps(1, 32), registers(0, 255);
  std::uniform_real_distribution<double> part(0, 1);
  for (int i = 0; i < 500; ++i) {
    const ShareDemand demand{.launch = {.blocks = static_cast<double>(blocks(random)),
                                        .threads_per_block = 32 * warps(random),
                                        .registers_per_thread = registers(random)},
                             .arithmetic = part(random),
                             .memory = part(random)};
    const ShareRules rules{.saturation = 0.01 + 0.99 * part(random)};
    double before = std::numeric_limits<double>::infinity();
    for (int n = 1; n <= 80; ++n) {
      const double now = ShareSlowdown(V100(), demand, n / 80.0, rules);
      ASSERT_LE(now, before) << "case " << i << ", " << n << " multiprocessors";
      before = now;
    }
    EXPECT_EQ(before, 1);
  }
}

TEST(SmShare, BlocksThatFitOnHalfOfTheGpuNeedNoMore) {
  EXPECT_DOUBLE_EQ(KneeOf(V100(), Arithmetic(40, 512), 0, {}), 0.5);
  // Two blocks of 8 warps fill a multiprocessor's pipelines no more than one of 16.
  EXPECT_DOUBLE_EQ(KneeOf(V100(), Arithmetic(40, 256), 0, {}), 0.25);
  EXPECT_DOUBLE_EQ(ShareSlowdown(V100(), Arithmetic(40, 512), 0.25, {}), 2);
  EXPECT_DOUBLE_EQ(PartInUse(V100(), Arithmetic(40, 512), {}), 0.5);
}

TEST(SmShare, AGridOfManyBlocksDividesEvenly) {
  EXPECT_NEAR(ShareSlowdown(V100(), Arithmetic(80'000, 512), 0.5, {}), 2, 0.01);
  EXPECT_NEAR(PartInUse(V100(), Arithmetic(80'000, 512), {}), 1, 0.01);
}

TEST(SmShare, MemoryIsSaturatedBySomeAndSlicedByMig) {
  ShareDemand copy = Arithmetic(80'000, 512);
  copy.arithmetic = 0;
  copy.memory = 1;
  EXPECT_DOUBLE_EQ(ShareSlowdown(V100(), copy, 0.5, {.saturation = 0.5}), 1);
  EXPECT_DOUBLE_EQ(ShareSlowdown(V100(), copy, 0.25, {.saturation = 0.5}), 2);
  EXPECT_DOUBLE_EQ(ShareSlowdown(V100(), copy, 1, {.saturation = 0.5, .bandwidth = 0.25}), 4);
  EXPECT_DOUBLE_EQ(PartInUse(V100(), copy, {}), 1);
}

class RealShare : public testing::Test {
 protected:
  static BuiltGraph Load(const std::string& name) {
    auto trace = ImportFile((RealTraceFolder() / name).string());
    EXPECT_TRUE(trace.ok()) << trace.status();
    auto built = BuildGraph(*trace);
    EXPECT_TRUE(built.ok()) << built.status();
    return *std::move(built);
  }
  void SetUp() override {
    if (RealTraces().empty()) GTEST_SKIP() << "no real traces beside the repository";
  }
};

constexpr const char* kGpuBound = "gpus/resnet50-bs32.v100-sxm2.json.gz";
constexpr const char* kLaunchBound = "gpus/bert-small.h100.json.gz";

TEST_F(RealShare, TheCurveFallsToTheMeasuredStepAndHasAKnee) {
  const BuiltGraph built = Load(kGpuBound);
  auto curve = MakeShareCurve(built.graph);
  ASSERT_TRUE(curve.ok()) << curve.status();
  auto timeline = Simulate(built.graph);
  ASSERT_TRUE(timeline.ok());
  EXPECT_EQ(curve->points.back().step, StepTime(built.graph, *timeline));
  for (size_t i = 1; i < curve->points.size(); ++i) {
    EXPECT_LE(curve->points[i].kernels, curve->points[i - 1].kernels);
    EXPECT_LE(curve->points[i].step, curve->points[i - 1].step);
  }
  EXPECT_GT(curve->points[0].kernels.seconds(), 4 * curve->points.back().kernels.seconds());
  EXPECT_GT(curve->step_knee, 0.5);
  EXPECT_LE(curve->step_knee, 1);
}

TEST_F(RealShare, ALaunchBoundStepNeedsLittleOfTheGpu) {
  const BuiltGraph built = Load(kLaunchBound);
  auto curve = MakeShareCurve(built.graph);
  ASSERT_TRUE(curve.ok()) << curve.status();
  EXPECT_LT(curve->step_knee, 0.3);
}

TEST_F(RealShare, TwoGpuBoundProgramsTakeTwiceAsLong) {
  const BuiltGraph built = Load(kGpuBound);
  for (GpuPolicy policy : {GpuPolicy::kTime, GpuPolicy::kSpace}) {
    auto both = PredictColocation(built.graph, built.graph, policy, {});
    ASSERT_TRUE(both.ok()) << both.status();
    for (const ColocatedProgram& p : both->programs) {
      if (policy == GpuPolicy::kTime) {
        EXPECT_GE(p.slowdown(), 1.9);
      }
      EXPECT_GE(p.slowdown(), 1.5);
      EXPECT_LE(p.slowdown(), 2.1);
    }
  }
}

TEST_F(RealShare, TwoLaunchBoundProgramsHardlyNotice) {
  const BuiltGraph built = Load(kLaunchBound);
  auto both = PredictColocation(built.graph, built.graph, GpuPolicy::kTime, {});
  ASSERT_TRUE(both.ok()) << both.status();
  for (const ColocatedProgram& p : both->programs) EXPECT_LE(p.slowdown(), 1.15);
}

TEST_F(RealShare, ProgramsOfDifferentGpusAreRefused) {
  auto both =
      PredictColocation(Load(kGpuBound).graph, Load(kLaunchBound).graph, GpuPolicy::kTime, {});
  ASSERT_FALSE(both.ok());
  EXPECT_EQ(DiagnosticOf(both.status()).code, "E0812");
}

}  // namespace
}  // namespace daydream
