// Kernels whose time is what they move: elementwise, layer norm, lookups in an embedding, one fused
// kernel of Adam. For questions without a recording:
//
//   time = start + PredictOp(work)
//
// and from memory, not the cache, for lookups and Adam. PredictOp is also what moves such kernels
// of a recording to another GPU. The range is wide, as the same operation runs as kernels of
// several kinds: see docs/cost-model.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "costmodel/op_time.h"

namespace daydream {

enum class MemoryKernel : uint8_t { kElementwise, kLayerNorm, kEmbedding, kAdam };

// `lookups` rows of `width` from a table: each is read and written, and its index of 8 bytes read.
OpWork WorkOfEmbedding(int64_t lookups, int64_t width, DType dtype);
// Fused Adam: reads parameter, gradient and two moments, writes all but the gradient.
OpWork WorkOfAdam(int64_t parameters);

struct MemoryKernelTime {
  OpTime time;                             // without the start
  double ns = 0, low_ns = 0, high_ns = 0;  // nine of ten kernels
  // Cold: all bytes from memory. Elements: what kernels that handle one element at a time need.
  double cold_ns = 0, elements_ns = 0;
  bool starts() const { return ns > 2 * std::max(time.ns, cold_ns); }
};

MemoryKernelTime TimeOfMemoryKernel(const DeviceSpec& device, MemoryKernel kernel,
                                    const OpWork& work, DType dtype);

// What times of this kind were compared with, for people.
std::string_view MemoryKernelEvidence(MemoryKernel kernel);

}  // namespace daydream
