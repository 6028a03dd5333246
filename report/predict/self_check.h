// Checks of a replay that can fail. The unchanged replay copies every lag of the recording, so it
// is right wherever the rules are not contradicted; these take something of the recording away.
#pragma once

#include <optional>
#include <string>

#include "graph/graph.h"

namespace daydream {

// Steps that follow one another, played as one: what each leaves to the next is in it.
struct RunsOff {
  double error = 0;  // signed share
  size_t steps = 0;  // of a run
};

// Steps played in a way that the recording does not dictate, against what they took.
struct StepTest {
  double error = 0;  // signed share: mean of the steps as played / as measured - 1
  size_t steps = 0;  // that were played
  // The step that is furthest off: "ProfilerStep#12", and its own signed error.
  std::string worst_step;
  double worst = 0;
  std::optional<RunsOff> runs;  // of RepeatTest() alone
};

// How far the step shrinks, as a share of it, when delays that no rule explains take no time: what
// is only known from the recording. `step` is its StepTime(). None where lanes may reorder.
std::optional<double> UnexplainedShare(const Graph& graph, Duration step);

// Each counted step, played four times by itself (graph/repeat.h): the last of them against what
// that step took. Of several, not the last, behind which the host does what ends a recording. At
// most 8 steps, evenly chosen, fewer of graphs with more than 500,000 tasks. None where none can be
// asked.
// A host that is ahead of its GPU in a long step hides a short one behind it, so that each by
// itself takes longer than both did. Where the mean is off by more than 3 %, `runs` are played:
// those that leave the host as far ahead as they found it (within 1 %), and so take over and over
// what they took, the shortest that are half of all; or else both halves, or all of fewer than 4.
std::optional<StepTest> RepeatTest(const Graph& graph);

// All counted steps at once, each with the lags, gaps and unexplained delays that the same places
// of the other counted steps have (their median), while work takes what it took. The same place is
// the n-th operation of its name on its lane. None with fewer than two counted steps, or where
// lanes may reorder.
std::optional<StepTest> CrossTest(const Graph& graph);

}  // namespace daydream
