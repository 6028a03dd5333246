#include "transforms/analysis/kernel_units.h"

#include <utility>

namespace daydream {
namespace {

// Longer runs of kernels are cut: the work of an assignment grows with the square.
constexpr size_t kLongestWindow = 1024;

}  // namespace

KernelUnits::KernelUnits(const Editor& edit) : edit_(edit), accesses_(edit.graph()) {
  meets_.assign(graph().size(), false);
  awaited_.assign(graph().size(), false);
  for (const Edge& e : graph().edges()) {
    if (e.rule == Rule::kHostWait) awaited_[e.from.index()] = true;
    if (e.rule == Rule::kLaunch || e.rule == Rule::kQueue) continue;
    meets_[e.from.index()] = meets_[e.to.index()] = true;
  }
}

std::vector<KernelUnit> KernelUnits::Of(LaneId lane) {
  std::vector<KernelUnit> units;
  std::vector<TaskId> in_front;
  size_t in_step = 0;
  for (TaskId t = graph().lane(lane).first; t.valid(); t = graph().task(t).lane_next) {
    const Task& task = graph().task(t);
    const bool meets = meets_[t.index()];
    if (!meets && task.kind == TaskKind::kDelay) {
      in_front.push_back(t);
      continue;
    }
    if (!meets && task.removed && !units.empty() && in_front.empty()) {
      units.back().tasks.push_back(t);
      continue;
    }
    KernelUnit unit{.tasks = std::move(in_front), .kernel = t};
    in_front.clear();
    unit.tasks.push_back(t);
    const bool first = units.empty() || graph().task(units.back().kernel).step != task.step;
    in_step = first ? 0 : in_step + 1;
    if (task.overlaps && !units.empty()) units.back().access.reset();
    if (!meets && !first && !task.removed && !task.overlaps && in_step % kLongestWindow != 0 &&
        task.kind == TaskKind::kKernel && edit_.LaunchOf(t).valid()) {
      unit.access = accesses_.Of(t);
    }
    if (IsGpu(task.kind) && !task.removed) ++(unit.access ? known_ : unknown_);
    units.push_back(std::move(unit));
  }
  if (!in_front.empty() && !units.empty()) {
    units.back().tasks.insert(units.back().tasks.end(), in_front.begin(), in_front.end());
  }
  return units;
}

std::vector<bool> KernelUnits::LostBehind(const std::vector<KernelUnit>& units) const {
  std::vector<bool> lost(units.size());
  bool now = false;
  for (size_t i = units.size(); i-- > 1;) {
    lost[i] = now;
    const Task& before = graph().task(units[i - 1].kernel);
    const TaskId call = edit_.LaunchOf(units[i].kernel);
    const bool late =
        call.valid() && graph().task(call).recorded_start + graph().task(call).duration >
                            before.recorded_start + before.duration;
    if (late || awaited_[units[i].kernel.index()]) now = late;
  }
  if (!units.empty()) lost[0] = now;
  return lost;
}

WorkDag KernelUnits::Dependencies(std::span<const KernelUnit> work) {
  WorkDag dag{.size = static_cast<uint32_t>(work.size())};
  std::vector<std::vector<bool>> needs(work.size(), std::vector<bool>(work.size()));
  for (uint32_t i = 0; i < work.size(); ++i) {
    for (uint32_t j = i; j-- > 0;) {
      if (needs[i][j] || !accesses_.Needs(*work[i].access, *work[j].access)) continue;
      dag.edges.push_back({j, i});
      needs[i][j] = true;
      for (uint32_t k = 0; k < j; ++k) {
        if (needs[j][k]) needs[i][k] = true;
      }
    }
  }
  return dag;
}

}  // namespace daydream
