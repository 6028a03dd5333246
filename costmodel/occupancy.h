// How many blocks of a launch a multiprocessor holds at once, and how many waves a grid makes.
#pragma once

#include <cstdint>
#include <string_view>

#include "costmodel/device.h"

namespace daydream {

struct LaunchShape {
  double blocks = 0;              // of the grid
  int64_t threads_per_block = 0;  // 0: not recorded
  int64_t registers_per_thread = 0;
  int64_t shared_memory_bytes = 0;  // per block, static and dynamic
};
LaunchShape LaunchShapeOf(const KernelDetail& kernel);

struct Occupancy {
  int blocks = 0;    // on one multiprocessor at once; 0: such a block does not fit on this GPU
  double share = 0;  // of the threads it can hold
  std::string_view limit;  // "threads", "registers", "shared memory", "blocks", "grid"
};
// By the rules of the CUDA programming guide (technical specifications per compute capability):
// registers are given to warps in groups of 256, shared memory in units, one kB a block is the
// system's from compute capability 8 on. AMD: wavefronts of 64.
Occupancy OccupancyOf(const DeviceSpec& device, const LaunchShape& launch);

// Blocks that run at once on the whole GPU; at least 1.
double WaveSize(const DeviceSpec& device, const LaunchShape& launch);

}  // namespace daydream
