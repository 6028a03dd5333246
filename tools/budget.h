// What may be spent on trying an optimization, for --budget.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "transforms/core/transform.h"
#include "transforms/scenario/effort.h"

namespace daydream {

struct Budget {
  double lines = std::numeric_limits<double>::infinity();  // of code, for a whole set
  std::vector<std::string> only, never;                    // risks
};

// 'effort<=20 lines', 'risk=none', 'risk!=numerics'; E0710 for other texts.
absl::StatusOr<Budget> ParseBudget(std::span<const std::string> texts);

// E0710 for a risk that none of `known` has, and that is not "none".
absl::Status CheckRisks(const Budget& budget, std::span<const Transform* const> known);

// Why an optimization is over the budget, or "".
std::string OverBudget(const Budget& budget, const Advice& advice);

}  // namespace daydream
