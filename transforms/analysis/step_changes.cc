#include "transforms/analysis/step_changes.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace daydream {
namespace {

// How often the measured steps launch one kernel with one grid.
struct Count {
  size_t steps = 0, now = 0, least = std::numeric_limits<size_t>::max(), most = 0;
  uint16_t step = 0;
  void EndStep() {
    if (now == 0) return;
    least = std::min(least, now), most = std::max(most, now);
    ++steps, now = 0;
  }
};

using KernelKey = std::pair<NameId, std::array<uint32_t, 3>>;

KernelKey KeyOf(const Graph& graph, TaskId t) {
  const KernelDetail* kernel = graph.Kernel(t);
  return {graph.task(t).name, kernel != nullptr ? kernel->grid : std::array<uint32_t, 3>{}};
}

}  // namespace

StepChanges FindStepChanges(const Graph& graph, std::span<const TaskId> work) {
  const std::span<const GraphStep> steps = graph.steps();
  const auto measured = static_cast<size_t>(
      std::count_if(steps.begin(), steps.end(), [](const GraphStep& s) { return s.measured; }));
  if (measured < 2) return {};
  absl::flat_hash_map<KernelKey, Count> counts;
  for (TaskId t : work) {
    const Task& task = graph.task(t);
    if (!IsGpu(task.kind) || task.step >= steps.size() || !steps[task.step].measured) continue;
    Count& count = counts[KeyOf(graph, t)];
    if (count.step != task.step) {
      count.EndStep();
      count.step = task.step;
    }
    ++count.now;
  }
  StepChanges changes;
  for (auto& [key, count] : counts) {
    count.EndStep();
    if (count.steps < measured) count.least = 0;
    changes.kernels += count.most - count.least;
  }
  if (changes.kernels == 0) return changes;
  changes.first = *std::find_if(work.begin(), work.end(), [&](TaskId t) {
    auto count = counts.find(KeyOf(graph, t));
    return count != counts.end() && count->second.most > count->second.least;
  });
  return changes;
}

}  // namespace daydream
