#include "transforms/edits/fuse_groups.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "graph/facts.h"

namespace daydream {
namespace {

// Host tasks looked at between two launches; more than that is not launch overhead.
constexpr int kMostBetween = 1000;

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

FuseGroups::Known FuseGroups::Look(const Graph& graph) {
  Known found(graph.size());
  found.elementwise.resize(graph.size());
  found.kind.assign(graph.size(), KernelClass::kOther);
  found.held.resize(graph.size());
  found.holds.resize(graph.size());
  found.waits.resize(graph.size());
  found.optimizer_scope.resize(graph.tables().scopes.size());
  std::map<NameId, KernelClass> known;
  KernelTable kernels(graph);
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.task(TaskId(i));
    if (task.phase == Phase::kBackward) found.has_backward = true;
    if (task.kind != TaskKind::kKernel || task.removed) continue;
    auto [it, inserted] = known.try_emplace(task.name, KernelClass::kOther);
    if (inserted) {
      std::string_view name = graph.Name(task.name);
      if (!IsFusedAlready(name)) it->second = kernels.Of(task.name).kind;
      // Copies by PyTorch's elementwise frame (casts, layout) are elementwise work to a compiler.
      if (it->second == KernelClass::kCopy && !Contains(name, "elementwise_kernel")) {
        it->second = KernelClass::kOther;
      }
    }
    found.kind[i] = it->second;
    found.elementwise[i] =
        it->second == KernelClass::kElementwise || it->second == KernelClass::kOptimizer;
  }
  for (const Edge& e : graph.edges()) {
    if (e.rule == Rule::kHostWait) found.waits[e.to.index()] = true;
    if (e.rule == Rule::kLaunch || e.rule == Rule::kQueue) continue;
    found.holds[e.from.index()] = found.held[e.to.index()] = true;
  }
  for (size_t i = 0; i < found.optimizer_scope.size(); ++i) {
    const Scope& s = graph.tables().scopes[i];
    bool inner = s.parent.index() < i && found.optimizer_scope[s.parent.index()];
    std::string_view name = graph.Name(s.name);
    found.optimizer_scope[i] = inner || name.starts_with("Optimizer.step") ||
                               (name.starts_with("## ") && Contains(name, "optimizer"));
  }
  return found;
}

FuseGroups::FuseGroups(Editor& edit)
    : edit_(edit),
      graph_(edit.graph()),
      shapes_(graph_),
      devices_(graph_),
      known_(FactOf<Known>(graph_, [&] { return Look(graph_); })) {}

bool FuseGroups::InOptimizer(const Task& task) const {
  return task.phase == Phase::kOptimizer || (task.scope.index() < known_->optimizer_scope.size() &&
                                             known_->optimizer_scope[task.scope.index()]);
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
      if (!known_->elementwise[t.index()]) continue;
      if (!group.empty() && graph_.task(group.back()).step != task.step) close();
      if (known_->held[t.index()]) close();
      group.push_back(t);
      if (known_->holds[t.index()]) close();
    }
    close();
  }
  return groups;
}

bool FuseGroups::SameSize(TaskId a, TaskId b) {
  const OpShape &first = shapes_.Of(a), &second = shapes_.Of(b);
  if (first.known() && second.known()) return first.largest == second.largest;
  if (!known_->elementwise[a.index()] || !known_->elementwise[b.index()]) return false;
  uint64_t threads = Threads(graph_.Kernel(a));
  return threads > 0 && threads == Threads(graph_.Kernel(b));
}

bool FuseGroups::MayJoin(TaskId previous, TaskId next, bool any_size) {
  const Task &a = graph_.task(previous), &b = graph_.task(next);
  if (a.step != b.step || a.phase != b.phase || known_->holds[previous.index()] ||
      known_->held[next.index()]) {
    return false;
  }
  if (!any_size && !SameSize(previous, next)) return false;
  // Both launched by the same thread, one after the other, and nothing waited for between.
  TaskId from = edit_.LaunchOf(previous), to = edit_.LaunchOf(next);
  if (!from.valid() || !to.valid() || from == to) return false;
  if (edit_.LaunchedBy(from).size() > 1 || edit_.LaunchedBy(to).size() > 1) return false;
  TaskId t = graph_.task(from).lane_next;
  for (int i = 0; i < kMostBetween && t.valid(); ++i, t = graph_.task(t).lane_next) {
    if (t == to) return true;
    if (known_->waits[t.index()]) return false;
  }
  return false;
}

template <typename Wanted>
std::vector<std::vector<TaskId>> FuseGroups::Collect(const Wanted& wanted, bool any_size) {
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
      if (task.kind != TaskKind::kKernel || !wanted(t)) {
        close();
        continue;
      }
      if (!run.empty() && !MayJoin(run.back(), t, any_size)) close();
      run.push_back(t);
    }
    close();
  }
  return runs;
}

