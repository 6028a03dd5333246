#include "report/kernel_time.h"

#include <algorithm>
#include <map>

namespace daydream {
namespace {

// Sums by step of the kernels for which `counts` holds.
template <typename Counts>
std::map<uint16_t, Duration> ByStep(const Graph& graph, const Counts& counts) {
  bool any = false;
  for (const GraphStep& step : graph.steps()) any |= step.measured;
  std::map<uint16_t, Duration> sums;
  for (size_t s = 0; s < graph.steps().size(); ++s) {
    if (graph.steps()[s].measured) sums[static_cast<uint16_t>(s)];
  }
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.tasks()[i];
    if (task.removed || task.kind != TaskKind::kKernel || !counts(TaskId(i))) continue;
    if (!any || graph.steps()[task.step].measured) sums[any ? task.step : 0] += task.duration;
  }
  return sums;
}

Duration MeanOf(const std::map<uint16_t, Duration>& sums) {
  Duration sum;
  for (const auto& [step, time] : sums) sum += time;
  return sum / std::max<int64_t>(static_cast<int64_t>(sums.size()), 1);
}

}  // namespace

Duration KernelTime(const Graph& graph) {
  return MeanOf(ByStep(graph, [](TaskId) { return true; }));
}

Duration UnchangedKernelTime(const Graph& before, const Graph& after) {
  return MeanOf(ByStep(after, [&](TaskId t) {
    return t.index() < before.size() && before.task(t).duration == after.task(t).duration;
  }));
}

ReplayCheck MeasuredKernelTimes(const Graph& graph) {
  ReplayCheck check;
  const std::map<uint16_t, Duration> sums = ByStep(graph, [](TaskId) { return true; });
  for (const auto& [step, time] : sums) check.measured_steps.push_back(time);
  check.simulated_steps = check.measured_steps;
  check.steps = check.measured_steps.size();
  check.measured = check.simulated = MeanOf(sums);
  return check;
}

}  // namespace daydream
