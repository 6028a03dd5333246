// What a program does once is often more than its stall: copies before a checkpoint is written, the
// first batch behind workers that were started again. Internal to report/.
#pragma once

#include <span>
#include <string>

#include "graph/graph.h"
#include "report/stalls.h"
#include "simulator/timeline.h"

namespace daydream {

// Steps from which stalls were taken, and which still take a tenth more (chosen) than the longest
// of the others that count, do not count any more, where three others do. Says which, and how much
// longer: "; ProfilerStep#6 does not count: without it, it still takes 50.1 ms more than any
// other"; or "". `timeline` is of `graph`, without the stalls. O(tasks + stalls log steps).
std::string LeaveOutRestOfEvents(std::span<const Stall> stalls, const Timeline& timeline,
                                 Graph& graph);

}  // namespace daydream
