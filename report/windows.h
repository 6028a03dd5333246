// The stretches of a timeline that count: one per measured step, as StepPeriods() cuts them.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/step_windows.h"
#include "simulator/critical_path.h"
#include "simulator/timeline.h"

namespace daydream {

struct Window {
  size_t step = 0;  // index into Graph::steps()
  Instant begin, end;
  Duration length() const { return end - begin; }
};

// The steps behind StepTime(): every measured step but the first; all but the first when none of
// them is measured; none for a graph of one step.
std::vector<size_t> CountedSteps(const Graph& graph);

// StepPeriods() of them, whose mean is StepTime(); of a graph of one step its whole length.
std::vector<Duration> CountedPeriods(const Graph& graph, const Timeline& timeline);
std::vector<Duration> CountedPeriods(const Graph& graph, std::vector<Duration> periods);

// The windows of graph/step_windows.h for every counted step; one window over everything when there
// is none. In time order, none over another. Their lengths sum to the periods, but for what an edit
// uses up of the host's lead (graph/host_lead.h) and the cycle of a lone step
// (simulator/lone_step.h), and what is summed over the windows has its share of StepTime().
std::vector<Window> CountedWindows(const Graph& graph, const Timeline& timeline);
// The same of all windows; none where no step counts.
std::vector<Window> CountedWindows(const Graph& graph, std::span<const StepWindow> steps);

// The critical path of the counted windows, without gaps: where it leads back to a task that
// nothing recorded made wait, such as the first of a further thread, what lies before that is a lag
// of this task. A step ends with its GPU work: so does the path with that of the last counted one,
// and not with what the host does afterwards while the recording is written. Without GPU work in it
// the path is that of everything. REQUIRES: HasPath(); windows as of CountedWindows().
// O(tasks + edges).
std::vector<PathSegment> PathOfSteps(const Graph& graph, const Timeline& timeline,
                                     std::span<const Window> windows);
std::vector<PathSegment> PathOfSteps(const Graph& graph, const Timeline& timeline);

// Both of them together, for those who ask more than one question about the path.
struct CountedPath {
  CountedPath(const Graph& graph, const Timeline& timeline)
      : windows(CountedWindows(graph, timeline)), path(PathOfSteps(graph, timeline, windows)) {}
  std::vector<Window> windows;
  std::vector<PathSegment> path;
};
// PathOfSteps() by resource, a counted window.
BoundBy PathPerStep(const CountedPath& counted);
// The same without room for the path.
BoundBy PathPerStep(const Graph& graph, const Timeline& timeline);

// Sorts and joins intervals that touch or overlap.
std::vector<Interval> Union(std::vector<Interval> intervals);
// Length of the part of `disjoint` that lies inside `windows`; what lies in two counts twice.
Duration Inside(std::span<const Interval> disjoint, std::span<const Window> windows);
// Of one window, without a look at what ends before it.
Duration Inside(std::span<const Interval> disjoint, const Window& window);

// Calls `take(segment, length)` for the part of every segment of `path` inside `windows`.
template <class Take>
void ForEachClipped(std::span<const PathSegment> path, std::span<const Window> windows, Take take) {
  size_t w = 0;
  for (const PathSegment& s : path) {
    while (w < windows.size() && windows[w].end <= s.begin) ++w;
    for (size_t i = w; i < windows.size() && windows[i].begin < s.end; ++i) {
      Instant begin = s.begin < windows[i].begin ? windows[i].begin : s.begin;
      Instant end = windows[i].end < s.end ? windows[i].end : s.end;
      if (begin < end) take(s, end - begin);
    }
  }
}

}  // namespace daydream
