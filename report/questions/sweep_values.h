// The values of a sweep, written where a single value would stand in --opt:
//
//   prefetch(workers=1..8)                   1 2 3 4 5 6 7 8
//   prefetch(workers=1..16*2)                1 2 4 8 16
//   pin-memory(rate=10GB/s..25GB/s+5GB/s)    10GB/s 15GB/s 20GB/s 25GB/s
//   amp(dtype={bf16,fp16})                   a list, whose members may be ranges
//
// Several of them are crossed: every value of each with every value of the others, the last one
// changing fastest.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace daydream {

// A parameter that is varied.
struct SweepAxis {
  // "prefetch.workers", also for a first value without a name ("./mine.yaml.1" where the parameters
  // are those of a file); "speedup#2.by" for the same parameter of a second one.
  std::string name;
  std::vector<std::string> values;
};

// One scenario of a sweep.
struct SweepPoint {
  std::string spec;                 // for ParseScenario()
  size_t sweep = 0;                 // which of the --opt it belongs to
  std::vector<std::string> values;  // one for each axis of that sweep
};

struct SweepPlan {
  std::vector<std::vector<SweepAxis>> axes;  // by --opt
  std::vector<SweepPoint> points;
};

inline constexpr size_t kMostSweepPoints = 100'000;

// E0701 when a range holds no value, or there are more than kMostSweepPoints points. What is no
// range or list is left as it is, for ParseScenario() to judge.
absl::StatusOr<SweepPlan> PlanSweep(std::span<const std::string> specs);

}  // namespace daydream
