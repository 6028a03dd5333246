#include "transforms/edits/neighbour.h"

#include <fmt/format.h>

#include "absl/container/flat_hash_map.h"
#include "base/median.h"
#include "transforms/analysis/kernel_share.h"

namespace daydream {
namespace {

constexpr uint32_t kNone = Id<void>::kNoneValue;

class ProgramCopy {
 public:
  ProgramCopy(Editor& edit, const Graph& guest) : edit_(edit), guest_(guest) {}

  std::vector<TaskId> Run() {
    for (const GraphLane& lane : edit_.graph().lanes()) {
      if (lane.lane.kind == LaneKind::kStream) device_ = lane.lane.device;
    }
    copies_.assign(guest_.size(), TaskId::None());
    for (size_t lane = 0; lane < guest_.lanes().size(); ++lane) CopyLane(LaneId(lane));
    for (TaskId t : copies_) RemapHolder(t);
    for (const Edge& e : guest_.edges()) {
      Edge copy = e;
      copy.from = copies_[e.from.index()];
      copy.to = copies_[e.to.index()];
      edit_.graph().AddEdge(copy);
    }
    return std::move(copies_);
  }

 private:
  NameId Renamed(NameId name) {
    auto [it, inserted] = names_.try_emplace(name);
    if (inserted) it->second = edit_.graph().AddName(guest_.Name(name));
    return it->second;
  }

  void CopyLane(LaneId id) {
    GraphLane lane = guest_.lane(id);
    lane.lane.name = edit_.graph().AddName(fmt::format("other: {}", guest_.Name(lane.lane.name)));
    if (lane.lane.kind == LaneKind::kStream) lane.lane.device = device_;
    lane.first = lane.last = TaskId::None();
    const LaneId copy = edit_.graph().AddLane(lane);
    for (TaskId t = guest_.lane(id).first; t.valid(); t = guest_.task(t).lane_next) {
      Task task = guest_.task(t);
      task.lane = copy;
      task.lane_prev = task.lane_next = TaskId::None();
      task.name = Renamed(task.name);
      task.scope = ScopeId::None();
      task.layer = LayerId::None();
      task.event = kNone;
      task.step = 0;
      if (task.kind != TaskKind::kDelay) task.detail = DetailOf(t);
      copies_[t.index()] = edit_.Append(task);
    }
  }

  uint32_t DetailOf(TaskId t) {
    const Task& task = guest_.task(t);
    if (task.detail == kNone) return kNone;
    auto [it, inserted] =
        details_.try_emplace({task.kind == TaskKind::kKernel, task.detail}, kNone);
    if (!inserted) return it->second;
    if (const KernelDetail* kernel = task.kind == TaskKind::kKernel ? guest_.Kernel(t) : nullptr) {
      KernelDetail detail = *kernel;
      detail.layer = NameId::None();
      it->second = edit_.graph().AddKernelDetail(detail);
    } else if (const CopyDetail* copy = task.kind == TaskKind::kMemcpy ? guest_.Copy(t) : nullptr) {
      it->second = edit_.graph().AddCopyDetail(*copy);
    }
    return it->second;
  }

  // A delay names the task that holds it up.
  void RemapHolder(TaskId t) {
    const Task& task = edit_.graph().task(t);
    if (task.kind != TaskKind::kDelay || task.detail >= copies_.size()) return;
    edit_.SetHolder(t, copies_[task.detail]);
  }

