#include "report/windows.h"

#include <algorithm>
#include <optional>

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

// What lies between the windows' begin and that of the path.
std::optional<PathSegment> LeadTo(const PathSegment& first, std::span<const Window> windows) {
  const Instant begin = windows.front().begin;
  if (first.begin <= begin) return std::nullopt;
  return PathSegment{begin, first.begin, first.task, Rule::kLaneOrder, true, first.resource};
}

// Time by resource of what lies in windows, a window.
class PathSum {
 public:
  explicit PathSum(std::span<const Window> windows) : windows_(windows) {}
  void Add(const PathSegment& s, Duration inside) {
    PathSegment part = s;
    part.end = s.begin + inside;
    const BoundBy one = SumByResource({&part, 1});
    path_.gpu += one.gpu, path_.cpu += one.cpu, path_.comm += one.comm, path_.data += one.data;
  }
  BoundBy PerWindow() const {
    BoundBy path = path_;
    for (Duration* d : {&path.gpu, &path.cpu, &path.comm, &path.data}) {
      *d = *d / static_cast<int64_t>(windows_.size());
    }
    return path;
  }

 private:
  std::span<const Window> windows_;
  BoundBy path_;
};

}  // namespace

std::vector<PathSegment> PathOfSteps(const Graph& graph, const Timeline& timeline,
                                     std::span<const Window> windows) {
  const TaskId until = EndOfPath(graph, timeline, windows.back());
  std::vector<PathSegment> path = CriticalPath(graph, timeline, until);
  if (path.empty()) return path;
  if (const auto lead = LeadTo(path.front(), windows)) path.insert(path.begin(), *lead);
  return path;
}

std::vector<PathSegment> PathOfSteps(const Graph& graph, const Timeline& timeline) {
  return PathOfSteps(graph, timeline, CountedWindows(graph, timeline));
}

BoundBy PathPerStep(const CountedPath& counted) {
  PathSum sum(counted.windows);
  ForEachClipped(counted.path, counted.windows,
                 [&](const PathSegment& s, Duration d) { sum.Add(s, d); });
  return sum.PerWindow();
}

BoundBy PathPerStep(const Graph& graph, const Timeline& timeline) {
  const std::vector<Window> windows = CountedWindows(graph, timeline);
  PathSum sum(windows);
  size_t last = windows.size();  // those behind it begin later than the path goes on
  std::optional<PathSegment> first;
  const auto take = [&](const PathSegment& s) {
    while (last > 0 && windows[last - 1].begin >= s.end) --last;
    for (size_t i = last; i-- > 0 && windows[i].end > s.begin;) {
      const Duration d = std::min(windows[i].end, s.end) - std::max(windows[i].begin, s.begin);
      if (d > Duration{}) sum.Add(s, d);
    }
    first = s;
  };
  WalkCriticalPath(graph, timeline, EndOfPath(graph, timeline, windows.back()), take);
  if (const auto lead = first ? LeadTo(*first, windows) : std::nullopt) take(*lead);
  return sum.PerWindow();
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
