// Host time that one of several steps has and others do not, where no host work is known that
// takes it: a pause, a file that is written, a batch that came late.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "report/stalls.h"

namespace daydream {

// Stretches of the counted steps outside of operators, and waits for loader processes where only
// one step waits for them (no FindLoaderRate()), that take a millisecond more than in the steps'
// median. Stretches of several steps are compared by rank: the longest behind
// calls of one name in each, the second longest, and so on, so that it does not matter which of the
// calls the program paused behind. `kept` is that median: what lies beyond it is not the work that
// each step does, and it stays when that work is gone. Nothing of one step alone. O(tasks log
// tasks).
std::vector<Stall> FindLongerThanElsewhere(const Graph& graph);
// They are `waits`, and so are calls and operators of FindFarLonger(), but for what is
// known to be a stall.
void AddLongerThanElsewhere(const Graph& graph, Stalls& stalls);

}  // namespace daydream
