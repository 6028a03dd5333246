// How long a recorded kernel takes when its work changes and its GPU stays: what was measured,
// times what the cost model says of the new against the old. (costmodel/transfer.h: another GPU.)
//
//   time = floor + (measured - floor) * model(after) / model(before)
//
// The floor is what every kernel takes, whatever it does. The model is that of the op's shapes
// where they are known. Else a kernel that only goes over memory follows its work, however many
// blocks it has (normalization launches one a channel, and each walks over the batch), and a
// product that gets larger follows waves of its blocks: those that fit on the GPU run side by side.
// For one that gets smaller waves are the most: the kernel as it is, with idle multiprocessors. Its
// work is the least: libraries pick smaller blocks, or split sums, to keep the GPU busy.
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
  double fill = 0.5;  // how far a library keeps the GPU busy with less: 0 waves, 1 work
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
