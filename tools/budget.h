// What may be spent on trying an optimization, for --budget.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "transforms/core/transform.h"

namespace daydream {

struct Budget {
  double lines = std::numeric_limits<double>::infinity();  // of code, for a whole set
  std::vector<std::string> only, never;                    // risks
};

// 'effort<=20 lines', 'risk=none', 'risk!=numerics'; E0710 for other texts.
absl::StatusOr<Budget> ParseBudget(std::span<const std::string> texts);

// E0710 for a risk that none of `known` has, and that is not "none".
absl::Status CheckRisks(const Budget& budget, std::span<const Transform* const> known);

// Lines that an effort stands for: "~20 lines" are 20, "1 word", "1 number", "1 variable" and
// "1 command" count as a line. Infinite when it names no such number ("new kernels").
double LinesOf(std::string_view effort);
// As `advice` says; what takes a line takes one at each place of the program that it changes.
std::string EffortOf(const Advice& advice, const Changes& changes);

// How easily it is tried, above 0 to 1, for AdviseOptions::ease: less by the logarithm of its lines
// (a fourth for a hundred), and less for each risk.
double EaseOf(const Advice& advice);

// Why an optimization is over the budget, or "".
std::string OverBudget(const Budget& budget, const Advice& advice);

}  // namespace daydream
