// What transforms made of the model where tasks do not tell: other widths and fates of what ops
// keep, more or fewer parameters, another GPU. The models of memory and of kernels ask it; no rule
// of the graph and no replay does. It goes with a graph from copy to copy.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace daydream {

struct DeviceSpec;  // costmodel/device.h
struct Fabric;      // costmodel/network/fabric.h

// What became of a recorded op, and of what it keeps for the backward pass
// (transforms/analysis/saved_tensors.h).
struct OpChange {
  double width = 1;    // bytes an element, against the recorded type
  double kept = 1;     // share of what it keeps that stays on the GPU until backward
  uint32_t group = 0;  // ops of one group are one kernel now; 0: of none
  double between = 1;  // share of what passes between ops of the group that is still kept
  // What is on the GPU again for backward: `share` of what it keeps, together with all else of the
  // same unit, from the begin of `from` on (None: from the unit's first backward work on).
  struct Return {
    uint32_t unit = 0;
    TaskId from;
    double share = 0;
  };
  std::vector<Return> returns = {};
};

struct ModelChanges {
  std::unordered_map<uint32_t, OpChange> ops;  // by scope
  // How many times the parameters of the recorded model there are, by layers that came or went.
  double parameter_growth = 1;
  // The GPU in the place of every recorded one; nullptr: as recorded.
  std::shared_ptr<const DeviceSpec> device;
  // The network that ranks were joined by; nullptr: as recorded.
  std::shared_ptr<const Fabric> fabric;
  // What takes longer as it shares the GPU with collectives: what it takes alone.
  std::map<TaskId, Duration> alone;
  uint32_t units = 0;  // groups, units of an OpChange and copies of work that have a number

  // nullptr: nothing became of it.
  const OpChange* Of(ScopeId op) const {
    if (ops.empty()) return nullptr;
    const auto it = ops.find(static_cast<uint32_t>(op.index()));
    return it == ops.end() ? nullptr : &it->second;
  }
};

}  // namespace daydream
