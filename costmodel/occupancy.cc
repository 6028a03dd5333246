#include "costmodel/occupancy.h"

#include <algorithm>
#include <cmath>

namespace daydream {
namespace {

struct Limits {
  int64_t warp = 32;
  int64_t blocks = 32;          // resident on a multiprocessor
  int64_t register_unit = 256;  // given to a warp
  int64_t shared_unit = 128;    // bytes
  int64_t reserved = 0;         // bytes of shared memory of each block that are the system's
};

// CUDA C++ programming guide, table of technical specifications, and the occupancy calculator that
// comes with Nsight Compute. AMD: CDNA3 instruction set, section on wavefronts; up to 32
// wavefronts, which is also the limit of blocks.
Limits LimitsOf(const DeviceSpec& device) {
  if (device.vendor == "AMD") return {.warp = 64, .register_unit = 64 * 8, .shared_unit = 512};
  const int version = device.compute_major * 10 + device.compute_minor;
  Limits limits;
  if (version == 75 || version == 86 || version == 87) limits.blocks = 16;
  if (version == 89 || version >= 120) limits.blocks = 24;
  if (version < 80) limits.shared_unit = 256;
  if (version >= 80) limits.reserved = 1024;
  return limits;
}

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

LaunchShape LaunchShapeOf(const KernelDetail& kernel) {
  LaunchShape launch{.blocks = 1,
                     .threads_per_block = 1,
                     .registers_per_thread = kernel.registers_per_thread,
                     .shared_memory_bytes = kernel.shared_memory_bytes};
  for (uint32_t size : kernel.grid) launch.blocks *= size;
  for (uint32_t size : kernel.block) {
    // At most 1,024 in reality; larger ones are damage.
    launch.threads_per_block = std::min<int64_t>(launch.threads_per_block * size, 1 << 20);
  }
  return launch;
}

Occupancy OccupancyOf(const DeviceSpec& device, const LaunchShape& launch) {
  const Limits limits = LimitsOf(device);
  const int64_t threads = RoundUp(std::max<int64_t>(launch.threads_per_block, 1), limits.warp);
  Occupancy occupancy{.blocks = static_cast<int>(limits.blocks), .limit = "blocks"};
  auto limit = [&](int64_t blocks, std::string_view what) {
    if (blocks >= occupancy.blocks) return;
    occupancy.blocks = static_cast<int>(blocks);
    occupancy.limit = what;
  };
  limit(device.threads_per_multiprocessor / threads, "threads");
  if (launch.registers_per_thread > 0) {
    const int64_t of_warp = RoundUp(
        std::min<int64_t>(launch.registers_per_thread, 1024) * limits.warp, limits.register_unit);
    // Warps share the registers of one of four schedulers.
    const int64_t warps = device.registers_per_multiprocessor / 4 / of_warp * 4;
    limit(warps / (threads / limits.warp), "registers");
  }
  const int64_t shared = RoundUp(std::max<int64_t>(launch.shared_memory_bytes, 0) + limits.reserved,
                                 limits.shared_unit);
  if (shared > 0) {
    const auto all = static_cast<int64_t>(device.shared_memory_kb_per_multiprocessor * 1024);
    limit(all / shared, "shared memory");
  }
  const double per_processor = std::ceil(launch.blocks / std::max(device.multiprocessors, 1));
  if (launch.blocks > 0 && per_processor < occupancy.blocks) {
    occupancy.blocks = static_cast<int>(per_processor);
    occupancy.limit = "grid";
  }
  occupancy.share = static_cast<double>(occupancy.blocks * threads) /
                    std::max(device.threads_per_multiprocessor, 1);
  return occupancy;
}

double WaveSize(const DeviceSpec& device, const LaunchShape& launch) {
  LaunchShape endless = launch;
  endless.blocks = 0;
  const int blocks = std::max(OccupancyOf(device, endless).blocks, 1);
  return static_cast<double>(blocks) * std::max(device.multiprocessors, 1);
}

}  // namespace daydream
