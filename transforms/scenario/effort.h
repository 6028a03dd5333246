// What trying an optimization takes: its lines of code and its risks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transforms/core/editor.h"
#include "transforms/core/transform.h"

namespace daydream {

// The risks of an advice: "races, host memory" are two.
std::vector<std::string_view> RisksOf(std::string_view text);

// Lines that an effort stands for: "~20 lines" are 20, "~20 lines x 3" are 60, "1 word", "1
// number", "1 variable" and "1 command" count as a line. Infinite when it names no such number
// ("new kernels").
double LinesOf(std::string_view effort);

// As `advice` says, at each of the changed places of the program: "~7 lines" where that is a line a
// place, "~20 lines x 7" where it is more. What `changes` say of this program goes first.
std::string EffortOf(const Advice& advice, const Changes& changes);
// `advice` with the risk and the way that `changes` say of this program; its texts live as long as
// both. Its effort is as it was: EffortOf().
Advice AdviceFor(const Advice& advice, const Changes& changes);

// How easily it is tried, above 0 to 1, for AdviseOptions::ease: less by the square root of its
// lines (a tenth for a hundred), as any trial takes a run before and one after however short it is,
// and less for each risk.
double EaseOf(const Advice& advice);

}  // namespace daydream