  Editor& edit_;
  const Graph& guest_;
  int32_t device_ = 0;
  std::vector<TaskId> copies_;
  absl::flat_hash_map<NameId, NameId> names_;
  absl::flat_hash_map<std::pair<bool, uint32_t>, uint32_t> details_;
};

const DeviceSpec* GpuOf(const Graph& graph) {
  for (size_t i = 0; i < graph.size(); ++i) {
    if (IsGpu(graph.task(TaskId(i)).kind)) return DeviceOf(graph, TaskId(i)).spec;
  }
  return nullptr;
}

}  // namespace

std::vector<TaskId> AddProgram(Editor& edit, const Graph& guest) {
  return ProgramCopy(edit, guest).Run();
}

absl::Status CheckSameGpu(const Graph& a, const Graph& b) {
  const DeviceSpec* first = GpuOf(a);
  const DeviceSpec* second = GpuOf(b);
  if (first == nullptr || second == nullptr || first->name == second->name) {
    return absl::OkStatus();
  }
  return MakeStatus(
      absl::StatusCode::kFailedPrecondition,
      {.code = "E0812",
       .what = fmt::format("colocate: one program was recorded on a {}, the other on a {}",
                           first->name, second->name),
       .why = "kernels of both would have to be timed on one GPU",
       .fix = "record both on the same kind of GPU"});
}

uint16_t TypicalStep(const Graph& graph) {
  std::vector<std::pair<Duration, uint16_t>> steps;
  for (uint16_t i = 0; i < graph.steps().size(); ++i) {
    if (graph.steps()[i].measured) steps.emplace_back(RecordedPeriod(graph, i), i);
  }
  return Median(steps).second;
}

Duration RecordedPeriod(const Graph& graph, uint16_t step) {
  if (step < graph.steps().size() && graph.steps()[step].recorded_period > Duration{}) {
    return graph.steps()[step].recorded_period;
  }
  Duration sum;
  for (const Task& t : graph.tasks()) {
    if (!t.removed && t.step == step && IsGpu(t.kind)) sum += t.duration;
  }
  return sum;
}

Turns TakeTurns(Editor& edit, GpuPolicy policy, const ShareRules& rules) {
  KernelDemands demands(edit.graph());
  absl::flat_hash_map<int32_t, LaneId> lanes;  // by device
  absl::flat_hash_map<TaskId, TaskId> turn_of;
  Turns turns;
  const size_t size = edit.graph().size();
  for (size_t i = 0; i < size; ++i) {
    const TaskId t(i);
    const Task kernel = edit.graph().task(t);
    if (kernel.removed || kernel.kind != TaskKind::kKernel) continue;
    const int32_t device = edit.graph().lane(kernel.lane).lane.device;
    auto [lane, inserted] = lanes.try_emplace(device);
    if (inserted) {
      lane->second = edit.NewLane(fmt::format("turns on GPU {}", device), LaneKind::kChannel,
                                  LaneOrder::kPriority);
    }
    double part = 1;
    const auto demand = policy == GpuPolicy::kSpace ? demands.Of(t) : std::nullopt;
    if (demand) {
      part = PartInUse(*demand->device, demand->demand, rules);
      turns.by_launch += demand->by_launch;
    }
    Task turn{.recorded_start = kernel.recorded_start,
              .duration = kernel.duration.Scaled(part),
              .earliest = kernel.earliest,
              .name = kernel.name,
              .lane = lane->second,
              .detail = t.value,
              .step = kernel.step,
              .kind = TaskKind::kDelay};
    ++turns.kernels;
    turns.time += kernel.duration;
    turns.kept += turn.duration;
    turn_of[t] = edit.Append(turn);
  }
  // What a kernel waits for, its turn waits for; and it begins with its turn.
  const std::vector<Edge> edges(edit.graph().edges().begin(), edit.graph().edges().end());
  for (const Edge& e : edges) {
    if (e.to_anchor != Anchor::kStart) continue;
    if (auto it = turn_of.find(e.to); it != turn_of.end()) {
      edit.AddEdge(e.from, it->second, e.lag, Rule::kTransform, e.from_anchor);
    }
  }
  for (size_t i = 0; i < size; ++i) {
    auto it = turn_of.find(TaskId(i));
    if (it == turn_of.end()) continue;
    const Task& kernel = edit.graph().task(TaskId(i));
    if (TaskId before = kernel.lane_prev; before.valid()) {
      const bool beside = kernel.overlaps;
      edit.AddEdge(before, it->second, beside ? Duration{} : edit.graph().task(before).gap,
                   Rule::kTransform, beside ? Anchor::kStart : Anchor::kEnd);
    }
    edit.AddEdge(it->second, TaskId(i), {}, Rule::kTransform, Anchor::kStart);
  }
  return turns;
}

}  // namespace daydream
