// Work between marks of steps: of a step whose mark is missing, or behind a mark that ends early.
#pragma once

#include <span>

#include "trace/step_launches.h"
#include "trace/steps.h"

namespace daydream {

// Where work lies between the end of a mark and the next, puts a step there that does not count,
// or, where most marks leave some, lets each step go on to the next; the last one to `lane_end`.
// Around a mark that is alone, what is made of the same launches is steps that do not count either.
// O(launches + steps).
void CloseGaps(std::span<const Launch> launches, Instant lane_end, Steps& steps);

// "ProfilerStep#12": 12; INT64_MIN where the label ends with no number.
int64_t NumberOfLabel(std::string_view label);

}  // namespace daydream