std::vector<std::vector<TaskId>> FuseGroups::Runs(const Classes& classes) {
  return Collect(
      [&](TaskId t) {
        return t.index() < known_->kind.size() &&
               std::find(classes.begin(), classes.end(), known_->kind[t.index()]) != classes.end();
      },
      /*any_size=*/false);
}

std::vector<std::vector<TaskId>> FuseGroups::RunsOf(const std::vector<bool>& wanted) {
  return Collect([&](TaskId t) { return t.index() < wanted.size() && wanted[t.index()]; },
                 /*any_size=*/true);
}

FuseGroups::ShapedRun FuseGroups::Shape(const std::vector<TaskId>& run) {
  ShapedRun found{.run = run, .nodes = {}};
  ScopeId last;
  for (TaskId t : run) {
    const OpShape& shape = shapes_.Of(t);
    if (!shape.known()) return {.run = run, .nodes = {}};
    if (last.valid() && shape.scope == last) continue;  // further kernels of the same op
    last = shape.scope;
    found.nodes.push_back(NodeOf(shape, known_->kind[t.index()]));
  }
  found.dtype = shapes_.Of(run.front()).dtype;
  return found;
}

void FuseGroups::LookAt(const std::vector<TaskId>& run) {
  if (asked_ != nullptr && asked_->run == run) return;
  asked_ = &known_->shaped.Of(run.front(), [&] { return Shape(run); });
  if (asked_->run != run) asked_ = &(own_ = Shape(run));
  spec_ = devices_.Of(run.front());
  left_.clear();
}

std::optional<double> FuseGroups::ShareLeft(const std::vector<TaskId>& run, double kept,
                                            Duration floor) {
  LookAt(run);
  if (spec_ == nullptr || asked_->nodes.empty()) return std::nullopt;
  for (const Left& known : left_) {
    if (known.kept == kept && known.floor == floor) return known.share;
  }
  const FusionGroup group = MergeAll(*spec_, asked_->nodes,
                                     {.element_bytes = DTypeBytes(asked_->dtype),
                                      .kept = kept,
                                      .floor_ns = static_cast<double>(floor.ns)});
  left_.push_back({kept, floor, {}});
  if (group.ns_before > 0) left_.back().share = group.ns_after / group.ns_before;
  return left_.back().share;
}

Duration FuseGroups::TimeOf(const std::vector<TaskId>& run, const RunModel& model,
                            std::span<const Duration> times, bool* shaped) {
  Duration total, moving, longest;
  size_t movers = 0;
  for (const Duration d : times) {
    total += d;
    if (d > model.floor * 2)
      moving += d, ++movers;
    else
      longest = std::max(longest, d);
  }
  const std::optional<double> left = ShareLeft(run, model.kept, model.floor);
  *shaped = left.has_value();
  if (left) return std::min(std::max(total.Scaled(*left), std::min(total, model.floor)), total);
  const double n = static_cast<double>(std::max<size_t>(movers, 1)), passes = model.passes;
  const double ratio = std::max(passes * n - (2 - model.kept) * (n - 1), 2.0) / (passes * n);
  return std::min(std::max(longest, moving.Scaled(std::min(1.0, ratio))), total);
}

void FuseGroups::Merge(const std::vector<TaskId>& run, std::string_view name, Duration time,
                       std::string_view cause, bool whole_step, std::span<const Duration> at_ends) {
  edit_.BeginCause(cause);
  const std::vector<TaskId> host = HostBetween(run, whole_step);
  edit_.SetAtEnds(edit_.Fuse(run, name, time), at_ends);
  edit_.BeginCause(fmt::format("host time of {}", cause));
  // The gap after an op is time of the program around it, not of the op.
  whole_step ? edit_.Remove(host) : edit_.RemoveButGap(host);
}

void FuseGroups::KeepBetween(const std::vector<TaskId>& run, double kept) {
  const uint32_t group = edit_.NewUnit();
  for (TaskId t : run) {
    const OpShape& shape = shapes_.Of(t);
    if (!shape.known()) continue;
    // Casts around a product are parts of its op, which is not merged with them.
    const auto work = WorkOf(shape.name, shape.inputs, shape.dtype);
    const bool product = work.has_value() && work->kind != OpWork::Kind::kMemory;
    if (product && !Multiplies(ClassOf(t))) continue;
    OpChange& change = edit_.ChangeOp(shape.scope);
    change.group = group;
    change.between = kept;
  }
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
      alone = n < kMostBetween && !known_->waits[t.index()] && edit_.LaunchedBy(t).empty() &&
              task.kind != TaskKind::kWait;
      bool in_op =
          task.scope.index() < scopes.size() && scopes[task.scope.index()].kind == EventKind::kOp;
      if (everything ? InOptimizer(task) : in_op) stretch.push_back(t);
    }
    if (alone && t == to) host.insert(host.end(), stretch.begin(), stretch.end());
  }
  return host;
}

}  // namespace daydream
