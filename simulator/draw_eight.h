// Sums of eight scenarios, each of which draws one of up to eight alternatives for what a sum is
// made of. Internal to report/ and simulator/.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace daydream {

// Which sum is drawn, and from what: all that belongs to one slot is drawn together.
struct DrawnSum {
  uint32_t sum;
  uint32_t slot;
  bool more;     // adds to what an earlier one has made of the sum
  int64_t base;  // of the sum, without what is drawn
};

using Alternatives = std::array<int64_t, 8>;
// By scenario, the alternative of one slot: below 8.
using Choice = std::array<int64_t, 8>;

// Makes sums[8 * sum + scenario] of `base` and of that alternative. `of` holds one entry for each
// of `drawn`, `choices` one for each slot. O(drawn).
void DrawEight(std::span<const DrawnSum> drawn, std::span<const Alternatives> of,
               std::span<const Choice> choices, int64_t* sums);

}  // namespace daydream
