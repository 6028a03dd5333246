// Operators that a host without a free core holds up: `aten::view` takes microseconds, and now and
// then 30 ms, because something else had the core.
#pragma once

#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "report/questions/findings.h"

namespace daydream {

// What is said of it where ranks exchange anything (KeepAsWaits()).
inline constexpr std::string_view kHeldUpStays =
    ". Other ranks wait meanwhile, so predictions keep this time, and no option saves any of it";

// A finding about what the steady step leaves out of one rank, or of ranks played together.
inline bool TellsOfOneTime(const Finding& f) {
  return f.kind == FindingKind::kOneTime ||
         (f.kind == FindingKind::kAllocator && f.about == About::kStep);
}

// "326 ms recorded a step; 31.6 ms without this: " before what a finding of that kind says.
std::string WithBoth(const Finding& f, Duration recorded, Duration steady);

// One finding where many such operators, of several names, make up a fifth of the recording; by
// their own time, without the calls and operators inside of them. Work that waits for other
// processes or for batches is left out. Empty for a graph without a trace. O(rows log rows).
std::vector<Finding> FindingsOfOpStalls(const Graph& graph);

}  // namespace daydream
