// What the texts of NVTX ranges say.
#pragma once

#include <cstdint>
#include <string_view>

namespace daydream {

// Ranges of torch.autograd.profiler.emit_nvtx:
//   NAME[, seq = N][, op_id = K][, sizes = [[8, 16], []]][, input_op_ids = [(K,OUT), (0,-1)]]
struct NsysRangeText {
  std::string_view name;
  int64_t sequence = -1;       // -1: none
  int64_t op = -1;             // -1: none
  std::string_view shapes;     // "[[8, 16], []]"; empty: none
  std::string_view producers;  // "[(K,OUT), (0,-1)]"; empty: none
  bool is_op() const { return sequence >= 0 || op >= 0; }
};

// Names may hold commas and equal signs of their own: the fields are read from the right.
NsysRangeText ParseRangeText(std::string_view text);

// Takes the next "(K,OUT)" off `producers` and gives its op K; 0 = an input that no op made, -1 =
// no more.
int64_t NextProducer(std::string_view& producers);

// What the PyTorch profiler calls an annotation rather than an op.
bool IsAnnotationName(std::string_view name);

}  // namespace daydream
