#include "transforms/scenario/turn.h"

#include <algorithm>

#include "transforms/optimizations/optimizations.h"

namespace daydream {

size_t TurnOf(const Application& a) {
  const std::span<const Transform* const> all = Transforms();
  const auto it = std::find(all.begin(), all.end(), a.transform);
  return it == all.end() ? 0 : static_cast<size_t>(it - all.begin()) + 1;
}

void PutInTurn(std::vector<Application>& scenario) {
  std::stable_sort(
      scenario.begin(), scenario.end(),
      [](const Application& a, const Application& b) { return TurnOf(a) < TurnOf(b); });
}

}  // namespace daydream
