#include "transforms/edits/capturable.h"

#include <algorithm>

#include "base/text.h"
#include "transforms/analysis/optimizer_name.h"

namespace daydream {
namespace {

// The update of a parameter; that of many at once is another one (multi_tensor_apply_kernel).
bool UpdatesOne(std::string_view kernel) {
  return Contains(kernel, "addcdiv") && !Contains(kernel, "multi_tensor");
}

// Of what capturable=True adds, nothing else in these optimizers has this kernel.
bool IsOfCapturable(std::string_view kernel) { return Contains(kernel, "reciprocal"); }

}  // namespace

CapturableLoop::CapturableLoop(const Graph& graph) : graph_(graph) {
  const std::string name = OptimizerName(graph);
  if (name != "Adam" && name != "AdamW") return;
  optimizer_ = name;
  std::vector<Duration> times;
  std::vector<bool> last;
  for (const Task& task : graph.tasks()) {
    if (task.removed || task.kind != TaskKind::kKernel || task.phase != Phase::kOptimizer) continue;
    const std::string_view kernel = graph.Name(task.name);
    if (IsOfCapturable(kernel)) return;
    times.push_back(task.duration);
    if (!UpdatesOne(kernel)) continue;
    if (last.size() <= task.name.index()) last.resize(task.name.index() + 1);
    last[task.name.index()] = true;
  }
  if (last.empty()) return;
  // A tenth, so that one odd time does not stand for all.
  std::sort(times.begin(), times.end());
  time_ = times[times.size() / 10];
  last_ = std::move(last);
}

size_t CapturableLoop::Before(TaskId kernel) const {
  const Task& task = graph_.task(kernel);
  const bool last = task.name.index() < last_.size() && last_[task.name.index()];
  return last && task.phase == Phase::kOptimizer ? kCapturableKernels : 0;
}

}  // namespace daydream
