// What a scenario makes of the peak of memory, and whether that fits.
#pragma once

#include "report/predict/what_if.h"

namespace daydream {

// Fills peak and memory_change of `p` from its changes; without a peak of the recording only the
// changes themselves are known. Adds a warning where the memory that the scenario says does not
// hold the peak, or where that is not known of a smaller memory than `recorded`.
void TellMemory(const MemoryProfile& recorded, Prediction& p);

}  // namespace daydream
