// Shapes of ops from a PyTorch execution trace (ExecutionTraceObserver; the Chakra schema builds on
// it), for a profile of the same program that was recorded without shapes.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "trace/trace.h"

namespace daydream {

struct ShapesFound {
  size_t ops = 0;      // framework ops of the trace
  size_t known = 0;    // of them had shapes already
  size_t matched = 0;  // got theirs from the execution trace
  size_t nodes = 0;    // of the execution trace, with shapes
  size_t agree = 0;    // of them are of names that the profile holds the same number of rounds of

  // Hardly the whole program on one of both sides.
  bool doubtful() const;
};

// `trace` with the shapes of `path` at its ops. The execution trace may hold one iteration or
// several, the profile others: but every op of a program is in the profile as many times more often
// as all others are. This number of rounds is that of most nodes. Ops of names that agree with it
// get the shapes of the node at their place among those of the name, in order of time, as long as
// they end with a whole round of shapes; others get none. New names go to the pool of `trace`.
// E0813: no execution trace, less than 80 % of its nodes agree, or none is left without shapes.
absl::StatusOr<std::shared_ptr<const Trace>> WithShapesOf(std::shared_ptr<const Trace> trace,
                                                          const std::string& path,
                                                          ShapesFound* found);

}  // namespace daydream
