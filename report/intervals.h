// How far a prediction may be off, and the word for it.
#pragma once

#include <span>
#include <vector>

#include "report/what_if.h"

namespace daydream {

// Step times with one parameter at an end of its plausible range and all others unchanged.
struct ParamEnds {
  Duration at_low, at_high;
};

// Fills low, high, confidence and why of `p`.
//
// The half-widths are root sums of squares, since the parts are independent, of
//   replay   the larger of |replay error| and |typical error|, times the step: what the rules
//            get wrong about this trace without any change;
//   spread   1.645 standard errors of the median of the measured steps (1.2533 spread /
//            sqrt(steps)), times the step: 90 % of a normal distribution;
//   params   for every parameter with a plausible range that the user did not fix, how far the
//            step moves when it is put at either end; upward moves widen the upper side only.
//
// The word: low when the replay is off by more than 3 %, or the typical replay by more than 10 %,
// or the interval is wider than 30 % of the step, or a transform warned; high when the replay is
// within 1 %, the typical one within 3 %, the interval no wider than 5 % and the step no more than
// a fifth shorter or longer, since the kernel models behind larger changes have errors of their own
// that the interval does not know; else medium.
void SetInterval(Prediction& p, const ReplayCheck& replay, std::span<const ParamEnds> params);

}  // namespace daydream
