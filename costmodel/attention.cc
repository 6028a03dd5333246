#include "costmodel/attention.h"

#include <algorithm>
#include <cmath>

namespace daydream {
namespace {

// Rows of queries that one block works on: FlashAttention-2 (2023), section 3.3, blocks of 64 to
// 128.
constexpr double kBlockQueries = 128;

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
  const bool tensor = dtype != DType::kFp32 && device.TensorPeak(dtype) > 0;
  const double tflops = share * (tensor ? device.TensorPeak(dtype) : device.fp32_tflops);
  const double rows = shape.backward ? shape.keys : shape.queries;
  const double waves =
      shape.heads * std::ceil(rows / kBlockQueries) / std::max(device.multiprocessors, 1);
  const double idle = std::ceil(waves) / std::max(waves, 1e-9);
  const double multiply = shape.Flops() / (tflops * 1e3) * idle;
  const double move = shape.Elements() * DTypeBytes(dtype) / (device.SustainedBandwidth() * 1e-9);
  return std::hypot(multiply, move);
}

}  // namespace daydream
