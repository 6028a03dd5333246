// Whether what a scenario takes fits into the memory that it says.
#pragma once

#include "report/predict/what_if.h"

namespace daydream {

// Adds a warning where it does not, or where that is not known of a smaller memory than `recorded`.
void WarnOfCapacity(const MemoryProfile& recorded, Prediction& p);

}  // namespace daydream
