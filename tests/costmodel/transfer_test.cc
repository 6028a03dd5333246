#include "costmodel/transfer.h"

#include <cmath>

#include <gtest/gtest.h>

#include "costmodel/wave_scaling.h"

namespace daydream {
namespace {

const DeviceSpec& Gpu(std::string_view name) { return *FindDeviceSpec(name); }

// --- occupancy: values of NVIDIA's occupancy calculator, by hand

TEST(Occupancy, IsLimitedByWhateverRunsOutFirst) {
  const DeviceSpec& a100 = Gpu("A100-SXM4-40GB");
  const auto of = [&](const LaunchShape& launch) { return OccupancyOf(a100, launch); };
  Occupancy o = of({.blocks = 1e6, .threads_per_block = 256, .registers_per_thread = 32});
  EXPECT_EQ(o.blocks, 8);  // 2048 / 256
  EXPECT_EQ(o.limit, "threads");
  EXPECT_EQ(o.share, 1);
  // 128 registers x 32 = 4096 a warp: 16 of 65,536, two blocks of eight warps.
  o = of({.blocks = 1e6, .threads_per_block = 256, .registers_per_thread = 128});
  EXPECT_EQ(o.blocks, 2);
  EXPECT_EQ(o.limit, "registers");
  EXPECT_EQ(o.share, 0.25);
  // 164 kB, 48 + 1 of the system for each block.
  o = of({.blocks = 1e6, .threads_per_block = 128, .shared_memory_bytes = 48 << 10});
  EXPECT_EQ(o.blocks, 3);
  EXPECT_EQ(o.limit, "shared memory");
  EXPECT_EQ(of({.blocks = 1e6, .threads_per_block = 32}).limit, "blocks");
  o = of({.blocks = 108, .threads_per_block = 32});
  EXPECT_EQ(o.blocks, 1);
  EXPECT_EQ(o.limit, "grid");
  // A block that fits nowhere.
  EXPECT_EQ(of({.blocks = 1, .threads_per_block = 32, .shared_memory_bytes = 1 << 20}).blocks, 0);
}

TEST(Occupancy, WavesCountWholeGpus) {
  const LaunchShape launch{.blocks = 108 * 8, .threads_per_block = 256};
  EXPECT_EQ(WaveSize(Gpu("A100-SXM4-40GB"), launch), 108 * 8);
  EXPECT_EQ(WaveSize(Gpu("T4"), launch), 40 * 4);  // 1,024 threads a multiprocessor
}

// --- wave scaling

TEST(WaveScaling, OfAGpuAndItselfIsOne) {
  for (const DeviceSpec& device : DeviceSpecs()) {
    for (double blocks : {0.0, 1.0, 77.0, 1e6}) {
      for (std::optional<double> x : {std::optional<double>(), std::optional<double>(30.0)}) {
        EXPECT_NEAR(ScaleWaves(device, device, {.blocks = blocks, .threads_per_block = 128},
                               {.intensity = x})
                        .factor,
                    1, 1e-12)
            << device.name;
      }
    }
  }
}

TEST(WaveScaling, IsThePapersFormula) {
  DeviceSpec from = Gpu("P100-PCIE-16GB"), to = Gpu("V100-PCIE-32GB");
  from.measured_bandwidth_share = to.measured_bandwidth_share = 1;
  const double bandwidth = 732.0 / 900, clock = 1190.0 / 1230, waves = 56.0 / 80;
  // Intensity at half the ridge of the V100: g = 1 - 0.5 x 0.5.
  const double ridge = 14.13e12 / 900e9, g = 0.75;
  const LaunchShape many{.blocks = 1e6, .threads_per_block = 256};
  const WaveScaling s = ScaleWaves(from, to, many, {.intensity = ridge / 2, .count_units = false});
  EXPECT_FALSE(s.rounded);
  EXPECT_NEAR(s.gamma, g, 1e-12);
  EXPECT_NEAR(s.factor, std::pow(bandwidth, g) * std::pow(waves, 1 - g) * std::pow(clock, 1 - g),
              1e-12);
  // One block, counter-less: it has the bandwidth for itself on both.
  const WaveScaling one = ScaleWaves(from, to, {.blocks = 1, .threads_per_block = 256}, {});
  EXPECT_TRUE(one.rounded);
  EXPECT_NEAR(one.factor, bandwidth, 1e-12);
  // Without counters and with many blocks only bandwidth counts.
  EXPECT_NEAR(ScaleWaves(from, to, many, {}).factor, bandwidth, 1e-12);
}

TEST(WaveScaling, NeverMakesABetterGpuSlowerNorGainsMoreThanItsRates) {
  const DeviceSpec &h100 = Gpu("H100-SXM5-80GB"), &mi300 = Gpu("MI300X");
  const DeviceSpec& v100 = Gpu("V100-SXM2-32GB");
  const double bandwidth = v100.SustainedBandwidth() / h100.SustainedBandwidth();
  for (double blocks = 1; blocks < 6000; blocks += 7) {
    for (int64_t threads : {64, 256, 1024}) {
      const LaunchShape launch{.blocks = blocks, .threads_per_block = threads};
      EXPECT_LE(ScaleWaves(h100, mi300, launch, {}).factor, 1) << blocks << " of " << threads;
      EXPECT_GE(ScaleWaves(v100, h100, launch, {}).factor, 0.9 * bandwidth);
    }
  }
}

// --- transfer

TEST(SourceBias, IsTheTimeWeightedMedian) {
  SourceBias bias;
  EXPECT_EQ(bias.Of(OpFamily::kProduct), 0);
  bias.Add(OpFamily::kProduct, 100, 50);  // twice the model
  bias.Add(OpFamily::kProduct, 1000, 1000);
  bias.Add(OpFamily::kProduct, 10, 1000);
  bias.Add(OpFamily::kMemory, 10, 5);
  EXPECT_EQ(bias.Of(OpFamily::kProduct), 0);
  EXPECT_NEAR(bias.Of(OpFamily::kMemory), std::log(2), 1e-12);
}

TEST(Transfer, ToTheSameGpuChangesNothing) {
  const OpTime t = PredictOp(Gpu("T4"), WorkOfElements(1e8), DType::kFp32);
  const Transfer same = TransferOp(12345, t, t, 0.3, true, {});
  EXPECT_EQ(same.ns, 12345);
  EXPECT_EQ(same.how, Transfer::How::kSame);
  // The rule of ratios alone is neutral, too.
  EXPECT_NEAR(TransferOp(20 * t.ns, t, t, 0.3, false, {}).ns / (20 * t.ns), 1, 1e-12);
}

TEST(Transfer, CarriesTheOperationsOwnDeviationOnly) {
  const OpWork work = WorkOfProduct({1, 4096, 4096, 4096});
  const OpTime here = PredictOp(Gpu("V100-PCIE-32GB"), work, DType::kFp32);
  const OpTime there = PredictOp(Gpu("H100-SXM5-80GB"), work, DType::kFp32);
  // The session was 1.2 times slower than the model, and so was this product: nothing of its own.
  Transfer t = TransferOp(1.2 * here.ns, here, there, std::log(1.2), false, {});
  EXPECT_NEAR(t.ns / there.ns, 1, 1e-12);
  t = TransferOp(1.2 * here.ns, here, there, std::log(1.2), false, {.keep_bias = true});
  EXPECT_NEAR(t.ns / there.ns, 1.2, 1e-12);
  t = TransferOp(1.44 * here.ns, here, there, std::log(1.2), false, {});
  EXPECT_NEAR(t.ns / there.ns, std::sqrt(1.2), 1e-12);
  // Four times the model: something else ran than a product of this size.
  t = TransferOp(4 * here.ns, here, there, 0, false, {});
  EXPECT_EQ(t.how, Transfer::How::kRatio);
  EXPECT_NEAR(t.ns / there.ns, 4, 1e-12);
}

// Between GPUs whose models agree the measurement stands, whatever the family shows.
TEST(Transfer, TendsToTheMeasurementAsTheModelsAgree) {
  for (const OpWork& work : {WorkOfElements(1e9), WorkOfProduct({1, 4096, 4096, 4096})}) {
    const OpTime here = PredictOp(Gpu("A100-PCIE-40GB"), work, DType::kFp32);
    for (double deviation : {1.05, 1.5, 2.8, 4.0}) {
      const double measured = deviation * here.ns;
      double last = 1;
      for (double faster : {0.5, 0.1, 0.01, 0.0}) {
        OpTime there = here;
        there.ns /= 1 + faster;
        there.bound_ns = 0;
        const double bias = std::log(deviation);
        const double change =
            std::abs(std::log(TransferOp(measured, here, there, bias, false, {}).ns / measured));
        EXPECT_LE(change, 3 * std::log1p(faster) + 1e-12) << deviation << ", " << faster;
        EXPECT_LE(change, last + (faster == 0.5));
        last = change;
      }
    }
  }
}

// 2.7 times slower than the model is no clock of the memory.
TEST(Transfer, CarriesWhatTheModelDoesNotKnowOfMemoryBoundWork) {
  const OpWork work = WorkOfElements(1e9);
  const OpTime here = PredictOp(Gpu("A100-PCIE-40GB"), work, DType::kFp32);
  const OpTime there = PredictOp(Gpu("V100-SXM2-32GB"), work, DType::kFp32);
  const Transfer t = TransferOp(2.7 * here.ns, here, there, std::log(2.7), false, {});
  EXPECT_NEAR(t.ns / there.ns, 2.7 / 1.1, 1e-9);
}

TEST(Transfer, IsNeverBelowTheRooflineAndKeepsShortKernels) {
  const OpWork work = WorkOfProduct({1, 8192, 8192, 8192});
  const OpTime here = PredictOp(Gpu("T4"), work, DType::kFp32);
  const OpTime there = PredictOp(Gpu("H100-SXM5-80GB"), work, DType::kFp32);
  const Transfer fast = TransferOp(here.ns / 1000, here, there, 0, false, {});
  EXPECT_TRUE(fast.bounded);
  EXPECT_EQ(fast.ns, there.bound_ns);
  const OpWork tiny = WorkOfElements(100);
  const Transfer t =
      TransferOp(2500, PredictOp(Gpu("T4"), tiny, DType::kFp32),
                 PredictOp(Gpu("H100-SXM5-80GB"), tiny, DType::kFp32), std::log(1.25), false, {});
  EXPECT_EQ(t.how, Transfer::How::kShort);
  EXPECT_EQ(t.ns, 2500);
}

TEST(ClassRatio, IsThatOfSustainedRates) {
  const DeviceSpec &v100 = Gpu("V100-SXM2-32GB"), &a100 = Gpu("A100-SXM4-80GB");
  EXPECT_NEAR(ClassRatio(v100, a100, OpFamily::kMemory, DType::kFp32, DType::kFp32), 900.0 / 2039,
              1e-12);
  EXPECT_NEAR(ClassRatio(v100, a100, OpFamily::kMemory, DType::kFp32, DType::kFp16), 450.0 / 2039,
              1e-12);
  EXPECT_NEAR(ClassRatio(v100, a100, OpFamily::kProduct, DType::kFp16, DType::kFp16), 125.0 / 312,
              1e-12);
  EXPECT_EQ(ClassRatio(v100, v100, OpFamily::kProduct, DType::kFp32, DType::kFp32), 1);
}

}  // namespace
}  // namespace daydream
