// What a GPU kernel does, read from its name (plain, demangled or mangled).
#pragma once

#include <string_view>

#include "costmodel/device.h"

namespace daydream {

enum class KernelClass : uint8_t {
  kGemm,         // matrix products, batched or not, from any library
  kConv,         // convolutions, forward and backward
  kAttention,    // fused attention
  kElementwise,  // one output element from the same element of each input; also fused pointwise
  kReduce,       // sums, means, maxima, scans, sorts
  kNorm,         // batch, layer, group norm
  kSoftmax,      // softmax and losses made of it
  kPool,         // pooling, up- and down-sampling
  kOptimizer,    // optimizer steps over many tensors
  kIndex,        // embedding, gather, scatter, index, sorting of indices
  kComm,         // NCCL, RCCL and other collectives
  kCopy,         // copies, casts, concatenation, layout changes, fills
  kOther,
};
std::string_view KernelClassName(KernelClass c);  // "gemm"
// Products of matrices, whatever they are called: what tensor cores are for.
constexpr bool Multiplies(KernelClass c) {
  return c == KernelClass::kGemm || c == KernelClass::kConv || c == KernelClass::kAttention;
}
// The class with this name, or kOther with `found` false.
KernelClass FindKernelClass(std::string_view name, bool* found);

struct KernelTraits {
  KernelClass kind = KernelClass::kOther;
  // Format of the data that is multiplied or moved, as far as the name tells.
  DType dtype = DType::kUnknown;
  // True when the name shows that tensor (matrix) cores multiply. A gemm or conv with false is
  // either known to use the vector units or silent about it.
  bool tensor_cores = false;
};

// O(length of the name); callers that meet a name often keep the answer.
KernelTraits ClassifyKernel(std::string_view name);

}  // namespace daydream
