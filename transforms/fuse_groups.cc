#include "transforms/fuse_groups.h"

#include <map>

#include "costmodel/kernel_class.h"

namespace daydream {
namespace {

// Host tasks looked at between two launches; more than that is not launch overhead.
constexpr int kMostBetween = 1000;

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Compilers and libraries have merged these already, as far as they can.
bool IsFusedAlready(std::string_view name) {
  return name.starts_with("triton_") || name.starts_with("fused_") || Contains(name, "Fused") ||
         Contains(name, "fused_");
}

uint64_t Threads(const KernelDetail* k) {
  if (k == nullptr) return 0;
  uint64_t n = 1;
  for (uint32_t v : k->grid) n *= v;
  for (uint32_t v : k->block) n *= v;
  return n;
}

}  // namespace

FuseGroups::FuseGroups(Editor& edit)
    : edit_(edit), graph_(edit.graph()), elementwise_(graph_.size()), held_(graph_.size()),
      holds_(graph_.size()), waits_(graph_.size()),
      optimizer_scope_(graph_.tables().scopes.size()) {
  std::map<NameId, bool> known;
  for (size_t i = 0; i < graph_.size(); ++i) {
    const Task& task = graph_.task(TaskId(i));
    if (task.phase == Phase::kBackward) has_backward_ = true;
    if (task.kind != TaskKind::kKernel || task.removed) continue;
    auto [it, inserted] = known.try_emplace(task.name, false);
    if (inserted) {
      std::string_view name = graph_.Name(task.name);
      KernelClass kind = ClassifyKernel(name).kind;
      it->second = (kind == KernelClass::kElementwise || kind == KernelClass::kOptimizer) &&
                   !IsFusedAlready(name);
    }
    elementwise_[i] = it->second;
  }
  for (const Edge& e : graph_.edges()) {
    if (e.rule == Rule::kHostWait) waits_[e.to.index()] = true;
    if (e.rule == Rule::kLaunch || e.rule == Rule::kQueue) continue;
    holds_[e.from.index()] = held_[e.to.index()] = true;
  }
  for (size_t i = 0; i < optimizer_scope_.size(); ++i) {
    const Scope& s = graph_.tables().scopes[i];
    bool inner = s.parent.index() < i && optimizer_scope_[s.parent.index()];
    std::string_view name = graph_.Name(s.name);
    optimizer_scope_[i] = inner || name.starts_with("Optimizer.step") ||
                          (name.starts_with("## ") && Contains(name, "optimizer"));
  }
}

bool FuseGroups::InOptimizer(const Task& task) const {
  return task.phase == Phase::kOptimizer ||
         (task.scope.index() < optimizer_scope_.size() && optimizer_scope_[task.scope.index()]);
}

std::vector<std::vector<TaskId>> FuseGroups::Optimizers(size_t* fused_already) const {
  std::vector<std::vector<TaskId>> groups;
  for (const GraphLane& lane : graph_.lanes()) {
    if (lane.lane.kind != LaneKind::kStream) continue;
    std::vector<TaskId> group;
    auto close = [&] {
      if (!group.empty()) groups.push_back(std::move(group));
      group.clear();
    };
    for (TaskId t = lane.first; t.valid(); t = graph_.task(t).lane_next) {
      const Task& task = graph_.task(t);
      if (task.removed || !IsGpu(task.kind)) continue;
      // Anything else on the stream ends the optimizer step; so does what others wait for.
      if (!InOptimizer(task) || task.kind != TaskKind::kKernel) {
        if (task.kind == TaskKind::kKernel) close();
        continue;
      }
      if (IsFusedAlready(graph_.Name(task.name))) ++*fused_already;
      if (!elementwise_[t.index()]) continue;
      if (!group.empty() && graph_.task(group.back()).step != task.step) close();
      if (held_[t.index()]) close();
      group.push_back(t);
      if (holds_[t.index()]) close();
    }
    close();
  }
  return groups;
}

bool FuseGroups::MayJoin(TaskId previous, TaskId next) const {
  const Task &a = graph_.task(previous), &b = graph_.task(next);
  if (a.step != b.step || a.phase != b.phase || holds_[previous.index()] || held_[next.index()]) {
    return false;
  }
  uint64_t threads = Threads(graph_.Kernel(previous));
  if (threads == 0 || threads != Threads(graph_.Kernel(next))) return false;
  // Both launched by the same thread, one after the other, and nothing waited for between.
  TaskId from = edit_.LaunchOf(previous), to = edit_.LaunchOf(next);
  if (!from.valid() || !to.valid() || from == to) return false;
  if (edit_.LaunchedBy(from).size() > 1 || edit_.LaunchedBy(to).size() > 1) return false;
  TaskId t = graph_.task(from).lane_next;
  for (int i = 0; i < kMostBetween && t.valid(); ++i, t = graph_.task(t).lane_next) {
    if (t == to) return true;
    if (waits_[t.index()]) return false;
  }
  return false;
}

std::vector<std::vector<TaskId>> FuseGroups::ElementwiseRuns() const {
  std::vector<std::vector<TaskId>> runs;
  for (const GraphLane& lane : graph_.lanes()) {
    if (lane.lane.kind != LaneKind::kStream) continue;
    std::vector<TaskId> run;
    auto close = [&] {
      if (run.size() > 1) runs.push_back(std::move(run));
      run.clear();
    };
    for (TaskId t = lane.first; t.valid(); t = graph_.task(t).lane_next) {
      const Task& task = graph_.task(t);
      if (task.removed || task.kind == TaskKind::kDelay) continue;
      if (!elementwise_[t.index()]) {
        close();
        continue;
      }
      if (!run.empty() && !MayJoin(run.back(), t)) close();
      run.push_back(t);
    }
    close();
  }
  return runs;
}

std::vector<TaskId> FuseGroups::HostBetween(const std::vector<TaskId>& group,
                                            bool everything) const {
  std::vector<TaskId> host, stretch;
  const std::vector<Scope>& scopes = graph_.tables().scopes;
  for (size_t i = 1; i < group.size(); ++i) {
    TaskId from = edit_.LaunchOf(group[i - 1]), to = edit_.LaunchOf(group[i]);
    if (!from.valid() || !to.valid() || from == to) continue;
    stretch.clear();
    TaskId t = graph_.task(from).lane_next;
    bool alone = graph_.task(from).lane == graph_.task(to).lane;
    for (int n = 0; alone && t.valid() && t != to; ++n, t = graph_.task(t).lane_next) {
      const Task& task = graph_.task(t);
      alone = n < kMostBetween && !waits_[t.index()] && edit_.LaunchedBy(t).empty() &&
              task.kind != TaskKind::kWait;
      bool in_op = task.scope.index() < scopes.size() &&
                   scopes[task.scope.index()].kind == EventKind::kOp;
      if (everything ? InOptimizer(task) : in_op) stretch.push_back(t);
    }
    if (alone && t == to) host.insert(host.end(), stretch.begin(), stretch.end());
  }
  return host;
}

}  // namespace daydream
