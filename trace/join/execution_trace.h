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
};

// `trace` with the shapes of `path` at its ops. Ops are matched by name and by their place among
// the ops of that name, in order of time: the execution trace may hold one iteration or several,
// the profile any number of whole ones. Ops of a name that the profile does not hold a whole number
// of rounds of get none. New names go to the pool of `trace`. E0813: no execution trace, or nothing
// of it is in the profile.
absl::StatusOr<std::shared_ptr<const Trace>> WithShapesOf(std::shared_ptr<const Trace> trace,
                                                          const std::string& path,
                                                          ShapesFound* found);

}  // namespace daydream
