// The time of a kernel on another GPU from nothing but its launch: wave scaling (Yu et al.,
// Habitat, USENIX ATC 2021, section 3.3).
//
//   t' = ceil(B/W') * (D/D' * W'/W)^g * (C/C')^(1-g) / ceil(B/W) * t            (1)
//   t' =              (D/D')^g * (W/W')^(1-g) * (C/C')^(1-g) * t                (2), many waves
//
// B blocks, W blocks in a wave, D bandwidth, C clock of each GPU; g says how much memory counts: it
// is 1 - x/2R for a kernel of arithmetic intensity x below the ridge R of the new GPU, R/2x above.
//
// Not in the paper: in (1), W is at most B, as blocks that are not there take no bandwidth; and
// t'/t stays between the ratios of bandwidth and of arithmetic (processors x C), so that counting
// waves makes no kernel slower on a GPU that is better in both.
#pragma once

#include <optional>

#include "costmodel/occupancy.h"

namespace daydream {

struct WaveScaling {
  double factor = 1;  // t' / t
  double gamma = 1;
  double waves_from = 0, waves_to = 0;
  bool rounded = false;  // formula (1): the waves are few enough to be counted
};

struct WaveOptions {
  // FLOPs per byte, from counters or from the shapes of the operation. Without: g = 1, the
  // counter-less form, in which only bandwidth and whole waves count.
  std::optional<double> intensity;
  // The paper compares clocks only. Generations differ in arithmetic units per multiprocessor
  // (V100 has 64, H100 128; those of an MI300X issue twice), so C is clock x units unless this is
  // false.
  bool count_units = true;
};

// 1 for a GPU and itself.
WaveScaling ScaleWaves(const DeviceSpec& from, const DeviceSpec& to, const LaunchShape& launch,
                       const WaveOptions& options);

}  // namespace daydream
