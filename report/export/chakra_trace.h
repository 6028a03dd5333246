// A timeline as a Chakra execution trace (.et): what depends on what and how long it takes, for
// ASTRA-sim and other simulators of networks. The opposite of trace/chakra/import.cc.
#pragma once

#include <cstdint>
#include <string>

#include "graph/graph.h"
#include "simulator/timeline.h"

namespace daydream {

struct ChakraExport {
  std::string bytes;
  uint64_t tasks = 0, nodes = 0;
  uint64_t dropped = 0;  // edges that would make work of no length wait for itself
  uint64_t unnamed = 0;  // collectives whose kind or bytes were not recorded: plain work
  Duration played;       // until the last task ends, when nodes start as soon as they may
};

// Of one rank. A node for each task; one for each gap behind a task, for each edge with a positive
// lag, and for each start or end of a task that other edges hang on: Chakra knows ends before
// starts only; what reaches back over the start of its task hangs on what that waits for (waits.h).
// Whole microseconds, as the format has it, with what is left over carried along the
// lane; exact times are in the attribute "duration_ns". `timeline` says which lags are there at
// once, and the order of lanes that may reorder. O((tasks + edges) log).
ChakraExport ChakraTrace(const Graph& graph, const Timeline& timeline);

}  // namespace daydream
