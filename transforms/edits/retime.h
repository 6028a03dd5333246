// How long a recorded kernel takes when its work changes and its GPU stays: what was measured,
// times what the cost model says of the new against the old. (costmodel/transfer.h: another GPU.)
//
//   time = floor + (measured - floor) * model(after) / model(before)
//
// The floor is what every kernel takes, whatever it does. The model is that of the op's shapes
// where they are known, else waves of blocks.
#pragma once

#include "base/time.h"
#include "costmodel/kernel_class.h"
#include "costmodel/op_shape.h"
#include "graph/graph.h"

namespace daydream {

// A kernel as recorded.
struct RecordedKernel {
  Duration time;
  KernelTraits traits;
  const KernelDetail* launch = nullptr;  // nullptr: not recorded
  const DeviceSpec* device = nullptr;    // nullptr: not known
};

// What becomes of the work of the op that launched it.
struct WorkChange {
  const OpWork *before = nullptr, *after = nullptr;  // nullptr: not known
  double growth = 1;                                 // where the two say nothing
};

// What the new time rests on.
enum class RetimedBy : uint8_t {
  kProducts,  // matrix products of its op
  kBytes,     // bytes that its op moves
  kWaves,     // blocks of its launch against what the GPU holds at once
  kGrowth,    // the growth of the work alone
  kFloor,     // it took no longer than any kernel does; what the model adds is added
};

struct Retimed {
  Duration time;
  RetimedBy by = RetimedBy::kGrowth;
};

// Work that stays gives the measured time back, to the nanosecond. O(tiles of the cost model).
Retimed Retime(const RecordedKernel& kernel, const WorkChange& change, Duration floor);

// What short kernels of this trace take: a tenth of its memory-bound kernels with fewer blocks than
// multiprocessors is shorter. From 1 to 10 us; 2 us where there are none (docs/cost-model.md).
// O(tasks).
Duration KernelFloor(const Graph& graph);

}  // namespace daydream
