// Fused attention backward in 16 bit, from what its authors published: no rows by shape are at
// hand.
//
//   time = start + what is moved / bandwidth + five products / (share of the peak)
//
// FlashAttention-2, which PyTorch calls by itself. On an H100 its paper and that of its successor
// give TFLOPS by length (Shah et al., FlashAttention-3, 2024, figure 6: 16,384 tokens of width
// 2048, no mask): 198, 238, 264, 279, 287, 291 for heads of 64 and 214, 260, 291, 310, 318, 322 for
// heads of 128, at 512, 1024, ... 16384. Ends of these rows say 25 bytes for each element (q, k, v,
// out and its gradient in; three gradients out; a gradient in fp32 that is set, added to and read)
// and 0.299 and 0.331 of the peak. On an A100: at most 0.63 of the peak in all (Dao,
// FlashAttention-2, 2023).
#pragma once

#include "costmodel/attention_surface.h"

namespace daydream {

struct AttentionBackwardTime {
  // Low: the best kernels that were published for this generation (FlashAttention-3 on Hopper).
  // High: with its gradients added to others, in a long step, whose power limits the clock.
  double ns = 0, low_ns = 0, high_ns = 0;
  double compute_ns = 0, memory_ns = 0, start_ns = 0;
  bool known() const { return ns > 0; }
};

// Not known: other generations than Ampere (8.0) and Hopper, and heads wider than 128.
AttentionBackwardTime TimeOfAttentionBackward(const DeviceSpec& device, const SelfAttention& shape);

// Five products for two of forward.
inline constexpr double kAttentionBackwardWork = 2.5;

}  // namespace daydream
