#include "costmodel/roofline.h"

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "costmodel/tiles.h"

namespace daydream {
namespace {

const DeviceSpec& Gpu(std::string_view name) { return *FindDeviceSpec(name); }

TEST(Roofline, BoundIsTheSlowerOfArithmeticAndMemory) {
  const DeviceSpec& v100 = Gpu("V100-SXM2-32GB");
  EXPECT_EQ(RooflineBound(v100, 15.67e12, 0, DType::kFp32).ns, 1000000000);
  EXPECT_EQ(RooflineBound(v100, 125e12, 0, DType::kFp16).ns, 1000000000);
  EXPECT_EQ(RooflineBound(v100, 0, 900e9 + 6e6, DType::kFp32).ns, 1000000000);
  // What fits in L2 needs no memory.
  EXPECT_EQ(RooflineBound(v100, 0, 6e6, DType::kFp32).ns, 0);
}

TEST(Roofline, BoundIsNeverAboveTheEstimate) {
  for (const DeviceSpec& device : DeviceSpecs()) {
    for (const DType dtype : {DType::kFp32, DType::kTf32, DType::kFp16}) {
      if (dtype != DType::kFp32 && device.TensorPeak(dtype) == 0) continue;
      for (const GemmShape& shape : {GemmShape{1, 8, 8, 8}, GemmShape{1, 4096, 4096, 4096},
                                     GemmShape{16, 512, 64, 512}, GemmShape{1, 1, 50257, 1024}}) {
        EXPECT_LE(
            static_cast<double>(
                RooflineBound(device, shape.Flops(), shape.Bytes(DTypeBytes(dtype)), dtype).ns),
            GemmNs(device, shape, dtype, shape.batch > 1) * (1 + 1e-9))
            << device.name << ' ' << DTypeName(dtype) << ' ' << shape.m;
      }
    }
  }
}

TEST(Roofline, MemoryTimeGrowsWithBytes) {
  for (const DeviceSpec& device : DeviceSpecs()) {
    double last = 0;
    for (double bytes = 1; bytes < 1e11; bytes *= 1.5) {
      const double ns = MemoryNs(device, bytes);
      EXPECT_GE(ns, last) << device.name << ' ' << bytes;
      last = ns;
    }
  }
}

TEST(Roofline, TensorCoresHelpLargeProductsMoreThanSmallOnes) {
  const DeviceSpec& v100 = Gpu("V100-SXM2-32GB");
  OpWork large, small, add;
  large.kind = small.kind = OpWork::Kind::kGemm;
  large.products = {{1, 4096, 4096, 4096}};
  small.products = {{1, 64, 64, 64}};
  add.elements = 3e8;
  const double r_large = FormatRatio(v100, large, DType::kFp32, DType::kFp16);
  const double r_small = FormatRatio(v100, small, DType::kFp32, DType::kFp16);
  EXPECT_LT(r_large, 0.35);
  EXPECT_GT(r_small, r_large);
  EXPECT_LE(r_small, 1.0);
  EXPECT_NEAR(FormatRatio(v100, add, DType::kFp32, DType::kFp16), 0.5, 0.01);
  EXPECT_EQ(FormatRatio(v100, large, DType::kFp16, DType::kFp16), 1);
}

TEST(Roofline, OddSizesAreHarmless) {
  const DeviceSpec& gpu = Gpu("H100-SXM5-80GB");
  EXPECT_EQ(GemmNs(gpu, {1, 0, 5, 5}, DType::kFp32, false), 0);
  const int64_t big = int64_t{1} << 40;
  EXPECT_TRUE(std::isfinite(GemmNs(gpu, {big, big, big, big}, DType::kFp32, true)));
  EXPECT_EQ(RowOpNs(gpu, {.rows = 0, .columns = 7}), 0);
}

// Values of the reference model, which was fitted and judged outside this repository.
TEST(Roofline, AgreesWithTheReferenceModel) {
  std::ifstream file(DAYDREAM_DATA_DIR "/costdata/model/golden.csv");
  if (!file) GTEST_SKIP() << "no reference values beside the repository";
  std::string line;
  std::getline(file, line);
  int skipped = 0;
  std::map<std::string, int> checked;
  while (std::getline(file, line)) {
    std::vector<std::string> f;
    std::stringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) f.push_back(cell);
    ASSERT_EQ(f.size(), 8u) << line;
    const DeviceSpec* device = FindDeviceSpec(f[1]);
    ASSERT_NE(device, nullptr) << line;
    DType dtype = DType::kFp32;
    for (DType d : {DType::kTf32, DType::kFp16, DType::kBf16, DType::kFp8}) {
      if (DTypeName(d) == f[2]) dtype = d;
    }
    // The reference takes the P100's fp16 vector units for tensor cores, and gives AMD's compute
    // capability a number of its own.
    if (dtype != DType::kFp32 && device->TensorPeak(dtype) == 0) {
      ++skipped;
      continue;
    }
    const auto number = [&](size_t i) { return f[i].empty() ? 0 : std::stoll(f[i]); };
    double ns = 0;
    if (f[0] == "linear" || f[0] == "bmm") {  // columns: b, m, k, n
      ns = GemmNs(*device, {number(3), number(4), number(6), number(5)}, dtype, f[0] == "bmm");
    } else if (f[0] == "mem") {
      ns = MemoryNs(*device, static_cast<double>(number(3)));
    } else {
      ns = RowOpNs(*device, {.op = f[0] == "softmax" ? RowOp::kSoftmax : RowOp::kLayerNorm,
                             .rows = number(3),
                             .columns = number(4)});
    }
    EXPECT_NEAR(ns * 1e-6 / std::stod(f[7]), 1, 1e-6) << line;
    ++checked[f[0]];
  }
  EXPECT_EQ(checked["bmm"] + checked["linear"] + skipped, 207);
  EXPECT_EQ(checked["mem"], 70);
  EXPECT_EQ(checked["softmax"], 55);
  EXPECT_EQ(checked["layernorm"], 68);
  EXPECT_LE(skipped, 20);
}

}  // namespace
}  // namespace daydream
