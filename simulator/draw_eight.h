// Sums of scenarios, each of which draws one of up to eight alternatives for what a sum is made of,
// eight scenarios side by side. Internal to report/ and simulator/.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace daydream {

// What is added to a sum: one of its alternatives, by what its slot draws.
struct DrawnSum {
  uint32_t sum;
  uint32_t slot;
  friend bool operator==(const DrawnSum&, const DrawnSum&) = default;
};

struct alignas(64) Alternatives : std::array<int64_t, 8> {};
// By scenario, the alternative of one slot: below 8.
using Choice = std::array<int64_t, 8>;

// In order of sums; a sum may be there several times, or not at all.
struct DrawnSums {
  std::span<const DrawnSum> drawn;
  std::span<const Alternatives> of;  // of each of them
  // Takes off those of sums below `sum`.
  DrawnSums Take(size_t sum);
};

// Makes sums[8 * i + scenario] of base[i] and what the scenario draws of `drawn`, whose sums are
// `first` + i; `choices` has one for each slot. O(base + drawn).
void DrawEight(std::span<const int64_t> base, size_t first, const DrawnSums& drawn,
               std::span<const Choice> choices, int64_t* sums);

}  // namespace daydream
