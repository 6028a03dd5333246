#include <algorithm>
#include <array>

#include "simulator/contract.h"

namespace daydream {

void EvaluateDrawn(const Program& p, std::span<const int64_t> base, DrawnSums drawn,
                   std::span<const std::vector<Choice>> groups, int64_t* instants) {
  constexpr size_t kRows = 128, kSums = 2 * kRows;
  alignas(64) std::array<int64_t, kSums * kSideBySide>
      sums;  // 16 KiB: what is drawn stays in the first cache
  std::vector<Standing> at(groups.size());
  const size_t of_group = 2 * p.tasks * kSideBySide;
  for (size_t first = 0; first < 2 * p.rows.size(); first += kSums) {
    const auto here = base.subspan(first, std::min(kSums, 2 * p.rows.size() - first));
    const DrawnSums of_rows = drawn.Take(first + here.size());
    for (size_t g = 0; g < groups.size(); ++g) {
      DrawEight(here, first, of_rows, groups[g], sums.data());
      EvaluateEight(p, at[g], kRows, sums.data(), instants + g * of_group);
    }
  }
}

}  // namespace daydream
