#include "costmodel/op_time.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "costmodel/roofline.h"

namespace daydream {
namespace {

using ::testing::HasSubstr;

const DeviceSpec& Gpu(std::string_view name) { return *FindDeviceSpec(name); }

// One of each kind, of a size that fills a GPU.
std::vector<OpWork> SomeWork() {
  std::vector<OpWork> work = {
      WorkOfProduct({1, 4096, 4096, 1024}),
      WorkOfProduct({192, 512, 64, 512}),
      WorkOfProduct({1, 7, 50257, 1023}),
      WorkOfRows({.op = RowOp::kSoftmax, .rows = 65536, .columns = 512}),
      WorkOfRows({.op = RowOp::kLayerNorm, .rows = 8192, .columns = 1024}),
      WorkOfElements(3 * 16e6),
      *WorkOfConvolution({32, 64, 56, 56}, {64, 64, 3, 3}, {32, 64, 56, 56}),
  };
  for (const char* op :
       {"aten::native_batch_norm", "aten::max_pool2d_with_indices", "aten::copy_", "aten::relu"}) {
    work.push_back(*WorkOf(op, "[[32, 64, 112, 112]]", "[\"float\"]"));
  }
  return work;
}

TEST(OpTime, EachKindHasItsMethodAndTellsItsTerms) {
  const DeviceSpec& a100 = Gpu("A100-SXM4-40GB");
  const std::vector<OpWork> work = SomeWork();
  const std::string product = Explain(PredictOp(a100, work[0], DType::kFp32));
  EXPECT_THAT(product, HasSubstr("by tiles in waves: sustained"));
  EXPECT_THAT(product, HasSubstr("TFLOPS, tile rows"));
  EXPECT_THAT(product, HasSubstr("waves"));
  EXPECT_THAT(product, HasSubstr("bound"));
  EXPECT_THAT(Explain(PredictOp(a100, work[3], DType::kFp32)),
              HasSubstr("us by rows: rows 6.554e"));
  EXPECT_THAT(Explain(PredictOp(a100, work[5], DType::kFp32)), HasSubstr("moved 192 MB"));
  EXPECT_THAT(Explain(PredictOp(a100, work[6], DType::kFp32)), HasSubstr("for ratios"));
  EXPECT_EQ(Explain(PredictOp(a100, OpWork{}, DType::kFp32)), "no work");
  EXPECT_FALSE(PredictOp(a100, work[6], DType::kFp32).absolute());
}

// Shapes decide which algorithm a library takes, on each GPU for itself.
TEST(OpTime, SwitchesOfTheAlgorithmAreNamed) {
  const DeviceSpec& a100 = Gpu("A100-SXM4-80GB");
  const auto explained = [&](const GemmShape& shape, DType dtype) {
    return Explain(PredictOp(a100, WorkOfProduct(shape), dtype));
  };
  EXPECT_THAT(explained({1, 64, 1024, 16384}, DType::kBf16), HasSubstr("surface, split-K: tile"));
  EXPECT_THAT(explained({1, 64, 64, 65536}, DType::kFp32), HasSubstr("waves, split-K: "));
  EXPECT_THAT(explained({1, 1, 4096, 4096}, DType::kBf16), HasSubstr("surface, few rows: tile"));
  EXPECT_THAT(explained({1, 8192, 8192, 8192}, DType::kBf16), HasSubstr("surface: tile"));
}

TEST(OpTime, IsThatOfTheModelsItCombines) {
  const DeviceSpec& v100 = Gpu("V100-PCIE-32GB");
  EXPECT_EQ(PredictOp(v100, WorkOfElements(1e8), DType::kFp16).ns, MemoryNs(v100, 2e8));
  const RowShape rows{.op = RowOp::kLayerNorm, .rows = 8192, .columns = 1024};
  EXPECT_EQ(PredictOp(v100, WorkOfRows(rows), DType::kFp32).ns, RowOpNs(v100, rows));
  // Shapes as PyTorch records them lead to the same work.
  EXPECT_EQ(PredictOp(v100,
                      *WorkOf("aten::native_layer_norm", "[[16, 512, 1024], [], [1024], [1024]]",
                              "[\"float\"]"),
                      DType::kFp32)
                .ns,
            RowOpNs(v100, rows));
  EXPECT_EQ(WorkOf("aten::_softmax", "[[16, 8, 512, 256]]", "")->rows,
            (RowShape{.rows = 16 * 8 * 512, .columns = 256}));
}

TEST(OpTime, IsNeverUnderTheRooflineOnAnyGpu) {
  for (const DeviceSpec& device : DeviceSpecs()) {
    for (const DType dtype : {DType::kFp32, DType::kTf32, DType::kFp16, DType::kFp8}) {
      for (const OpWork& work : SomeWork()) {
        const OpTime time = PredictOp(device, work, dtype);
        const auto bound = RooflineBound(device, work.flops, work.Bytes(dtype), dtype).ns;
        EXPECT_GE(time.ns, static_cast<double>(bound)) << device.name << Explain(time);
        EXPECT_TRUE(std::isfinite(time.ns)) << device.name << Explain(time);
      }
    }
  }
}

// Luo et al., arXiv:2402.13499: what runs with Ampere's instruction reaches 62.9 % there.
TEST(OpTime, ALargeConvolutionOnHopperReachesTheRateOfMmaSync) {
  const OpWork work = *WorkOfConvolution({256, 256, 56, 56}, {256, 256, 3, 3}, {256, 256, 56, 56});
  const DeviceSpec &a100 = Gpu("A100-SXM4-80GB"), &h100 = Gpu("H100-SXM5-80GB");
  const double peaks = a100.fp16_tflops / h100.fp16_tflops;
  EXPECT_NEAR(PredictOp(h100, work, DType::kFp16).ns / PredictOp(a100, work, DType::kFp16).ns,
              peaks / 0.629, 1e-9);
  EXPECT_DOUBLE_EQ(h100.ConvolutionShare(DType::kFp32), 1);
  EXPECT_DOUBLE_EQ(Gpu("B200-SXM-180GB").ConvolutionShare(DType::kBf16), 1);
}

TEST(OpTime, GrowsWithTheWork) {
  for (const DeviceSpec& device : DeviceSpecs()) {
    double product = 0, rows = 0;
    // Doubling fills whole tiles and waves; in between a time may fall where a split pays.
    for (int64_t n = 128; n <= 16384; n *= 2) {
      const double ns = PredictOp(device, WorkOfProduct({1, n, n, n}), DType::kFp32).ns;
      EXPECT_GT(ns, product) << device.name << ' ' << n;
      product = ns;
      for (const RowOp op : {RowOp::kSoftmax, RowOp::kLayerNorm}) {
        const double few =
            PredictOp(device, WorkOfRows({.op = op, .rows = n, .columns = 512}), DType::kFp32).ns;
        const double more =
            PredictOp(device, WorkOfRows({.op = op, .rows = 2 * n, .columns = 512}), DType::kFp32)
                .ns;
        EXPECT_GT(more, few) << device.name << ' ' << n;
      }
      const double moved =
          PredictOp(device, WorkOfElements(static_cast<double>(n) * 1e4), DType::kFp32).ns;
      EXPECT_GT(moved, rows) << device.name << ' ' << n;
      rows = moved;
    }
  }
}

TEST(OpTime, AFasterGpuIsNotSlower) {
  DeviceSpec slow = Gpu("A100-PCIE-40GB"), fast = slow;
  fast.fp32_tflops *= 2, fast.tf32_tflops *= 2, fast.fp16_tflops *= 2;
  fast.measured_fp32_gemm_tflops *= 2, fast.measured_fp32_batched_gemm_tflops *= 2;
  fast.memory_gb_per_s *= 2;
  for (const DType dtype : {DType::kFp32, DType::kTf32, DType::kFp16}) {
    for (const OpWork& work : SomeWork()) {
      EXPECT_LE(PredictOp(fast, work, dtype).ns, PredictOp(slow, work, dtype).ns);
    }
  }
}

TEST(OpTimes, KeepAnswersByShapeAndFormat) {
  OpTimes times(Gpu("H100-SXM5-80GB"));
  for (int again = 0; again < 2; ++again) {
    for (const OpWork& work : SomeWork()) {
      for (const DType dtype : {DType::kFp32, DType::kBf16}) {
        EXPECT_EQ(times.Of(work, dtype).ns, PredictOp(times.device(), work, dtype).ns);
      }
    }
    // A copy and a relu of the same size are the same work.
    EXPECT_EQ(times.size(), 2 * (SomeWork().size() - 1));
  }
}

}  // namespace
}  // namespace daydream
