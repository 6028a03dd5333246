// The rows of a sweep that no other row beats.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "report/questions/sweep.h"

namespace daydream {

enum class SweepGoal : uint8_t {
  kStep,    // the step, the shorter the better
  kMemory,  // the peak of GPU memory, the lower the better
};

// "step,memory"; E0712 for other goals, and for one that is there twice.
absl::StatusOr<std::vector<SweepGoal>> ParseGoals(std::string_view text);

// Whether a row can be on the front: no limit, predicted, and known by every goal.
bool Comparable(const SweepRow& row, std::span<const SweepGoal> goals);

// For each of `rows` whether it is on the front: neither another row nor the recorded step is at
// least as good in every goal and better in one. Rows that are not Comparable() are not. O(n log
// n).
std::vector<bool> OnFront(std::span<const SweepRow> rows, Duration baseline,
                          std::span<const SweepGoal> goals);

}  // namespace daydream
