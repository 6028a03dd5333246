// How long a recorded kernel takes when its work, its GPU, or both change: what was measured, times
// what the cost model says of the new against the old.
//
//   time = floor + (measured - floor) * model(after) / model(before)
//
// The floor is what every kernel takes, whatever it does; a kernel that takes no longer stays. The
// model is that of the op's shapes where they are known, else waves of blocks or sustained rates.
#pragma once

#include "base/time.h"
#include "costmodel/kernel_class.h"
#include "costmodel/op_shape.h"
#include "costmodel/roofline.h"
#include "graph/graph.h"

namespace daydream {

// Circumstances of a kernel, as recorded or as wanted.
struct KernelSetting {
  const DeviceSpec* device = nullptr;  // nullptr: not known
  const OpWork* work = nullptr;        // of the op that launched it; nullptr: not known
  DType format = DType::kUnknown;      // in which matrix kernels multiply; kUnknown: of `work`
  double growth = 1;                   // of the work, for kernels whose `work` is not known
  Duration floor;                      // no kernel takes less here
};

// On another GPU a kernel keeps only part of its deviation from the model: time = model(after) *
// (measured / model(before) / typical) ^ own. `typical` is the usual deviation of kernels like it
// in this trace (1 = none known). 1 keeps all: right where the GPU stays (docs/cost-model.md).
struct Deviation {
  double own = 1, typical = 1;
};

// What the new time rests on.
enum class RetimedBy : uint8_t {
  kProducts,  // matrix products of its op
  kBytes,     // bytes that its op moves
  kWaves,     // blocks of its launch against what the GPU holds at once
  kRates,     // sustained rates of its class of kernels
  kGrowth,    // the growth of the work alone
  kFloor,     // it took no longer than any kernel does; what the model adds is added
};

struct Retimed {
  Duration time;
  RetimedBy by = RetimedBy::kGrowth;
};

// `launch` may be null. Equal settings give `measured` back. O(tiles of the cost model).
Retimed Retime(Duration measured, KernelClass kind, const KernelDetail* launch,
               const KernelSetting& before, const KernelSetting& after, Deviation deviation = {});

// Blocks of this launch that run on `device` at once: limited by threads, registers and shared
// memory. 0 when the launch or the device is not known.
double BlocksAtOnce(const DeviceSpec& device, const KernelDetail& launch);

// What short kernels of this trace take: a tenth of its memory-bound kernels with fewer blocks than
// multiprocessors is shorter. At most 10 us; 2 us where there are none (docs/cost-model.md).
// O(tasks).
Duration KernelFloor(const Graph& graph);

}  // namespace daydream
