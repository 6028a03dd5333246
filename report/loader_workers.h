// Loader processes that the step waits for. A batch is ready when they have made it, and a GPU or a
// host that is done sooner only waits longer for it.
#pragma once

#include <optional>

#include "base/time.h"
#include "graph/graph.h"

namespace daydream {

struct LoaderWorkers {
  Duration batch;        // mean time from one batch to the next: FindLoaderRate()
  size_t every = 1;      // batches from one wait to the next, mostly: they come as many at a time
  bool is_sure = false;  // LoaderRate::is_sure
  size_t lay_ready = 0;  // batches that lay ready when the window began
};

// Whether the step waits for batches of loader processes over and over: next() of a loader whose
// name tells of them waited twice or more (FindLoaderRate()), mostly with few batches that lay
// ready in between. O(tasks).
std::optional<LoaderWorkers> FindLoaderWorkers(const Graph& graph);

// Makes such waits ends of work on a lane of its own: batches come as long after one another as
// recorded, whatever else the step does. What lay ready is taken to have been made with the last
// batch that was waited for. The graph plays as before. Returns what FindLoaderWorkers() does.
std::optional<LoaderWorkers> PlayLoaderWorkers(Graph& graph);

// Whether batches come from workers that the step never waits for, or not over and over: they keep
// up with it as it is, and how much faster they could be nobody knows. O(tasks).
bool WorkersKeepUp(const Graph& graph);

}  // namespace daydream
