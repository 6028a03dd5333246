// A recorded program is slower than one that nobody records. What a recording says that each of its
// calls, pieces of GPU work and marks of layers cost (RecordingCost of trace/trace.h) is taken out
// of the time of the host threads that did them, so that the graph is that of the program alone.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "graph/graph.h"

namespace daydream {

// What is taken for each, in nanoseconds; 0: nothing.
struct CostOfEach {
  double call = 0, work = 0, layer_mark = 0;
  bool any() const { return call > 0 || work > 0 || layer_mark > 0; }
};

// What `graph` was recorded with says of them. A cost is 0 where it is not told or is not above its
// error, which is two standard errors; `errors` of these, from -1 to 1, are added to the others.
CostOfEach CostOfEachIn(const Graph& graph, double errors = 0);

struct CostTaken {
  CostOfEach each;
  uint64_t calls = 0, work = 0, layer_marks = 0;  // for which it was taken
  Duration taken;                                 // of all host threads
  Duration in_step;                               // of it, in a step that counts: the mean
  Duration not_taken;                             // there was no host time left to take it from
};

// Takes `each` out of the host's time. A record of a call is written when the call has ended, so
// its cost is taken from the time after the call, up to the next one; that of GPU work from the
// call that launches it; that of a mark from where it lies. Where that time is too short, the rest
// is taken from the call itself, then from what follows on the thread. No duration and no gap
// becomes negative, and calls that wait for something keep their own work. Lags and GPU work stay.
// REQUIRES: the graph of a Trace, whose tasks still are in recorded order. O(tasks + rows).
CostTaken TakeOffRecordingCost(const CostOfEach& each, Graph& graph);

}  // namespace daydream
