#include "costmodel/memory_kernel.h"

#include <algorithm>

#include "costmodel/roofline.h"

namespace daydream {
namespace {

constexpr double kIndexBytes = 8;

// Low: warm, as in a CUDA graph. High: nothing in the cache, a late start, the slower kind of
// kernel. From kernels of recordings on A100 and H100 and the rows of NeuSight; nothing from the
// H200, whose rows judge them (docs/cost-model.md).
struct Spread {
  double low, high;              // factors
  double low_start, high_start;  // us
  // Elements read or written in a clock and processor by kernels that are bound by their
  // instructions; 0: never seen to be. GELU in 16 bit 2.75 on an A100, PyTorch's older lookup
  // (`indexSelectLargeIndex`) 1.07 there and 1.36 on an H100.
  double elements_per_clock;
  bool cold;  // as a rule: tables and the state of an optimizer are larger than the cache
};
constexpr Spread SpreadOf(MemoryKernel kernel) {
  switch (kernel) {
    case MemoryKernel::kElementwise:
      return {0.75, 1.25, 1.0, 4, 2.5, false};
    case MemoryKernel::kLayerNorm:
      return {0.6, 1.45, 1.5, 5, 0, false};
    case MemoryKernel::kEmbedding:
      return {0.75, 1.25, 1.0, 4, 1.0, true};
    case MemoryKernel::kAdam:
      return {0.8, 1.35, 1.0, 4, 0, true};
  }
  return {};
}

}  // namespace

OpWork WorkOfEmbedding(int64_t lookups, int64_t width, DType dtype) {
  const double index = kIndexBytes / DTypeBytes(dtype);
  return WorkOfElements(static_cast<double>(lookups) * (2 * static_cast<double>(width) + index));
}

OpWork WorkOfAdam(int64_t parameters) {
  constexpr double kMoved = 7;
  return WorkOfElements(kMoved * static_cast<double>(parameters));
}

MemoryKernelTime TimeOfMemoryKernel(const DeviceSpec& device, MemoryKernel kernel,
                                    const OpWork& work, DType dtype) {
  const Spread spread = SpreadOf(kernel);
  MemoryKernelTime result{.time = PredictOp(device, work, dtype)};
  const double warm = result.time.ns;
  result.cold_ns = work.Bytes(dtype) / device.SustainedBandwidth() * 1e9;
  if (spread.elements_per_clock > 0) {
    result.elements_ns = work.elements * 1e3 / spread.elements_per_clock /
                         (device.multiprocessors * device.boost_clock_mhz);
  }
  result.ns = kKernelFloorNs + (spread.cold ? std::max(warm, result.cold_ns) : warm);
  result.low_ns = std::max(spread.low * (1e3 * spread.low_start + warm), result.time.bound_ns);
  result.high_ns = spread.high *
                   (1e3 * spread.high_start + std::max({warm, result.cold_ns, result.elements_ns}));
  return result;
}

std::string_view MemoryKernelEvidence(MemoryKernel kernel) {
  switch (kernel) {
    case MemoryKernel::kElementwise:
    case MemoryKernel::kLayerNorm:
      return "timed in fp32 on P4 to A100 and MI100, MI210; in 16 bit on an H200";
    case MemoryKernel::kEmbedding:
      return "8 recorded kernels of A100, H100, H200 and B200 compare";
    case MemoryKernel::kAdam:
      return "not measured by size; fused kernels in recordings of A100, V100 and RTX 2080 Ti "
             "reach 0.8 to 1 of this bandwidth";
  }
  return "";
}

}  // namespace daydream
