// Steps that differ: their middle, and a picture of them.
#pragma once

#include <span>
#include <string>

#include "base/time.h"

namespace daydream {

struct StepLengths {
  Duration shortest, lower, median, upper, longest;  // lower and upper: quartiles
  Duration mean;
  // Whether they differ by more than a tenth of their mean.
  bool uneven() const;
};

// Quantiles lie between the two nearest values, on a straight line. All 0 without steps.
StepLengths LengthsOf(std::span<const Duration> steps);

// The steps in order, from '_' (the shortest) over ". : - = + *" to '#' (the longest), a character
// each; beyond `width` of them each character is the longest of as many steps: "__#___#___#_".
std::string Sparkline(std::span<const Duration> steps, size_t width = 40);

}  // namespace daydream
