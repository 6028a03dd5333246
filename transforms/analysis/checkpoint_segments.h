// Which stretches of the forward pass checkpointing runs again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transforms/analysis/saved_tensors.h"

namespace daydream {

// Consecutive ops of one pass whose results are dropped and made again before they are needed.
struct Segment {
  size_t begin = 0, end = 0;  // rows of ForwardOps()
  TaskId backward;            // first kernel of their backward work on the stream
  double kept = 0;            // bytes that the ops keep for backward
  double input = 0;  // bytes of what the first of them works on, which stay; as wide as kept
};

// The block that a layer is part of: "layer1.0" of "layer1.0.conv1", "BertLayer_3" of what is
// inside of that module, else the layer itself. `block`: set to whether a block was found.
std::string BlockOf(const Graph& graph, LayerId layer, bool* block);

struct SegmentRules {
  size_t every = 0;                           // units of one segment; 0 = the rule of the header
  const std::vector<bool>* wanted = nullptr;  // by task: only ops whose first kernel is; null = all
};

// Blocks where layers have some, one segment each. Else stretches of sqrt(n) of a pass's n layers,
// but for the last, whose backward begins at once (Chen et al. 2016, section 4.1). O(ops log ops).
std::vector<Segment> SegmentsOf(const Graph& graph, const std::vector<ForwardOp>& ops,
                                const SegmentRules& rules);

}  // namespace daydream
