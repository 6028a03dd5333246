// GPU work that began late for no reason that a rule knows.
#pragma once

#include <optional>

#include "graph/build.h"
#include "report/questions/findings.h"
#include "report/stalls.h"

namespace daydream {

// Where such delays are a twentieth of the recording, without what `stalls` take out of both. Of a
// graph as built, of which `steps` count. O(tasks log stalls).
std::optional<Finding> FindingOfDelays(const Graph& graph, const BuildReport& report,
                                       const Stalls& stalls, size_t steps);

}  // namespace daydream
