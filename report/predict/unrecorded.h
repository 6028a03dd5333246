// The step as it is when nobody records it, where the recording says what it cost.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "graph/recording_cost.h"

namespace daydream {

struct Unrecorded {
  CostTaken taken;
  Duration step;               // as replayed
  Duration shortest, longest;  // the same with each cost two standard errors larger and smaller
  // The median of the program's own steps that were not recorded; none: it has none.
  std::optional<Duration> measured;
};

// Takes what recording cost out of `graph`; nothing where the recording does not tell it, or no
// cost is larger than its error. O(tasks + edges) for each of three replays.
absl::StatusOr<std::optional<Unrecorded>> LeaveOutRecording(Graph& graph);

// "a call 3.0 us, a piece of GPU work 1.0 us": what was taken for each.
std::string CostTakenText(const CostTaken& taken);

// "recording cost 0.8 ms of host work a step (a call 3.0 us), left out here: the step is 9.1 ms".
std::string UnrecordedText(const Unrecorded& unrecorded);

}  // namespace daydream
