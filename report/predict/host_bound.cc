#include "report/predict/host_bound.h"

#include <algorithm>

#include "graph/retimed.h"
#include "report/windows.h"

namespace daydream {
namespace {

// What loads data is a resource of its own (simulator/critical_path.cc).
bool Loads(const Graph& graph, TaskId t) { return graph.task(t).phase == Phase::kData; }

bool IsOther(const Task& t) { return ResourceOf(t.kind) != Resource::kCpu; }

// Such a task may be over before one that came before it on its lane.
bool IsBeside(const Task& t) { return t.overlaps || t.gap < Duration{}; }

}  // namespace

// Of what ends with that anchor of a task.
size_t HostBound::PlaceOf(TaskId end) const {
  const Task& t = recorded_.task(end);
  return IsGpu(t.kind) && t.step < others_.size() - 1 ? t.step : others_.size() - 1;
}

template <class Each>
void HostBound::ForEachPart(const Graph& graph, TaskId id, Each each) const {
  const Task& t = graph.task(id);
  if (t.removed) return;
  if (IsOther(t) || Loads(graph, id)) each(t.duration, PlaceOf(id));
  if (t.gap <= Duration{} || !t.lane_next.valid()) return;
  const bool beside = IsBeside(recorded_.task(t.lane_next));  // then it may hold a later one, too
  if (IsOther(t) || Loads(graph, t.lane_next)) {
    each(t.gap, beside ? others_.size() - 1 : PlaceOf(t.lane_next));
  }
}

HostBound::HostBound(const Graph& recorded)
    : recorded_(recorded), others_(recorded.steps().size() + 1) {
  for (size_t i = 0; i < recorded.size(); ++i) {
    const Task& task = recorded.tasks()[i];
    ForEachPart(recorded, TaskId(i), [&](Duration d, size_t place) { others_[place] += d; });
    begins_ = std::max(begins_, task.earliest);
    known_ &= IsOther(task) || !IsBeside(task);
  }
  for (const Edge& e : recorded.edges()) {
    const bool other = ResourceOfLag(e.rule, recorded.task(e.to).kind) != Resource::kCpu;
    if (other || Loads(recorded, e.to)) others_[PlaceOf(e.to)] += std::max(e.lag, Duration{});
  }
}

bool HostBound::IsSure(const Graph& graph, std::span<const StepWindow> steps) const {
  if (!known_ || graph.structure() == 0 || steps.size() + 1 != others_.size()) return false;
  const std::vector<Window> windows = CountedWindows(graph, steps);
  if (windows.empty()) return false;
  Duration all, most;
  for (size_t i = 0; i < windows.size(); ++i) {
    if (i > 0 && windows[i].begin < windows[i - 1].end) return false;
    all += windows[i].length();
  }
  // A step ends with its GPU work: what is over before the first window is in none.
  const Window& first = windows.front();
  const auto may_count = [&](size_t place) {
    return place >= first.step || steps[place].end > first.begin;
  };
  for (size_t place = 0; place < others_.size(); ++place) {
    if (may_count(place)) most += others_[place];
  }
  bool beside = false;
  const auto tasks = RetimedOf(recorded_, graph);
  for (const Retimed& t : *tasks) {
    const auto add = [&](Duration d, size_t place) { most += may_count(place) ? d : Duration{}; };
    ForEachPart(graph, t.task, add);
    ForEachPart(recorded_, t.task, [&](Duration d, size_t place) { add(-d, place); });
    beside |= IsBeside(graph.task(t.task)) && !IsBeside(recorded_.task(t.task));
  }
  most += std::max(begins_ - first.begin, Duration{});
  // Sums by resource are rounded down, each by less than 1 ns a window.
  const Duration rounding = Duration::Ns(static_cast<int64_t>(windows.size()));
  return !beside && (most + rounding) * 2 <= all;
}

}  // namespace daydream
