#include "transforms/retime.h"

#include <gtest/gtest.h>

#include "graph/text.h"

namespace daydream {
namespace {

const DeviceSpec& A100() { return *FindDeviceSpec("A100-SXM4-40GB"); }
const DeviceSpec& V100() { return *FindDeviceSpec("V100-SXM2-32GB"); }

OpWork Add(int64_t elements) {
  return *WorkOf("aten::add", std::vector<Dims>{{elements}, {elements}}, DType::kFp32);
}
OpWork Product(int64_t rows) {
  return *WorkOf("aten::mm", std::vector<Dims>{{rows, 4096}, {4096, 4096}}, DType::kFp32);
}

TEST(Retime, EqualSettingsGiveTheMeasuredTimeBack) {
  const OpWork work = Add(1 << 20);
  const KernelSetting same{.device = &A100(), .work = &work, .floor = Duration::Us(2)};
  EXPECT_EQ(Retime(Duration::Ns(12'345), KernelClass::kElementwise, nullptr, same, same).time.ns,
            12'345);
}

TEST(Retime, LargeMemoryBoundKernelsFollowTheirBytes) {
  // 402 and 1611 MB: neither fits in the cache. 302 us, of which 2 are the floor: 2 + 4 * 300.
  const OpWork before = Add(1 << 25), after = Add(1 << 27);
  const Retimed r = Retime(Duration::Us(302), KernelClass::kElementwise, nullptr,
                           {.device = &A100(), .work = &before, .floor = Duration::Us(2)},
                           {.device = &A100(), .work = &after, .floor = Duration::Us(2)});
  EXPECT_EQ(r.by, RetimedBy::kBytes);
  EXPECT_NEAR(r.time.us(), 1202, 1);
}

TEST(Retime, KernelsThatTakeNoLongerThanAnyKernelStayUntilTheirWorkShows) {
  const OpWork before = Add(1 << 10), after = Add(1 << 12), large = Add(1 << 27);
  const KernelSetting from{.device = &A100(), .work = &before, .floor = Duration::Us(5)};
  KernelSetting to = from;
  to.work = &after;
  const Retimed r = Retime(Duration::Us(5), KernelClass::kElementwise, nullptr, from, to);
  EXPECT_EQ(r.by, RetimedBy::kFloor);
  EXPECT_NEAR(r.time.us(), 5, 0.1);
  to.work = &large;
  EXPECT_NEAR(Retime(Duration::Us(5), KernelClass::kElementwise, nullptr, from, to).time.us(),
              5 + MemoryNs(A100(), large.Bytes()) / 1e3, 1);
}

TEST(Retime, ProductsFollowTheModelOfTheirShapes) {
  const OpWork before = Product(1024), after = Product(4096);
  const Retimed r =
      Retime(Duration::Us(1000), KernelClass::kGemm, nullptr, {.device = &V100(), .work = &before},
             {.device = &V100(), .work = &after});
  const double model = GemmNs(V100(), after.products[0], DType::kFp32, false) /
                       GemmNs(V100(), before.products[0], DType::kFp32, false);
  EXPECT_EQ(r.by, RetimedBy::kProducts);
  EXPECT_NEAR(r.time.us(), 1000 * model, 1000 * model * 0.05);
}

TEST(Retime, WithoutShapesBlocksThatFitSideBySideTakeNoLonger) {
  // 256 threads: 8 blocks fit on each of 108 multiprocessors, 864 in all.
  KernelDetail launch{.grid = {216, 1, 1}, .block = {256, 1, 1}};
  const KernelSetting from{.device = &A100(), .floor = Duration::Us(2)};
  KernelSetting to = from;
  to.growth = 4;  // 864 blocks
  EXPECT_EQ(BlocksAtOnce(A100(), launch), 864);
  EXPECT_EQ(Retime(Duration::Us(12), KernelClass::kReduce, &launch, from, to).time,
            Duration::Us(12));
  to.growth = 8;  // two waves: 2 + 2 * 10
  EXPECT_EQ(Retime(Duration::Us(12), KernelClass::kReduce, &launch, from, to).time,
            Duration::Us(22));
}

TEST(Retime, RegistersAndSharedMemoryLimitHowManyBlocksFit) {
  EXPECT_EQ(BlocksAtOnce(A100(), {.block = {256, 1, 1}}), 0);  // no grid
  EXPECT_EQ(
      BlocksAtOnce(A100(), {.grid = {1, 1, 1}, .block = {256, 1, 1}, .registers_per_thread = 128}),
      2 * 108);
  EXPECT_EQ(BlocksAtOnce(A100(),
                         {.grid = {1, 1, 1}, .block = {32, 1, 1}, .shared_memory_bytes = 80 << 10}),
            2 * 108);
}

TEST(Retime, AnotherGpuWithoutShapesGoesByRatesOfTheClass) {
  const KernelSetting from{.device = &V100()}, to{.device = &A100()};
  const Retimed memory = Retime(Duration::Us(100), KernelClass::kNorm, nullptr, from, to);
  EXPECT_EQ(memory.by, RetimedBy::kRates);
  EXPECT_NEAR(memory.time.us(), 100 * V100().SustainedBandwidth() / A100().SustainedBandwidth(), 1);
}

TEST(Retime, OnAnotherGpuAKernelKeepsPartOfItsDeviation) {
  const OpWork work = Product(4096);
  const KernelSetting from{.device = &V100(), .work = &work}, to{.device = &A100(), .work = &work};
  const double there = FormatNs(A100(), work, DType::kFp32),
               here = FormatNs(V100(), work, DType::kFp32);
  // Twice as slow as the model says, as is usual in its trace: nothing of that is its own.
  const Retimed r = Retime(Duration::FromDouble(2 * here), KernelClass::kGemm, nullptr, from, to,
                           {.own = 0.5, .typical = 2});
  EXPECT_NEAR(static_cast<double>(r.time.ns), there, 2);
}

}  // namespace
}  // namespace daydream
