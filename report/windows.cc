#include "report/windows.h"

#include <algorithm>

#include "simulator/simulate.h"

namespace daydream {
namespace {

Window Everything(const Graph& graph, const Timeline& timeline) {
  Window all{0, Instant::AtNs(0), Instant::AtNs(0)};
  bool first = true;
  for (size_t i = 0; i < graph.size(); ++i) {
    all.begin = first ? timeline.start[i] : std::min(all.begin, timeline.start[i]);
    all.end = first ? timeline.end[i] : std::max(all.end, timeline.end[i]);
    first = false;
  }
  return all;
}

}  // namespace

std::vector<size_t> CountedSteps(const Graph& graph) {
  std::vector<size_t> measured, all;
  for (size_t s = 1; s < graph.steps().size(); ++s) {
    all.push_back(s);
    if (graph.steps()[s].measured) measured.push_back(s);
  }
  return measured.empty() ? all : measured;
}

std::vector<Duration> CountedPeriods(const Graph& graph, const Timeline& timeline) {
  return CountedPeriods(graph, StepPeriods(graph, timeline));
}

std::vector<Duration> CountedPeriods(const Graph& graph, std::vector<Duration> all) {
  if (graph.steps().size() <= 1) return all;
  std::vector<Duration> counted;
  for (size_t s : CountedSteps(graph)) counted.push_back(all[s - 1]);
  return counted;
}

std::vector<Window> CountedWindows(const Graph& graph, std::span<const StepWindow> steps) {
  std::vector<Window> windows;
  for (size_t s : CountedSteps(graph)) {
    Instant begin = steps[s].begin, end = std::max(begin, steps[s].end);
    if (!windows.empty()) {  // where an edit changed the order of steps
      begin = std::max(begin, windows.back().begin);
      end = std::max({begin, end, windows.back().end});
    }
    windows.push_back({s, begin, end});
  }
  return windows;
}

std::vector<Window> CountedWindows(const Graph& graph, const Timeline& timeline) {
  std::vector<Window> windows =
      CountedWindows(graph, StepWindows(graph, timeline.start, timeline.end));
  if (windows.empty()) windows.push_back(Everything(graph, timeline));
  return windows;
}

namespace {

// The GPU task that ends the last window; none: everything does.
TaskId EndOfPath(const Graph& graph, const Timeline& timeline, const Window& last) {
  TaskId until;
  for (size_t i = 0; last.step < graph.steps().size() && i < graph.size(); ++i) {
    if (timeline.end[i] < last.end) continue;
    const Task& task = graph.tasks()[i];
    if (task.removed || !IsGpu(task.kind) || task.step != last.step) continue;
    if (!until.valid() || timeline.end[i] > timeline.end[until.index()]) until = TaskId(i);
  }
  return until;
}

BoundBy PerWindow(BoundBy path, std::span<const Window> windows) {
  for (Duration* d : {&path.gpu, &path.cpu, &path.comm, &path.data}) {
    *d = *d / static_cast<int64_t>(windows.size());
  }
  return path;
}

}  // namespace

std::vector<PathSegment> PathOfSteps(const Graph& graph, const Timeline& timeline,
                                     std::span<const Window> windows) {
  const TaskId until = EndOfPath(graph, timeline, windows.back());
  std::vector<PathSegment> path = CriticalPath(graph, timeline, until);
  if (path.empty()) return path;
  const PathSegment first = path.front();
  const Instant begin = windows.front().begin;
  if (first.begin > begin) {
    path.insert(path.begin(),
                {begin, first.begin, first.task, Rule::kLaneOrder, true, first.resource});
  }
  return path;
}

std::vector<PathSegment> PathOfSteps(const Graph& graph, const Timeline& timeline) {
  return PathOfSteps(graph, timeline, CountedWindows(graph, timeline));
}

BoundBy PathPerStep(const CountedPath& counted) {
  BoundBy sum;
  ForEachClipped(counted.path, counted.windows,
                 [&](const PathSegment& s, Duration d) { sum.Of(s.resource) += d; });
  return PerWindow(sum, counted.windows);
}

BoundBy PathPerStep(const Graph& graph, const Timeline& timeline) {
  const std::vector<Window> windows = CountedWindows(graph, timeline);
  BoundBy sum;
  size_t last = windows.size();  // those behind it begin later than the path goes on
  const auto take = [&](Instant begin, Instant end, Resource resource) {
    while (last > 0 && windows[last - 1].begin >= end) --last;
    for (size_t i = last; i-- > 0 && windows[i].end > begin;) {
      const Duration d = std::min(windows[i].end, end) - std::max(windows[i].begin, begin);
      if (d > Duration{}) sum.Of(resource) += d;
    }
  };
  // What lies before the path is a lag of its first task, as in PathOfSteps().
  Instant begin = windows.front().begin;
  Resource of_first{};
  WalkCriticalPath(graph, timeline, EndOfPath(graph, timeline, windows.back()),
                   [&](const PathSegment& s) {
                     take(s.begin, s.end, s.resource);
                     begin = s.begin, of_first = s.resource;
                   });
  if (begin > windows.front().begin) take(windows.front().begin, begin, of_first);
  return PerWindow(sum, windows);
}

std::vector<Interval> Union(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::vector<Interval> out;
  for (const Interval& i : intervals) {
    if (i.end <= i.begin) continue;
    if (!out.empty() && i.begin <= out.back().end) {
      out.back().end = std::max(out.back().end, i.end);
    } else {
      out.push_back(i);
    }
  }
  return out;
}

Duration Inside(std::span<const Interval> disjoint, std::span<const Window> windows) {
  Duration sum;
  size_t i = 0;
  for (const Window& w : windows) {
    while (i < disjoint.size() && disjoint[i].end <= w.begin) ++i;
    for (size_t k = i; k < disjoint.size() && disjoint[k].begin < w.end; ++k) {
      sum += std::min(disjoint[k].end, w.end) - std::max(disjoint[k].begin, w.begin);
    }
  }
  return sum;
}

Duration Inside(std::span<const Interval> disjoint, const Window& window) {
  const auto first = std::ranges::partition_point(
      disjoint, [&](const Interval& i) { return i.end <= window.begin; });
  return Inside(disjoint.subspan(static_cast<size_t>(first - disjoint.begin())), {&window, 1});
}

}  // namespace daydream
