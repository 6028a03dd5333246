// Calls that wait for the GPU and come back long after it is done: the host was held up in them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace daydream {

struct HeldWaits {
  std::optional<Graph> graph;  // that it is then; none: there are no such calls
  std::vector<TaskId> calls;   // that take what was waited too long
  uint64_t delays = 0;         // that were unexplained and are such calls
  Duration delay_time;         // of these
};

// The graph has the time from the end of the awaited work to the return of a call as a lag, which
// is no work of anybody. Where it is 20 times what such calls take and a millisecond more, what is
// beyond that becomes a call of its own behind the wait, of the same name: so it can be told, taken
// out or kept as what a launch takes too long. Likewise where a copy whose call waits for it begins
// so long after everything that it waits for: the call submitted it so late. The graph plays as
// before. O(tasks + edges log edges).
HeldWaits SplitHeldWaits(const Graph& graph);

}  // namespace daydream
