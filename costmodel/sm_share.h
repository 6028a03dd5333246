// How long a kernel takes when it may use only a part of a GPU's multiprocessors (MPS, green
// contexts) or of its memory bandwidth. Multiprocessors work through the blocks of the grid in
// waves; memory is saturated by some of them already. Kernels have a knee: beyond it, more
// multiprocessors do not help (Dhakal et al., arXiv 2008.03602; D-STACK, arXiv 2304.13541).
#pragma once

#include "costmodel/occupancy.h"

namespace daydream {

// What a kernel asks of the GPU.
struct ShareDemand {
  LaunchShape launch;  // blocks = 0: not recorded; then work divides evenly
  // Time that its arithmetic and its memory traffic would take alone, in any unit; the longer one
  // is the kernel's.
  double arithmetic = 1, memory = 0;
};

struct ShareRules {
  // Share of the multiprocessors whose loads saturate the memory.
  double saturation = 0.5;
  // Share of the bandwidth that is there for the kernel.
  double bandwidth = 1;
};

// Multiprocessors in a share: whole ones, at least one.
int MultiprocessorsIn(const DeviceSpec& device, double share);

// Time with `share` of the multiprocessors over time with all of them and the whole bandwidth: 1
// for 1, never below 1, and never larger for a larger share.
double ShareSlowdown(const DeviceSpec& device, const ShareDemand& demand, double share,
                     const ShareRules& rules);

// The smallest share, in whole multiprocessors, that costs at most `slower` (0.05 = 5 %).
double KneeOf(const DeviceSpec& device, const ShareDemand& demand, double slower,
              const ShareRules& rules);

// The part of the GPU that a kernel keeps busy while it runs alone, so that others have the rest:
// of multiprocessors or of bandwidth, whichever it needs more of.
double PartInUse(const DeviceSpec& device, const ShareDemand& demand, const ShareRules& rules);

}  // namespace daydream
