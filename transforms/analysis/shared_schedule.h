// How much of a GPU a kernel holds, and what kernels that run side by side take from each other.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "costmodel/device.h"
#include "graph/graph.h"

namespace daydream {

// Share of the multiprocessors that a kernel holds while it runs, at most 1: its blocks against
// those that the GPU holds at a time. Nothing when the launch shape or the GPU is not known.
std::optional<double> SmShare(const DeviceSpec& device, const KernelDetail& kernel);

// One kernel of a schedule of the GPU alone.
struct SharedWork {
  Duration duration;            // alone
  double share = 0;             // of the multiprocessors
  Duration ready;               // launched, from the beginning of the schedule
  uint32_t stream = 0;          // runs in order of the numbers
  std::vector<uint32_t> needs;  // earlier numbers
};
struct SharedTime {
  Duration start, end;
};
// When each runs if whatever is ready runs at once, and all that runs is slowed by the same factor
// while its shares sum to more than 1. `latency`: from the end of what is needed on another stream.
// O(work * streams + needs).
std::vector<SharedTime> ScheduleShared(std::span<const SharedWork> work, Duration latency);

}  // namespace daydream
