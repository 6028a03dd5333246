// Values over the time of a timeline, for the counter tracks of viewers.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "report/export/side.h"

namespace daydream {

struct Counter {
  enum class Unit : uint8_t { kCount, kBytes };
  std::string name;  // "GPU 0 busy"
  std::string description;
  Unit unit = Unit::kCount;
  // From each instant on until the next; in time order, each value another than the one before.
  std::vector<std::pair<Instant, int64_t>> points;
};

// Of each GPU that has work, in this order:
//   busy                   1 while at least one stream works, else 0: as Summary::gpu_busy
//   exposed communication  1 while only communication works: as Summary::exposed_comm
//   launch queue           GPU work whose call has launched it and that has not begun
//   memory                 bytes that tensors occupy, by recorded allocations, each at the time of
//                          the host work that made it. Not of an edited side: no allocation of it
//                          was recorded. Absent without allocations that have a total.
// O(tasks log tasks + edges + allocations log tasks).
std::vector<Counter> CountersOf(const Side& side);

}  // namespace daydream
