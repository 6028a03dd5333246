// Surfaces of matrix products on tensor cores (costmodel/surface.h).
#include "costmodel/surface.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "costmodel/attention_surface.h"
#include "costmodel/op_time.h"
#include "costmodel/roofline.h"
#include "costmodel/surface_texts.h"
#include "costmodel/transfer.h"

namespace daydream {
namespace {

const DeviceSpec& Gpu(std::string_view name) {
  const DeviceSpec* spec = FindDeviceSpec(name);
  EXPECT_NE(spec, nullptr) << name;
  return *spec;
}

double Us(std::string_view gpu, DType format, const GemmShape& shape) {
  const Surface* surface = SurfaceOf(Gpu(gpu), format);
  EXPECT_NE(surface, nullptr) << gpu;
  return TimeOnSurface(*surface, Gpu(gpu), format, shape).ns * 1e-3;
}

// 2 * 4096^3 FLOPs: 440 us at the data sheet's 312 TFLOPS of an A100, where two engines took 539
// and 555 us; 139 us on an H100.
TEST(Surface, LargeProductsRunNearTheDataSheet) {
  const GemmShape cube{.m = 4096, .n = 4096, .k = 4096};
  const double a100 = Us("A100-SXM4-80GB", DType::kBf16, cube);
  const double h100 = Us("H100-SXM5-80GB", DType::kBf16, cube);
  EXPECT_GT(a100, 440);
  EXPECT_LT(a100, 440 / 0.78);
  EXPECT_GT(h100, 139);
  EXPECT_LT(h100, 139 / 0.65);
}

// Long attention waits for arithmetic, which kernels do for 96 elements of a head where it has 72.
TEST(Surface, AttentionPadsHeads) {
  SelfAttention shape{.batch = 8, .length = 8192, .heads = 16, .kv_heads = 16, .width = 96};
  for (std::string_view gpu : {"H100-SXM5-80GB", "L40S", "B200-SXM-180GB"}) {
    shape.width = 96;
    const double full = TimeOfAttention(Gpu(gpu), shape).ns;
    shape.width = 72;
    EXPECT_NEAR(TimeOfAttention(Gpu(gpu), shape).ns / full, 1, 0.03) << gpu;
  }
}

// 96 heads that share their keys are 96 rows of one block, not 96 blocks (an L40S took 13.9 us).
TEST(Surface, AttentionOfSingleQueriesPacksHeadsThatShareTheirKeys) {
  const SelfAttention shape{
      .batch = 128, .length = 1, .heads = 96, .kv_heads = 1, .width = 128, .causal = true};
  EXPECT_NEAR(TimeOfAttention(Gpu("L40S"), shape).ns * 1e-3, 13.9, 2);
}

// One row times a matrix of 16384 x 16384: 537 MB that cannot be in any cache.
TEST(Surface, ARowTimesAMatrixTakesWhatReadingTheMatrixTakes) {
  const GemmShape row{.m = 1, .n = 16384, .k = 16384};
  const double bytes = 2.0 * 16384 * 16384;
  for (std::string_view gpu : {"A100-SXM4-80GB", "H100-SXM5-80GB", "L40S", "B200-SXM-180GB"}) {
    const double at_sheet = bytes / (Gpu(gpu).memory_gb_per_s * 1e3);
    EXPECT_GT(Us(gpu, DType::kBf16, row), at_sheet) << gpu;
    EXPECT_LT(Us(gpu, DType::kBf16, row), at_sheet / 0.7) << gpu;
  }
}

// An H200 is an H100 with 1.43 times its memory bandwidth: the same surface, another data sheet.
TEST(Surface, AnotherCardOfAGenerationDiffersByItsDataSheet) {
  EXPECT_EQ(SurfaceOf(Gpu("H200-SXM5-141GB"), DType::kBf16),
            SurfaceOf(Gpu("H100-SXM5-80GB"), DType::kBf16));
  const GemmShape row{.m = 1, .n = 16384, .k = 16384}, cube{.m = 8192, .n = 8192, .k = 8192};
  EXPECT_NEAR(Us("H100-SXM5-80GB", DType::kBf16, row) / Us("H200-SXM5-141GB", DType::kBf16, row),
              4800.0 / 3352, 0.05);
  EXPECT_NEAR(Us("H100-SXM5-80GB", DType::kBf16, cube) / Us("H200-SXM5-141GB", DType::kBf16, cube),
              1, 0.03);
}

TEST(Surface, MoreWorkDoesNotTakeMuchLess) {
  // The correction is fitted, not forced: it may dip by some percent, never by more.
  for (std::string_view gpu : {"A100-SXM4-80GB", "H100-SXM5-80GB", "L40S", "B200-SXM-180GB"}) {
    for (int64_t n : {256, 1024, 4096, 16384}) {
      for (int64_t k : {256, 1024, 4096, 16384}) {
        for (int64_t m = 1; m <= 16384; m *= 2) {
          const double now = Us(gpu, DType::kBf16, {.m = m, .n = n, .k = k});
          EXPECT_GT(Us(gpu, DType::kBf16, {.m = 2 * m, .n = n, .k = k}), 0.8 * now)
              << gpu << ' ' << m << 'x' << n << 'x' << k;
          EXPECT_GT(Us(gpu, DType::kBf16, {.m = m, .n = n, .k = 2 * k}), 0.8 * now)
              << gpu << ' ' << m << 'x' << n << 'x' << k;
        }
      }
    }
  }
}

TEST(Surface, NobodyKnowsOneForWhatHasNoTensorCores) {
  EXPECT_EQ(SurfaceOf(Gpu("V100-SXM2-32GB"), DType::kFp16), nullptr);
  EXPECT_EQ(SurfaceOf(Gpu("A100-SXM4-80GB"), DType::kFp8), nullptr);
  EXPECT_EQ(SurfaceOf(Gpu("A100-SXM4-80GB"), DType::kFp32), nullptr);
  EXPECT_EQ(SurfaceOf(Gpu("MI300X"), DType::kBf16), nullptr);
  EXPECT_EQ(SurfaceOf(Gpu("H100-SXM5-80GB"), DType::kNvfp4), nullptr);
}

// A measured share moves the surface, it does not take its place: the share of long products that
// the surface has changes nothing, nine tenths of it make a large product longer by a tenth or so
// and leave one that waits for memory as it is.
TEST(Surface, WhatAUserMeasuredMovesTheRate) {
  const DeviceSpec& known = Gpu("H100-SXM5-80GB");
  const Surface& surface = *SurfaceOf(known, DType::kBf16);
  const double share = LongShareOf(surface, known);
  const auto us = [&](double of_peak, const GemmShape& shape) {
    DeviceSpec mine = known;
    mine.measured_tensor_share = of_peak;
    EXPECT_EQ(SurfaceOf(mine, DType::kBf16), &surface);
    return TimeOnSurface(surface, mine, DType::kBf16, shape).ns * 1e-3;
  };
  const GemmShape cube{.m = 8192, .n = 8192, .k = 8192}, row{.m = 1, .n = 16384, .k = 16384};
  EXPECT_NEAR(us(share, cube) / Us("H100-SXM5-80GB", DType::kBf16, cube), 1, 1e-9);
  EXPECT_NEAR(us(0.9 * share, cube) / us(share, cube), 1.1, 0.02);
  EXPECT_NEAR(us(0.9 * share, row) / us(share, row), 1, 0.01);
}

TEST(Surface, AGenerationThatNobodyMeasuredHasAWiderInterval) {
  const Surface* known = SurfaceOf(Gpu("H100-SXM5-80GB"), DType::kBf16);
  const Surface* unknown = SurfaceOf(Gpu("RTX3090"), DType::kBf16);
  ASSERT_NE(unknown, nullptr);
  EXPECT_TRUE(known->measured);
  EXPECT_FALSE(unknown->measured);
  for (size_t i = 0; i < Surface::kLengths; ++i) {
    EXPECT_LT(known->low[i], 0);
    EXPECT_GT(known->high[i], 0);
    EXPECT_LT(unknown->low[i], 0);
    EXPECT_GT(unknown->high[i], 0);
  }
  EXPECT_GT(unknown->high[4] - unknown->low[4], known->high[4] - known->low[4]);
}

TEST(Surface, NarrowFormatsAreFasterWhereArithmeticCounts) {
  const GemmShape cube{.m = 8192, .n = 8192, .k = 8192};
  EXPECT_GT(Us("H100-SXM5-80GB", DType::kBf16, cube),
            1.3 * Us("H100-SXM5-80GB", DType::kFp8, cube));
  EXPECT_GT(Us("B200-SXM-180GB", DType::kFp8, cube),
            1.3 * Us("B200-SXM-180GB", DType::kNvfp4, cube));
}

// 8192^3 on an H100, a long step: 1.3 times as long as the burst is likely, half as long as the
// fastest burst is not. A product of 3 us loses the launch and more in a CUDA graph.
TEST(Surface, ARangeHoldsKernelsAloneAndLongSteps) {
  const DeviceSpec& h100 = Gpu("H100-SXM5-80GB");
  const Surface& surface = *SurfaceOf(h100, DType::kBf16);
  const auto both = [&](const GemmShape& shape) {
    return std::pair{TimeOnSurface(surface, h100, DType::kBf16, shape),
                     RangeOnSurface(surface, h100, DType::kBf16, shape)};
  };
  const auto [cube, of_cube] = both({.m = 8192, .n = 8192, .k = 8192});
  EXPECT_GT(of_cube.high_ns, 1.3 * cube.ns);
  EXPECT_LT(of_cube.high_ns, 1.5 * cube.ns);
  EXPECT_NEAR(of_cube.low_ns / cube.low_ns, 1, 0.05);
  const auto [small, of_small] = both({.m = 256, .n = 512, .k = 512});
  EXPECT_LT(of_small.low_ns, small.ns - 0.9 * small.launch_ns);
  EXPECT_LT(of_small.low_ns, small.low_ns);
  // 32 MiB of weights are read from the L2 cache where the same product ran before.
  const auto [row, of_row] = both({.m = 64, .n = 4096, .k = 4096});
  EXPECT_LT(of_row.low_ns, 0.9 * row.low_ns);
}

// 35 bytes a clock and processor were measured on A100 and H100, 15 on an L40: products, which also
// write and wait, get a part of that, and more than from memory.
TEST(Surface, TheL2CacheIsReadAtAShareOfWhatItsReadersReach) {
  for (std::string_view gpu : {"A100-SXM4-80GB", "H100-SXM5-80GB", "L40S"}) {
    const DeviceSpec& spec = Gpu(gpu);
    const SurfaceConstants& c = SurfaceOf(spec, DType::kBf16)->constants;
    const double bytes = gpu == "L40S" ? 15 : 35, memory = spec.memory_gb_per_s * 1e3;
    EXPECT_LT(c.l2_speed_share, 1) << gpu;
    EXPECT_GT(c.l2_speed_share * bytes * spec.multiprocessors * spec.boost_clock_mhz,
              c.bandwidth_share * memory)
        << gpu;
  }
}

// A card of the same generation with a faster clock launches sooner: an L4 is not an L40S.
TEST(Surface, LaunchesCountInClocks) {
  DeviceSpec faster = Gpu("L40S");
  const Surface& surface = *SurfaceOf(faster, DType::kBf16);
  const GemmShape small{.m = 64, .n = 512, .k = 512};
  const double launch_ns = TimeOnSurface(surface, faster, DType::kBf16, small).launch_ns;
  faster.boost_clock_mhz *= 1.25;
  EXPECT_NEAR(TimeOnSurface(surface, faster, DType::kBf16, small).launch_ns, launch_ns / 1.25, 1);
}

TEST(Surface, AMeasuredCardSaysItselfWhatItSustains) {
  DeviceSpec mine = Gpu("H100-SXM5-80GB");
  const Surface& surface = *SurfaceOf(mine, DType::kBf16);
  const GemmShape cube{.m = 8192, .n = 8192, .k = 8192};
  const double before = RangeOnSurface(surface, mine, DType::kBf16, cube).high_ns;
  mine.measured_tensor_share = LongShareOf(surface, mine);
  EXPECT_LT(RangeOnSurface(surface, mine, DType::kBf16, cube).high_ns, 0.9 * before);
}

// No row is in TF32, and none in fp8 without the cast of A: surface of bf16, interval of the
// unseen.
TEST(Surface, FormatsWithoutRowsBorrowThoseOfBf16) {
  const DeviceSpec& h100 = Gpu("H100-SXM5-80GB");
  const Surface& bf16 = *SurfaceOf(h100, DType::kBf16);
  for (DType format : {DType::kTf32, DType::kFp8}) {
    const Surface& lent = *SurfaceOf(h100, format);
    EXPECT_EQ(lent.format, DType::kBf16);
    EXPECT_EQ(lent.correction, bf16.correction);
    EXPECT_GT(lent.high[3], 1.5 * bf16.high[3]);
  }
  EXPECT_EQ(SurfaceOf(h100, DType::kFp8, /*with_cast=*/true)->format, DType::kFp8);
  const GemmShape shape{.m = 1024, .n = 1024, .k = 1024};
  EXPECT_LT(Us("H100-SXM5-80GB", DType::kFp8, shape), Us("H100-SXM5-80GB", DType::kBf16, shape));
}

// PyTorch calls FlashAttention-2, which reaches 0.35 of the peak of Hopper.
TEST(Surface, AttentionMayBeTheOlderKernel) {
  const SelfAttention shape{
      .batch = 1, .length = 4096, .heads = 32, .kv_heads = 32, .width = 128, .causal = true};
  const DeviceSpec& h100 = Gpu("H100-SXM5-80GB");
  const AttentionTime time = TimeOfAttention(h100, shape);
  EXPECT_GT(time.high_ns, shape.Flops() / (0.35 * h100.bf16_tflops * 1e3));
  EXPECT_LT(time.low_ns, time.ns - time.launch_ns * 0.5);
}

// 1065 of 2250 TFLOPS: kernels of Blackwell are no faster than its engines' best, whatever the
// peaks are. Its cards for workstations, and other vendors' GPUs, are not known.
TEST(Surface, AttentionOfANewGenerationReachesWhatItsBestKernelsDo) {
  EXPECT_EQ(AttentionShare(Gpu("A100-SXM4-80GB")), 0.62);
  EXPECT_NEAR(AttentionShare(Gpu("B200-SXM-180GB")), 0.47, 0.01);
  EXPECT_NEAR(AttentionShare(Gpu("B300-SXM-288GB")), 0.47, 0.01);
  EXPECT_EQ(AttentionShare(Gpu("RTX5090")), 0);
  EXPECT_EQ(AttentionShare(Gpu("MI300X")), 0);
}

// Only the B200 was measured: its neighbours have its constants and a wider interval.
TEST(Surface, Nvfp4IsKnownWhereThereAreCoresForIt) {
  const Surface* known = SurfaceOf(Gpu("B200-SXM-180GB"), DType::kNvfp4);
  ASSERT_NE(known, nullptr);
  EXPECT_TRUE(known->measured);
  for (std::string_view gpu : {"B300-SXM-288GB", "RTX5090"}) {
    const Surface* other = SurfaceOf(Gpu(gpu), DType::kNvfp4);
    ASSERT_NE(other, nullptr) << gpu;
    EXPECT_FALSE(other->measured) << gpu;
    EXPECT_GT(other->high[4] - other->low[4], known->high[4] - known->low[4]) << gpu;
  }
}

// Hostile sizes: no number may become what is not one.
TEST(Surface, AnySizesHaveATime) {
  for (int64_t size : {int64_t{1}, int64_t{7}, int64_t{1} << 40, INT64_MAX}) {
    const GemmShape shape{.batch = 3, .m = size, .n = size, .k = size};
    const Surface* surface = SurfaceOf(Gpu("H100-SXM5-80GB"), DType::kBf16);
    const SurfaceTime time = TimeOnSurface(*surface, Gpu("H100-SXM5-80GB"), DType::kBf16, shape);
    EXPECT_TRUE(std::isfinite(time.ns) && time.ns > 0) << size;
  }
  const Surface* surface = SurfaceOf(Gpu("H100-SXM5-80GB"), DType::kBf16);
  EXPECT_EQ(
      TimeOnSurface(*surface, Gpu("H100-SXM5-80GB"), DType::kBf16, {.m = 0, .n = 1, .k = 1}).ns, 0);
}

// Measured on an H200: 30522 columns in bf16 796 us, 30528 would be some 280; rows that fit 0.
TEST(Surface, ProductsWhoseRowsDoNotFitTakeLonger) {
  const DeviceSpec& h200 = Gpu("H200-SXM5-141GB");
  const auto us = [&](int64_t n, int64_t k, DType format) {
    return UnalignedNs(h200, format, {.m = 4096, .n = n, .k = k}) * 1e-3;
  };
  EXPECT_EQ(us(30528, 768, DType::kBf16), 0);
  EXPECT_NEAR(us(30522, 768, DType::kBf16), 796, 40);
  EXPECT_NEAR(us(30522, 768, DType::kTf32), 1469, 60);
  EXPECT_NEAR(us(50257, 1024, DType::kBf16), 4367, 220);
  EXPECT_EQ(us(768, 30522, DType::kBf16), us(30522, 768, DType::kBf16));
  EXPECT_EQ(UnalignedNs(Gpu("A100-SXM4-80GB"), DType::kBf16, {.m = 64, .n = 63, .k = 64}), 0);
}

// amp: such a product is faster on tensor cores all the same (fp32 3747 us, bf16 796).
TEST(Surface, TensorCoresHelpProductsWhoseRowsDoNotFit) {
  const OpWork head = WorkOfProduct({.m = 4096, .n = 30522, .k = 768});
  const double bf16 =
      InFormatNs(Gpu("H200-SXM5-141GB"), head, DType::kFp32, DType::kBf16, 3747e3, 0.5);
  EXPECT_NEAR(bf16 * 1e-3, 796, 80);
}

TEST(Surface, TablesStaySmall) {
  size_t bytes = 0;
  for (const SurfaceText& text : SurfaceTexts()) bytes += text.text.size();
  EXPECT_LE(bytes, 300'000u);
  EXPECT_GE(SurfaceTexts().size(), 8u);
}

// A product that ran 20 % slower than the surface of its GPU says, as all of its session did, is
// 20 % slower on the other one, too.
TEST(Surface, ASustainedStepStaysOne) {
  const OpWork work = WorkOfProduct({.m = 4096, .n = 4096, .k = 4096});
  const OpTime here = PredictOp(Gpu("A100-SXM4-80GB"), work, DType::kBf16);
  const OpTime there = PredictOp(Gpu("H100-SXM5-80GB"), work, DType::kBf16);
  ASSERT_EQ(here.method, OpTime::Method::kSurface);
  const Transfer moved =
      TransferOp(1.2 * here.ns, here, there, std::log(1.2), false, TransferRules{});
  EXPECT_EQ(moved.how, Transfer::How::kSurfaces);
  EXPECT_NEAR(moved.ns / there.ns, 1.2, 1e-9);
  // Of 180 us: what this kernel alone deviates by stays here.
  const Transfer alone = TransferOp(1.2 * here.ns, here, there, 0, false, TransferRules{});
  EXPECT_NEAR(alone.ns / there.ns, 1, 0.01);
}

// Slower than the surface is an odd choice of this GPU's library, faster a good one of all.
TEST(Surface, OfItsOwnDeviationAFastKernelKeepsMoreAndSoDoesALongOne) {
  for (const auto& [size, slow, fast] : {std::tuple{2048, 0.0, 0.2}, std::tuple{16384, 0.4, 0.6}}) {
    const OpWork work = WorkOfProduct({.m = size, .n = size, .k = size});
    const OpTime here = PredictOp(Gpu("A100-SXM4-80GB"), work, DType::kBf16);
    const OpTime there = PredictOp(Gpu("H100-SXM5-80GB"), work, DType::kBf16);
    const auto kept = [&](double deviation) {
      const Transfer moved = TransferOp(here.ns * std::exp(deviation), here, there, 0, false, {});
      return std::log(moved.ns / there.ns) / deviation;
    };
    EXPECT_NEAR(kept(0.1), slow, 1e-9) << size;
    EXPECT_NEAR(kept(-0.1), fast, 1e-9) << size;
  }
}

}  // namespace
}  // namespace daydream
