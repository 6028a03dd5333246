// Attention: softmax(Q K^T + mask) V, and its fused form.
#pragma once

#include "costmodel/device.h"

namespace daydream {

struct AttentionShape {
  double heads = 0;                         // of all examples: batch x heads
  double queries = 0, keys = 0, width = 0;  // width of one head
  double mask_elements = 0;                 // read by the fused kernel; 0 = none
  bool backward = false;

  // Two products in forward; five in backward, which computes the scores again.
  double Flops() const;
  // Elements read and written by one fused kernel: no matrix of scores.
  double Elements() const;
};

// One fused kernel, which reaches `share` of the peak of tensor cores. In fp32 it runs on tensor
// cores, too, from Ampere on, three times as long and as another kernel (attention.cc); on older
// GPUs it reaches `share` of the vector units. Blocks of 128 queries fill the multiprocessors in
// waves.
double FusedAttentionNs(const DeviceSpec& device, const AttentionShape& shape, DType dtype,
                        double share);

}  // namespace daydream
