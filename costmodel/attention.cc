#include "costmodel/attention.h"

#include <algorithm>
#include <cmath>

namespace daydream {
namespace {

// Rows of queries that one block works on: FlashAttention-2 (2023), section 3.3, blocks of 64 to
// 128.
constexpr double kBlockQueries = 128;
// In fp32 from compute capability 8.0, the memory-efficient kernel of PyTorch makes each product
// of three in TF32 (CUTLASS's OpMultiplyAddFastF32, which its gemm_kernel_utils.h chooses for
// float). That kernel works as the first FlashAttention does, which reaches 25 to 40 % of the peak
// of an A100 where the second reaches 50 to 73 % (FlashAttention-2, 2023, abstract and section 1):
// the middle of the one over the middle of the other. Not fitted: tests/costmodel/costdata_test.cc.
constexpr int kFastF32Major = 8;
constexpr double kFastF32Products = 3, kFastF32Share = 0.53;

// TFLOPS of the products.
double AttentionTflops(const DeviceSpec& device, DType dtype, double share) {
  if (dtype != DType::kFp32 && device.TensorPeak(dtype) > 0) {
    return share * device.TensorPeak(dtype);
  }
  const bool nvidia = device.vendor == "NVIDIA";
  if (nvidia && device.compute_major >= kFastF32Major && device.tf32_tflops > 0) {
    return share * kFastF32Share * device.tf32_tflops / kFastF32Products;
  }
  return share * device.fp32_tflops;
}

}  // namespace

double AttentionShape::Flops() const {
  return (backward ? 10 : 4) * heads * queries * keys * width;
}

double AttentionShape::Elements() const {
  const double of_queries = heads * queries * width, of_keys = heads * keys * width;
  // Forward: Q in, output out; K, V in. Backward: Q, output, its gradient in, gradient of Q out;
  // K, V in, their gradients out.
  return (backward ? 4 : 2) * of_queries + (backward ? 4 : 2) * of_keys + mask_elements;
}

double FusedAttentionNs(const DeviceSpec& device, const AttentionShape& shape, DType dtype,
                        double share) {
  if (!(shape.Flops() > 0)) return 0;
  const double tflops = AttentionTflops(device, dtype, share);
  const double rows = shape.backward ? shape.keys : shape.queries;
  const double waves =
      shape.heads * std::ceil(rows / kBlockQueries) / std::max(device.multiprocessors, 1);
  const double idle = std::ceil(waves) / std::max(waves, 1e-9);
  const double multiply = shape.Flops() / (tflops * 1e3) * idle;
  const double move = shape.Elements() * DTypeBytes(dtype) / (device.SustainedBandwidth() * 1e-9);
  return std::hypot(multiply, move);
}

}  // namespace daydream
