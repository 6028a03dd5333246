// Measured surfaces of fused attention in 16 bit, forward: FlashAttention and the kernels that took
// its place on newer GPUs, as inference engines call them. Files:
// costmodel/surfaces/*.attention*.txt, made by costmodel/fit/attention.py (A100, H100, B200, L40S;
// AIConfigurator, Apache-2.0).
//
//   time = (launch + blend(arithmetic, memory)) * exp(correction)
//
// Blocks of 128 queries run in waves, against 64 keys at a time; a causal mask leaves out half of
// the scores. Heads are padded to a multiple of 32 (72 and 80 take as long as 96), and where heads
// share their keys, their queries can be rows of one block. The correction is smooth over the
// logarithms of queries, heads, padded width of a head, and heads that share their keys.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "costmodel/device.h"

namespace daydream {

// Self-attention: as many queries as keys. `heads` and `kv_heads` are of one example.
struct SelfAttention {
  double batch = 1, length = 0, heads = 0, kv_heads = 0, width = 0;
  bool causal = false;
  double Flops() const;  // forward; half of the scores with a causal mask
};

struct AttentionTime {
  // Nine of ten lie between: from the kernel alone, as a profiler shows it, to FlashAttention-2,
  // which PyTorch calls also where others are faster.
  double ns = 0, low_ns = 0, high_ns = 0;
  double compute_ns = 0, memory_ns = 0, launch_ns = 0;
  double waves = 0, correction = 0;
  std::string_view device;  // where the surface was measured; empty: no surface
  int shapes = 0;
};

// No `device` where nothing was measured: other generations of GPUs, other vendors. 0.3 us.
AttentionTime TimeOfAttention(const DeviceSpec& device, const SelfAttention& shape);

// Share of the tensor cores' peak that FlashAttention-2, which PyTorch calls, reaches in 16 bit; 0
// where nobody has said. For ratios of GPUs: its kernels do not use what Hopper added.
double FlashAttention2Share(const DeviceSpec& device);
// The same; where nobody has said, what the surface of its generation says of 2048 queries and
// keys: those kernels are the best, and others reach less.
double AttentionShare(const DeviceSpec& device);

}  // namespace daydream
