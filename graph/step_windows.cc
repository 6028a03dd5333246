#include "graph/step_windows.h"

#include <algorithm>
#include <limits>

namespace daydream {
namespace {

// First start and last end of the tasks of a step.
struct Extent {
  Instant first{std::numeric_limits<int64_t>::max()};
  Instant last{std::numeric_limits<int64_t>::min()};
  bool any() const { return first <= last; }
  void Add(Instant start, Instant end) {
    first = std::min(first, start);
    last = std::max(last, end);
  }
};

}  // namespace

std::vector<StepWindow> StepWindows(const Graph& graph, std::span<const Instant> start,
                                    std::span<const Instant> end) {
  const size_t steps = graph.steps().size();
  std::vector<Extent> gpu(steps), all(steps);
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.tasks()[i];
    if (task.step >= steps) continue;
    all[task.step].Add(start[i], end[i]);
    if (IsGpu(task.kind)) gpu[task.step].Add(start[i], end[i]);
  }
  std::vector<StepExtent> extents;
  for (size_t s = 0; s < steps; ++s) {
    const Extent& own = gpu[s].any() ? gpu[s] : all[s];
    extents.push_back({gpu[s].any(), own.any(), own.first, own.last});
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
