// A step that the PyTorch profiler recorded has host work that is too long, by an amount that
// nothing in the trace tells. How far that moves a prediction is part of its interval.
#pragma once

#include <optional>

#include "graph/graph.h"
#include "report/predict/replays.h"

namespace daydream {

// The least share of the recorded host work that the program's own is: a step that its host bounds
// took 31.8 ms with the profiler and 15.4 without (an MLP on an H200, tests/data/h200), the most of
// four programs; the least was 1.16 times (report/predict/profiler_note.h).
constexpr double kQuickestHost = 15.4 / 31.8;

// Whether this trace holds host work of that kind.
bool HostIsStretched(const Graph& graph);

// The step of `graph`, which `replays` plays, when all host work takes that least share of what it
// takes there. None where its lanes may reorder. O(tasks + edges).
std::optional<Duration> OverQuickHost(const Graph& graph, Replays& replays);

}  // namespace daydream
