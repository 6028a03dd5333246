#include "transforms/edits/retime.h"

#include <gtest/gtest.h>

#include "costmodel/op_time.h"

namespace daydream {
namespace {

constexpr Duration kFloor = Duration::Us(2);

const DeviceSpec& A100() { return *FindDeviceSpec("A100-SXM4-40GB"); }

OpWork Add(int64_t elements) {
  return *WorkOf("aten::add", std::vector<Dims>{{elements}, {elements}}, DType::kFp32);
}
OpWork Product(int64_t rows) {
  return *WorkOf("aten::mm", std::vector<Dims>{{rows, 4096}, {4096, 4096}}, DType::kFp32);
}
RecordedKernel Kernel(Duration time, KernelClass kind, const KernelDetail* launch = nullptr) {
  return {.time = time, .traits = {.kind = kind}, .launch = launch, .device = &A100()};
}

TEST(Retime, WorkThatStaysGivesTheMeasuredTimeBack) {
  const OpWork work = Add(1 << 20), same = Add(1 << 20);
  for (int64_t ns : {0, 1, 1999, 2001, 12'345, 123'456'789}) {
    const RecordedKernel kernel = Kernel(Duration::Ns(ns), KernelClass::kElementwise);
    EXPECT_EQ(Retime(kernel, {.before = &work, .after = &same}, kFloor).time.ns, ns);
    EXPECT_EQ(Retime(kernel, {}, kFloor).time.ns, ns);
  }
}

TEST(Retime, LargeMemoryBoundKernelsFollowTheirBytes) {
  // 402 and 1611 MB: neither fits in the cache. 302 us, of which 2 are the floor: 2 + 4 * 300.
  const OpWork before = Add(1 << 25), after = Add(1 << 27);
  const Retimed r = Retime(Kernel(Duration::Us(302), KernelClass::kElementwise),
                           {.before = &before, .after = &after}, kFloor);
  EXPECT_EQ(r.by, RetimedBy::kBytes);
  EXPECT_NEAR(r.time.us(), 1202, 1);
}

TEST(Retime, BytesThatOutgrowTheCacheLoseWhatItSaved) {
  // 12.6 MB in 5 us are faster than memory could be: 9.1 us. 201 MB take what memory needs, 146 us,
  // sixteen times that.
  const OpWork before = Add(1 << 20), after = Add(1 << 24);
  const Retimed r = Retime(Kernel(Duration::Us(7), KernelClass::kElementwise),
                           {.before = &before, .after = &after}, kFloor);
  EXPECT_NEAR(r.time.us(), 2 + after.Bytes() / A100().SustainedBandwidth() * 1e6, 1);
}

TEST(Retime, KernelsThatTakeNoLongerThanAnyKernelStayUntilTheirWorkShows) {
  const OpWork before = Add(1 << 10), after = Add(1 << 12), large = Add(1 << 27);
  const RecordedKernel kernel = Kernel(Duration::Us(2), KernelClass::kElementwise);
  const Retimed r = Retime(kernel, {.before = &before, .after = &after}, kFloor);
  EXPECT_EQ(r.by, RetimedBy::kFloor);
  EXPECT_NEAR(r.time.us(), 2, 0.1);
  EXPECT_NEAR(Retime(kernel, {.before = &before, .after = &large}, kFloor).time.us(),
              2 + large.Bytes() / A100().SustainedBandwidth() * 1e6, 1);
}

TEST(Retime, ProductsFollowTheModelOfTheirShapes) {
  const OpWork before = Product(1024), after = Product(4096);
  const Retimed r = Retime(Kernel(Duration::Us(1002), KernelClass::kGemm),
                           {.before = &before, .after = &after}, kFloor);
  const double model =
      PredictOp(A100(), after, DType::kFp32).ns / PredictOp(A100(), before, DType::kFp32).ns;
  EXPECT_EQ(r.by, RetimedBy::kProducts);
  EXPECT_NEAR(r.time.us(), 2 + 1000 * model, 0.01);
}

TEST(Retime, WithoutShapesBlocksOfProductsThatFitSideBySideTakeNoLonger) {
  // 256 threads: 8 blocks fit on each of 108 multiprocessors, 864 in all.
  const KernelDetail launch{.grid = {216, 1, 1}, .block = {256, 1, 1}};
  const RecordedKernel kernel = Kernel(Duration::Us(12), KernelClass::kGemm, &launch);
  EXPECT_EQ(Retime(kernel, {.growth = 4}, kFloor).time, Duration::Us(12));  // 864 blocks
  const Retimed two_waves = Retime(kernel, {.growth = 8}, kFloor);          // 2 + 2 * 10
  EXPECT_EQ(two_waves.by, RetimedBy::kWaves);
  EXPECT_EQ(two_waves.time, Duration::Us(22));
}

// A quarter of the work: between 2 + 10 us, as it is, and 2 + 2.5; by default sqrt(1/4) of 10.
TEST(Retime, WithoutShapesASmallerProductTakesBetweenItsWavesAndItsWork) {
  const KernelDetail launch{.grid = {216, 1, 1}, .block = {256, 1, 1}};
  const RecordedKernel kernel = Kernel(Duration::Us(12), KernelClass::kGemm, &launch);
  EXPECT_EQ(Retime(kernel, {.growth = 0.25, .fill = 0}, kFloor).time, Duration::Us(12));
  EXPECT_EQ(Retime(kernel, {.growth = 0.25}, kFloor).time, Duration::Us(7));
  EXPECT_EQ(Retime(kernel, {.growth = 0.25, .fill = 1}, kFloor).time, Duration::Ns(4500));
}

// One block a channel: each walks over the whole batch.
TEST(Retime, WithoutShapesWhatOnlyGoesOverMemoryFollowsItsWork) {
  const KernelDetail launch{.grid = {64, 1, 1}, .block = {512, 1, 1}};
  const RecordedKernel kernel = Kernel(Duration::Us(102), KernelClass::kNorm, &launch);
  EXPECT_EQ(Retime(kernel, {.growth = 0.25}, kFloor).time, Duration::Us(27));
  EXPECT_EQ(Retime(kernel, {.growth = 2}, kFloor).time, Duration::Us(202));
}

}  // namespace
}  // namespace daydream
