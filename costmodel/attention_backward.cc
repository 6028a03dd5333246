#include "costmodel/attention_backward.h"

#include <algorithm>
#include <cmath>

#include "costmodel/roofline.h"

namespace daydream {
namespace {

constexpr double kBackwardBlock = 128;
constexpr double kBackwardKernels = 3;  // row sums, products, the gradient of q to 16 bit
constexpr double kBytesMoved = 25;      // for each element of q
// Three gradients in 16 bit that are added to what is there.
constexpr double kBytesAdded = 18;
// As of products in long steps (costmodel/surface.h), and the spread of published rows.
constexpr double kLongStep = 1.3, kBestSpread = 0.9;

// Shares of the peak for heads of 64 and 128.
struct BackwardShares {
  double narrow = 0, wide = 0;
  double Of(double width) const {
    return narrow + (wide - narrow) * (std::clamp(width, 64.0, 128.0) - 64) / 64;
  }
};
struct BackwardRates {
  BackwardShares usual, best;
};
// A100: 0.63 in all is 0.641 beside what is moved at 16,384 tokens and heads of 128; heads of 64
// reach the same part of it as on an H100. No faster kernel is known there.
constexpr BackwardRates kAmpereBackward = {{0.579, 0.641}, {0.579, 0.641}};
constexpr BackwardRates kHopperBackward = {{0.299, 0.331}, {0.491, 0.582}};

}  // namespace

AttentionBackwardTime TimeOfAttentionBackward(const DeviceSpec& device, const SelfAttention& a) {
  const bool ampere = device.compute_major == 8 && device.compute_minor == 0;
  const bool hopper = device.compute_major == 9 && device.compute_minor == 0;
  const double peak = device.TensorPeak(DType::kBf16) * 1e3;  // FLOPs a nanosecond
  if (device.vendor != "NVIDIA" || !(ampere || hopper) || !(peak > 0) || a.width > 128) return {};
  const BackwardRates& rates = ampere ? kAmpereBackward : kHopperBackward;
  const double length = std::ceil(a.length / kBackwardBlock) * kBackwardBlock;
  const double scores = a.causal ? length * (length + kBackwardBlock) / 2 : length * length;
  const double flops = kAttentionBackwardWork * 4 * a.batch * a.heads * scores * a.width;
  const double elements = a.batch * a.heads * a.length * a.width;
  const double per_byte = 1e9 / device.SustainedBandwidth();
  AttentionBackwardTime time;
  time.start_ns = kBackwardKernels * kKernelFloorNs;
  time.memory_ns = elements * kBytesMoved * per_byte;
  time.compute_ns = flops / (rates.usual.Of(a.width) * peak);
  time.ns = time.start_ns + time.memory_ns + time.compute_ns;
  time.low_ns = kBestSpread * (time.memory_ns + flops / (rates.best.Of(a.width) * peak));
  time.high_ns = kLongStep * (time.ns + elements * kBytesAdded * per_byte);
  return time;
}

}  // namespace daydream
