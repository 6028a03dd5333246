// Gives every task its phase and its layer. Evidence is used in this order: annotations (Optimizer,
// DataLoader, "## forward ##"), module frames of the Python stack, autograd sequence numbers (a
// backward op has the number of the forward op it belongs to), the names of ops, and for steps of a
// recording without marks of layers the steps with (graph/lend_layers.h).
//
// A GPU task has the layer of the host code that launched it, found without any synchronisation
// (Daydream, ATC 2020, section 4.3).
#include <algorithm>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "base/text.h"
#include "graph/builder.h"
#include "graph/lend_layers.h"
#include "trace/range_names.h"

namespace daydream {
namespace {

enum class NameClass : uint8_t {
  kUnknown,
  kPlain,
  kStep,
  kOptimizer,
  kData,
  kForward,
  kBackward,
  kComm,
  kModule,
};

NameClass Classify(std::string_view name, EventKind kind) {
  if (kind == EventKind::kFrame) return NameClass::kModule;
  if (name.starts_with("ProfilerStep#") || IsMarkedStep(name)) return NameClass::kStep;
  if (IsOptimizerRange(name)) return NameClass::kOptimizer;
  if (Contains(name, "DataLoader")) return NameClass::kData;
  if (name.starts_with("nccl:") || name.starts_with("c10d::") || name == "record_param_comms") {
    return NameClass::kComm;
  }
  if (name.starts_with("autograd::engine::evaluate_function") ||
      name.starts_with("torch::autograd::") || name == "## backward ##") {
    return NameClass::kBackward;
  }
  if (kind == EventKind::kAnnotation) {
    if (name == "## forward ##" || name == "forward") return NameClass::kForward;
    if (name == "backward") return NameClass::kBackward;
    return NameClass::kPlain;
  }
  size_t at = name.rfind("Backward");
  if (at != std::string_view::npos) {
    std::string_view rest = name.substr(at + 8);
    bool number =
        std::all_of(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (number) return NameClass::kBackward;
  }
  return NameClass::kPlain;
}

constexpr std::string_view kOptimizerLayer = "optimizer";

class Mapper {
 public:
  explicit Mapper(Builder& b)
      : b_(b), phase_(b.tables->scopes.size(), Phase::kNone), layer_(b.tables->scopes.size()) {
    class_.assign(b.trace.names->size(), NameClass::kUnknown);
    backward_lane_.assign(b.trace.lanes.size(), false);
    for (const HostThread& thread : b.threads) {
      backward_lane_[thread.lane.index()] = thread.backward;
    }
  }

  void Run() {
    // Scopes of one thread are in order of their begin, parents first. Forward threads go first so
    // that the backward pass finds its layers.
    for (bool backward : {false, true}) {
      for (size_t i = 0; i < b_.tables->scopes.size(); ++i) {
        const Scope& s = b_.tables->scopes[i];
        if (backward_lane_[s.lane.index()] == backward) Map(ScopeId(i), s);
      }
    }
    for (size_t i = 0; i < b_.graph.size(); ++i) Assign(TaskId(i));
    LendLayers(b_);
    for (const GraphLane& lane : b_.graph.lanes()) {
      if (lane.lane.kind != LaneKind::kThread) AddKernelTime(lane);
    }
  }

 private:
  void AddKernelTime(const GraphLane& lane) {
    for (TaskId t = lane.first; t.valid(); t = b_.graph.task(t).lane_next) {
      const Task& task = b_.graph.task(t);
      if (!IsGpu(task.kind)) continue;
      b_.report.kernel_time += task.duration;
      if (task.layer.valid()) b_.report.mapped_kernel_time += task.duration;
    }
  }

  NameClass ClassOf(const Scope& s) {
    NameClass& c = class_[s.name.index()];
    if (c == NameClass::kUnknown) c = Classify(b_.trace.Name(s.name), s.kind);
    return c;
  }

  LayerId LayerNamed(LayerId parent, std::string_view text) {
    NameId name = b_.graph.AddName(text);
    auto [it, fresh] = layers_.try_emplace({parent.value, name.value}, LayerId::None());
    if (fresh) it->second = b_.graph.AddLayer({.name = name, .parent = parent});
    return it->second;
  }

  // "conv2d #7": the seventh outermost op of this name since the step began.
  LayerId LayerByCount(const Scope& s) {
    const std::vector<Step>& steps = b_.report.steps.steps;
    bool next = false;
    if (step_ < steps.size() && s.begin < steps[step_].begin) step_ = 0, next = true;  // new thread
    while (step_ + 1 < steps.size() && steps[step_ + 1].begin <= s.begin) ++step_, next = true;
    if (next) counts_.clear();
    std::string_view name = b_.trace.Name(s.name);
    size_t colon = name.rfind("::");
    if (colon != std::string_view::npos) name.remove_prefix(colon + 2);
    return LayerNamed(LayerId::None(), fmt::format("{} #{}", name, ++counts_[s.name.value]));
  }

  void Map(ScopeId id, const Scope& s) {
    Phase& phase = phase_[id.index()];
    LayerId& layer = layer_[id.index()];
    if (s.parent.valid()) {
      phase = phase_[s.parent.index()];
      layer = layer_[s.parent.index()];
    } else if (backward_lane_[s.lane.index()]) {
      phase = Phase::kBackward;
    }
    switch (ClassOf(s)) {
      case NameClass::kOptimizer:
        phase = Phase::kOptimizer;
        layer = LayerNamed(LayerId::None(), kOptimizerLayer);
        return;
      case NameClass::kData:
        phase = Phase::kData;
        layer = LayerNamed(LayerId::None(), "loader");
        return;
      case NameClass::kForward:
        phase = Phase::kForward;
        return;
      case NameClass::kBackward:
        phase = Phase::kBackward;
        break;
      case NameClass::kModule:
        if (phase == Phase::kNone) phase = Phase::kForward;
        layer = LayerOfFrame(layer, b_.trace.Name(s.name));
        return;
      default:
        break;
    }
    if (s.kind != EventKind::kOp) return;
    if (phase == Phase::kNone) phase = Phase::kForward;
    MapOp(s, phase, layer);
  }

  void MapOp(const Scope& s, Phase phase, LayerId& layer) {
    const OpDetail* op = s.detail == Builder::kNone ? nullptr : &b_.tables->ops[s.detail];
    int64_t sequence = op == nullptr ? -1 : op->sequence;
    if (phase == Phase::kForward) {
      if (!layer.valid()) layer = LayerByCount(s);
      // The last forward op with this number is the one that made the backward node.
      if (sequence >= 0) forward_layer_[sequence] = layer;
    } else if (phase == Phase::kBackward && !layer.valid()) {
      auto it = sequence < 0 ? forward_layer_.end() : forward_layer_.find(sequence);
      layer = it != forward_layer_.end() ? it->second : LayerByCount(s);
    }
  }

  // Frames of the PyTorch profiler ("nn.Module: Conv2d_3") are parts of the frame around them;
  // those of a recording are called by the path of the layer, and are parts of what the path says.
  LayerId LayerOfFrame(LayerId around, std::string_view frame) {
    constexpr std::string_view kPrefix = "nn.Module: ";
    if (frame.starts_with(kPrefix)) return LayerNamed(around, frame.substr(kPrefix.size()));
    constexpr size_t kDeepest = 64;  // bounds the work of a path that is all dots
    LayerId layer;
    size_t dot = 0;
    for (size_t depth = 0; depth < kDeepest; ++depth) {
      dot = frame.find('.', dot + 1);
      if (dot == std::string_view::npos) break;
      layer = LayerNamed(layer, frame.substr(0, dot));
    }
    return LayerNamed(layer, frame);
  }

  void Assign(TaskId t) {
    Task& task = b_.graph.mutable_task(t);
    if (task.scope.valid()) {
      task.phase = phase_[task.scope.index()];
      task.layer = layer_[task.scope.index()];
    } else if (IsHost(task.kind) && backward_lane_[task.lane.index()]) {
      task.phase = Phase::kBackward;
    }
    if (const KernelDetail* kernel = b_.graph.Kernel(t); kernel && kernel->layer.valid()) {
      const std::string_view layer = b_.trace.Name(kernel->layer);
      const bool optimizer = IsOptimizerRange(layer);
      task.phase = optimizer          ? Phase::kOptimizer
                   : kernel->backward ? Phase::kBackward
                                      : Phase::kForward;
      task.layer = optimizer ? LayerNamed(LayerId::None(), kOptimizerLayer)
                             : LayerOfFrame(LayerId::None(), layer);
    }
    if (task.kind == TaskKind::kCollective) {
      task.phase = Phase::kComm;
      if (!task.layer.valid()) task.layer = LayerNamed(LayerId::None(), "communication");
    }
  }

  Builder& b_;
  std::vector<Phase> phase_;
  std::vector<LayerId> layer_;
  std::vector<NameClass> class_;
  std::vector<bool> backward_lane_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, LayerId> layers_;
  absl::flat_hash_map<int64_t, LayerId> forward_layer_;  // by autograd sequence number
  absl::flat_hash_map<uint32_t, uint32_t> counts_;       // by NameId, within the step
  size_t step_ = 0;
};

}  // namespace

void MapLayersAndPhases(Builder& b) { Mapper(b).Run(); }

}  // namespace daydream
