// A recording that goes on behind a pause as if there had been none, as where two of them became
// one file: GPU work that was launched behind the pause was recorded with the wait for what had
// been launched before it, which was done long ago.
#pragma once

#include <memory>
#include <span>

#include "graph/graph.h"
#include "report/stalls.h"

namespace daydream {

// The trace of `graph` as it would have been recorded without the pauses among `stalls`: host work
// behind a pause, and GPU work that was launched behind it, are so much earlier. Rules then find
// the waits for the earlier work; no edit of the graph brings them back. Rows stay where they are.
// nullptr where that cannot be: there is no pause, some host work was recorded within one, or GPU
// work would begin before its stream has done the work before it, as where the GPU had nothing left
// when the program went on. And where the GPU was not behind, so that nothing waited: TakeOut()
// says the same. O(rows log rows).
std::shared_ptr<const Trace> WithoutPauses(const Graph& graph, std::span<const Stall> stalls);

}  // namespace daydream
