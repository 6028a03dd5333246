// Conditions of --fail-if: "speedup < 1.1", "step > 120ms", "step > +3%".
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace daydream {

// Known values by name: factors and shares without unit, times in nanoseconds.
struct GateValue {
  double value = 0;
  bool time = false;  // compared with durations; "+3%" and "-3%" are relative to `reference`
  double reference = 0;
  bool share = false;  // may be compared with "5%"
};
using GateValues = std::map<std::string, GateValue, std::less<>>;

struct Gate {
  std::string name;  // "speedup"
  std::string op;    // "<", "<=", ">", ">="
  double limit = 0;
  bool time = false;      // the limit is a duration in ns
  bool relative = false;  // the limit is a signed share of the reference
  bool percent = false;   // the limit is a share without sign
};

// What became of one --fail-if.
struct Verdict {
  std::string text;                // "speedup < 1.1", as it was given
  std::optional<bool> holds = {};  // the command fails; none: there is nothing to decide it by
};

// E0108 when the text is no condition.
absl::StatusOr<Gate> ParseGate(std::string_view text);
// True when the condition holds, that is when the command has to fail. E0108 when the name is
// unknown or the units do not fit.
absl::StatusOr<bool> GateHolds(const Gate& gate, const GateValues& values);
// Both, of every --fail-if.
absl::StatusOr<std::vector<Verdict>> JudgeGates(std::span<const std::string> texts,
                                                const GateValues& values);

}  // namespace daydream
