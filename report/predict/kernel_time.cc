#include "report/predict/kernel_time.h"

#include <algorithm>
#include <map>

namespace daydream {
namespace {

// Sums by step of `time` of each kernel.
template <typename Time>
std::map<uint16_t, Duration> ByStep(const Graph& graph, const Time& time) {
  bool any = false;
  for (const GraphStep& step : graph.steps()) any |= step.measured;
  std::map<uint16_t, Duration> sums;
  for (size_t s = 0; s < graph.steps().size(); ++s) {
    if (graph.steps()[s].measured) sums[static_cast<uint16_t>(s)];
  }
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.tasks()[i];
    if (task.removed || task.kind != TaskKind::kKernel) continue;
    if (!any || graph.steps()[task.step].measured) sums[any ? task.step : 0] += time(i);
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
  return MeanOf(ByStep(graph, [&](size_t i) { return graph.tasks()[i].duration; }));
}

Duration LeastKernelTime(const Graph& after, std::span<const Duration> least) {
  return MeanOf(ByStep(after, [&](size_t i) { return least[i]; }));
}

ReplayCheck MeasuredKernelTimes(const Graph& graph) {
  ReplayCheck check;
  const std::map<uint16_t, Duration> sums =
      ByStep(graph, [&](size_t i) { return graph.tasks()[i].duration; });
  for (const auto& [step, time] : sums) check.measured_steps.push_back(time);
  check.simulated_steps = check.measured_steps;
  check.steps = check.measured_steps.size();
  check.measured = check.simulated = MeanOf(sums);
  return check;
}

void NoteKernelTime(const Graph& after, Duration recorded, const std::string& opt, Prediction& p) {
  Duration before = recorded;
  for (const CauseShare& c : p.causes) before += c.delta;
  const Duration delta = KernelTime(after) - before;
  p.causes.push_back({.what = "kernels", .opt = opt, .delta = delta, .gpu = delta, .host = {}});
}

}  // namespace daydream
