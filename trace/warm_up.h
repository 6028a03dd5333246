// Steps at the begin of a recording that are slower than those to come: modules are loaded, caches
// fill, an allocator grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace daydream {

// Whether a step takes clearly longer than another, or than is usual. Chosen.
inline bool ClearlySlower(double step, double other) { return step > 1.15 * other; }

// How many of the first steps take clearly longer, each of them, than all behind them but one that
// takes clearly longer still, as a step with a stall does. At most half, and three are left. By
// their lengths, in order. O(steps).
size_t SlowerAtFirst(std::span<const int64_t> lengths);

}  // namespace daydream
