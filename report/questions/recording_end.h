// What the host does at the end of a recording of one step, such as to end the loader's workers.
#pragma once

#include <optional>

#include "graph/graph.h"
#include "report/questions/findings.h"

namespace daydream {

// Where the only step that counts began while the GPU was at work on the step before, but ends with
// a GPU that is done long before its host is: had the step before ended so, the GPU would have been
// done, too. So the time outside of operators behind the step's last launch, up to the end of the
// recording, is no part of a step, and is taken out of `graph`; the window of the step ends with
// its GPU work and stays. None: there is no such time. O(tasks + edges).
std::optional<Finding> LeaveOutEnd(Graph& graph);

}  // namespace daydream
