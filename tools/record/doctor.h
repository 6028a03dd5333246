// Whether recording can work here, and what to do if not: the checks behind `daydream doctor` and
// the ones that `daydream trace` makes before it runs anything.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "tools/record/machine.h"
#include "tools/record/options.h"

namespace daydream {

enum class Fitness : uint8_t { kOk, kWarning, kFailure };

struct Check {
  Fitness health = Fitness::kOk;
  std::string about;  // "driver"
  std::string text;   // what was found
  std::string fix;    // what to do about it; empty when nothing is wrong
};

// All checks, in the order in which recording needs what they look at. Takes a second or two.
std::vector<Check> Examine(const Environment& environment);

// E0502 without a GPU that a program can use, with the reason and what to do.
absl::Status CheckGpu(const Driver& driver);
// E0503 when this build has no recorder.
absl::Status CheckRecorder(const RecorderFiles& files);

}  // namespace daydream
