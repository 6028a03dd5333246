#include "graph/step_windows.h"

#include <algorithm>
#include <limits>

namespace daydream {
namespace {

constexpr Instant kEarly{std::numeric_limits<int64_t>::min()};
constexpr Instant kLate{std::numeric_limits<int64_t>::max()};

}  // namespace

StepMarks::StepMarks(const Graph& graph) : graph_(graph), by_(graph.steps().size(), By::kAll) {
  for (const Task& task : graph.tasks()) {
    if (task.step >= by_.size() || !IsGpu(task.kind)) continue;
    const By by = graph.lane(task.lane).marks_steps ? By::kMarkedGpu : By::kGpu;
    by_[task.step] = std::max(by_[task.step], by);
  }
}

bool StepMarks::Begins(const Task& task) const {
  if (by_[task.step] == By::kMarkedGpu && !graph_.lane(task.lane).marks_steps) return false;
  return Ends(task);
}

std::vector<StepWindow> StepWindows(const Graph& graph, std::span<const Instant> start,
                                    std::span<const Instant> end) {
  const size_t steps = graph.steps().size();
  const StepMarks marks(graph);
  std::vector<StepExtent> extents(steps);
  for (size_t s = 0; s < steps; ++s) {
    extents[s] = {.gpu = marks.HasGpu(s), .first = kLate, .last = kEarly};
  }
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.tasks()[i];
    if (task.step >= steps) continue;
    StepExtent& extent = extents[task.step];
    extent.any = true;
    if (marks.Begins(task)) extent.first = std::min(extent.first, start[i]);
    if (marks.Ends(task)) extent.last = std::max(extent.last, end[i]);
  }
  return StepWindows(extents);
}

std::vector<StepWindow> StepWindows(std::span<const StepExtent> extents) {
  const size_t steps = extents.size();
  std::vector<StepWindow> windows(steps);
  Instant before;  // where the step before ended
  for (size_t s = 0; s < steps; ++s) {
    const StepExtent& own = extents[s];
    if (!own.any) {
      windows[s] = {before, before};
      continue;
    }
    if (s + 1 < steps && extents[s + 1].gpu) {
      Instant begin = own.gpu || s == 0 ? own.first : before;
      windows[s] = {begin, std::max(begin, extents[s + 1].first)};
    } else {
      windows[s] = {s == 0 ? own.first : std::min(before, own.last), own.last};
    }
    before = own.last;
  }
  return windows;
}

}  // namespace daydream
