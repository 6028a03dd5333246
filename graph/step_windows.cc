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
  for (size_t s = 0; s < by_.size(); ++s) {
    if (!graph.steps()[s].measured) continue;
    if (lone_.has_value() || s == 0) {
      lone_.reset();
      break;
    }
    lone_ = s;
  }
}

namespace {

// Of a step that no GPU work follows.
StepWindow LastWindow(const StepExtent& own, const StepExtent& previous, Instant before) {
  if (!own.host.has_value() || (own.gpu && previous.gpu))
    return {std::min(before, own.last), own.last};
  const StepWindow gpu = {own.first, own.last};
  return own.gpu && gpu.length() > own.host->length() ? gpu : *own.host;
}

}  // namespace

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
    if (task.step != marks.lone() || !IsHost(task.kind)) continue;
    if (!extent.host.has_value()) extent.host = {start[i], end[i]};
    extent.host->begin = std::min(extent.host->begin, start[i]);
    extent.host->end = std::max(extent.host->end, end[i]);
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
    } else if (s == 0) {
      windows[s] = {own.first, own.last};
    } else {
      windows[s] = LastWindow(own, extents[s - 1], before);
    }
    before = own.last;
  }
  return windows;
}

}  // namespace daydream
