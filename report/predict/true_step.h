// The step as it is without the profiler. Recording takes time on the host: so much for each
// operator and call. Told how long the step takes in truth, we take that off again.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"

namespace daydream {

struct TrueStep {
  Duration asked;      // what the user named
  Duration target;     // what the step takes now
  Duration recorded;   // what it took while it was recorded, as replayed
  Duration per_event;  // what each piece of host work takes less now
  double tasks = 0;    // of these pieces, in a step
  // The other way to have it: all host work takes this share of what was recorded.
  double share = 1;
  // That other way against the first, by task: multiples of the durations and gaps of the graph.
  std::vector<float> other;

  bool reached() const { return target <= asked.Scaled(1.01); }
};

// `graph`, which was edited since, with the host work of that other way.
Graph OverOtherHost(const TrueStep& step, Graph graph);

// "101ms" or "9.9/s". E0104 unless it is a time or a rate above 0.
absl::StatusOr<Duration> ParseTrueStep(std::string_view text);

// Takes the same time from each piece of host work in `graph`, but never more than it has, so that
// the replayed step takes `target`; to a thousandth of it. Recording makes GPU work a little
// longer, too, which stays: below a hundredth over its GPU work the step is not reached(). E0621
// when `target` is longer than recorded, or more than a tenth below what is left when the host
// takes no time, which is more than recording adds to GPU work. O(tasks + edges) for each of about
// 40 replays.
absl::StatusOr<TrueStep> TakeOffRecording(Duration target, Graph& graph);

}  // namespace daydream
