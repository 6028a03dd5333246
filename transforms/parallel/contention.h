// Collectives and compute that share a GPU slow each other down: a collective holds processors and
// memory bandwidth that compute would have, and the other way round.
#pragma once

#include <vector>

#include "transforms/core/editor.h"

namespace daydream {

struct Overlapped {
  LaneId stream;  // of the compute
  struct Collective {
    TaskId task;
    TaskId behind;  // the kernel of `stream` that it waits for
  };
  std::vector<Collective> collectives;  // one after the other
};

// Gives compute and collectives the time that they take when both go at `rate` (0 to 1] of their
// speed while both run. Kernels begin as recorded, or later where one before them is longer now;
// collectives when the kernel before them ends. One pass over the stream: waits of the host are not
// in it. O(tasks of the stream).
void Stretch(Editor& edit, const Overlapped& overlapped, double rate);

}  // namespace daydream
