// Searching what is in order for questions that come one near the other: from where the last answer
// was. A search from the middle waits for memory at nearly each of its looks, where what it looks
// at fits no cache.
#pragma once

#include <algorithm>
#include <cstddef>

namespace daydream {

// As std::partition_point: the first of [0, size) of which `holds` is false, `size` where there is
// none. REQUIRES: `holds` is true of all before it and false of all behind. O(log distance of
// `near` from it).
template <class Holds>
size_t PartitionPointNear(size_t size, size_t near, const Holds& holds) {
  size_t low = std::min(near, size), high = low;  // it is one of [low, high]
  for (size_t step = 1; low > 0 && !holds(low - 1); step *= 2) {
    high = low - 1;
    low -= std::min(step, low);
  }
  for (size_t step = 1; high < size && holds(high); step *= 2) {
    low = high + 1;
    high += std::min(step, size - high);
  }
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (holds(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace daydream
