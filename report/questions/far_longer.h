// Calls and operators that take far longer in some steps than the same work does in others: a
// collection of garbage, another process on the core, code that is loaded. Where the profiler shows
// it inside of a call that each step makes hundreds of times, its name tells nothing.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"

#include "graph/graph.h"
#include "report/questions/findings.h"
#include "report/stalls.h"

namespace daydream {

// Calls and own time of operators of the counted steps that take 20 times what their name usually
// takes on their thread, and 5 ms or a tenth of a step more. The n-th of a name is the same work in
// each step, give or take as many as one step has more of than another: what does so in more than
// half of the steps is the program's own and is none. `kept` is what the name usually takes.
// Nothing of one step alone, of fetches of batches, of WaitsForOthers(), and of a name that has
// more than 4096 of them on a thread. O(tasks log tasks + the square of those of a name).
std::vector<Stall> FindFarLonger(const Graph& graph);

// What steps are longer for those of the waits that are `far`, as far as the GPU was behind when
// they began, it had something to do meanwhile, and waited for the host afterwards. In the graph
// and in `waits` they take as long as that: what no option saves is what they cost, and the rest of
// the step is what it is without them. All have an equal share of what they take. Two replays.
absl::Status TakeWhatItCosts(std::vector<Stall>& waits, Graph& graph);

// What is said of the waits that are no batches, by what they take as recorded. Where steps differ
// and the GPU had nothing to do meanwhile for a tenth of the recording, that puts the step in
// doubt; where not, only those that are `far` are told. What takes less than a tenth of the longest
// is not counted. None: there are none.
std::optional<Finding> FindingOfSomeSteps(const Graph& graph, const Stalls& stalls,
                                          bool steps_differ);

}  // namespace daydream
