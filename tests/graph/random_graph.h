// Random graphs for tests: valid by construction, equal for equal seeds on every machine.
#pragma once

#include <cstdint>
#include <functional>

#include "graph/graph.h"

namespace daydream {

struct RandomGraphOptions {
  size_t tasks = 40;
  size_t lanes = 4;
  size_t priority_lanes = 0;  // the last lanes; the others have a fixed order
  double edges_per_task = 1.5;
  int64_t longest = 50;       // ns; durations, gaps and lags are small, so that ties are frequent
  bool negative_lags = true;  // and negative gaps after GPU work
  bool removed = true;
  bool overlaps = true;
};

// `random` gives 64 random bits a call. Ids follow a topological order in one graph of three; in
// the others each lane is numbered in one go, as graph construction does, or ids are mixed.
Graph RandomGraph(const std::function<uint64_t()>& random, const RandomGraphOptions& options);
Graph RandomGraph(uint64_t seed, const RandomGraphOptions& options = {});

}  // namespace daydream
