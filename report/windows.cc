#include "report/windows.h"

#include <algorithm>

#include "graph/step_windows.h"
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

std::vector<Window> CountedWindows(const Graph& graph, const Timeline& timeline) {
  std::vector<Window> windows;
  std::vector<StepWindow> steps = StepWindows(graph, timeline.start, timeline.end);
  for (size_t s : CountedSteps(graph)) {
    Instant begin = steps[s].begin, end = std::max(begin, steps[s].end);
    if (!windows.empty()) {  // where an edit changed the order of steps
      begin = std::max(begin, windows.back().begin);
      end = std::max({begin, end, windows.back().end});
    }
    windows.push_back({s, begin, end});
  }
  if (windows.empty()) windows.push_back(Everything(graph, timeline));
  return windows;
}

std::vector<PathSegment> PathOfSteps(const Graph& graph, const Timeline& timeline,
                                     std::span<const Window> windows) {
  const Window& last = windows.back();
  TaskId until;
  for (size_t i = 0; last.step < graph.steps().size() && i < graph.size(); ++i) {
    const Task& task = graph.tasks()[i];
    if (task.removed || !IsGpu(task.kind) || task.step != last.step) continue;
    if (timeline.end[i] < last.end) continue;
    if (!until.valid() || timeline.end[i] > timeline.end[until.index()]) until = TaskId(i);
  }
  std::vector<PathSegment> path = CriticalPath(graph, timeline, until);
  if (!path.empty() && windows.front().begin < path.front().begin) {
    const PathSegment& first = path.front();
    path.insert(path.begin(), {windows.front().begin, first.begin, first.task, Rule::kLaneOrder,
                               true, first.resource});
  }
  return path;
}

std::vector<PathSegment> PathOfSteps(const Graph& graph, const Timeline& timeline) {
  return PathOfSteps(graph, timeline, CountedWindows(graph, timeline));
}

BoundBy PathPerStep(const CountedPath& counted) {
  const std::vector<Window>& windows = counted.windows;
  BoundBy path;
  ForEachClipped(counted.path, windows, [&](const PathSegment& s, Duration d) {
    PathSegment part = s;
    part.end = s.begin + d;
    const BoundBy one = SumByResource({&part, 1});
    path.gpu += one.gpu, path.cpu += one.cpu, path.comm += one.comm, path.data += one.data;
  });
  for (Duration* d : {&path.gpu, &path.cpu, &path.comm, &path.data}) {
    *d = *d / static_cast<int64_t>(windows.size());
  }
  return path;
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
