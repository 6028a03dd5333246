// A replay of `steps` steps of 100 ms that took as long as was measured.
#pragma once

#include "report/predict/self_check.h"

namespace daydream {

inline ReplayCheck ExactReplay(size_t steps) {
  ReplayCheck replay;
  replay.measured = replay.simulated = Duration::Ms(100);
  replay.steps = steps;
  return replay;
}

}  // namespace daydream
