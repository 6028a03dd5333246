// Attention that is computed step by step: product, scaling, mask, softmax, dropout, product, and
// the same backwards. Found by the shapes of ops, kernel by kernel along a stream.
#pragma once

#include <string>
#include <vector>

#include "costmodel/attention.h"
#include "transforms/analysis/kernel_table.h"
#include "transforms/analysis/op_shapes.h"
#include "transforms/analysis/op_work.h"
#include "transforms/core/editor.h"
#include "transforms/core/params.h"

namespace daydream {

// Of optimizations that make one kernel of a chain.
inline constexpr ParamSpec kAttentionShareParam = {
    .name = "share",
    .unit = Unit::kShare,
    .fallback = 0.5,
    .low = 0.3,
    .high = 0.7,
    .min = 0.01,
    .max = 1,
    .help =
        "of the peak of tensor cores that fused attention reaches in 16 bit; fp32 follows from it",
    .source =
        "FlashAttention-2 (2023), abstract and section 4: 50 to 73 % of an A100's peak, the "
        "first version 25 to 40 %"};

struct AttentionChain {
  std::vector<TaskId> kernels;  // what one fused kernel stands for, in lane order
  AttentionShape shape;
  DType dtype = DType::kUnknown;  // as recorded
  bool selects = false;           // masks by selection (where, masked_fill), not by addition
  double before_ns = 0;           // of the kernels, by the model in the recorded format
};

struct AttentionSearch {
  std::vector<AttentionChain> chains;
  size_t unshaped = 0;  // softmax kernels whose op has no recorded shapes
};

// O(tasks). REQUIRES: `device` is the GPU of all streams.
AttentionSearch FindAttention(const Editor& edit, const DeviceSpec& device);

}  // namespace daydream
