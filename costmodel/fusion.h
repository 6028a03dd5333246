// What merging memory-bound kernels saves: a merged kernel reads each input once, writes its result
// once, and what passed between its parts is neither written nor read.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "costmodel/roofline.h"

namespace daydream {

struct FusionNode {
  enum class Kind : uint8_t {
    kPointwise,
    kRows,     // softmax, norms: each result needs a row of the input
    kBarrier,  // products, copies, whatever cannot be merged
  };
  Kind kind = Kind::kBarrier;
  double output = 0;           // elements
  std::vector<double> inputs;  // elements of each tensor that is read
  // kRows: how often the largest input is read or written, and its time where that is known.
  double passes = 2;
  double rows_ns = 0;
};

struct FusionGroup {
  size_t begin = 0, end = 0;  // nodes [begin, end)
  double bytes_before = 0, bytes_after = 0;
  double ns_before = 0, ns_after = 0;  // by the model, no launch latency
};

struct FusionRules {
  double element_bytes = 4;
  double kept = 0;         // share of the results in between that is written all the same
  bool rows = true;        // rows may be merged with pointwise work
  double floor_ns = 2000;  // of one kernel
};

// Groups of consecutive nodes that one kernel can do: pointwise and row-wise work over equally many
// elements. A node after the first reads the result before it; further inputs of that size are
// taken for something that the group has read already. Groups of one are left out. O(nodes).
std::vector<FusionGroup> PlanFusion(const DeviceSpec& device, std::span<const FusionNode> nodes,
                                    const FusionRules& rules);

// One group of all `nodes`, whatever their sizes.
FusionGroup MergeAll(const DeviceSpec& device, std::span<const FusionNode> nodes,
                     const FusionRules& rules);

}  // namespace daydream
