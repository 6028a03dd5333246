// Gives every task its phase and its layer. Evidence is used in this order: annotations (Optimizer,
// DataLoader, "## forward ##"), module frames of the Python stack, autograd sequence numbers (a
// backward op has the number of the forward op it belongs to), the names of ops, and for steps of a
// recording without marks of layers the steps with (graph/lend_layers.h).
//
// A GPU task has the layer of the host code that launched it, found without any synchronisation
// (Daydream, ATC 2020, section 4.3).
#include "graph/mapper.h"

#include <algorithm>

#include "base/text.h"
#include "graph/large_pages.h"
#include "trace/range_names.h"

namespace daydream {
namespace {

constexpr std::string_view kOptimizerLayer = "optimizer";

}  // namespace

Mapper::NameClass Mapper::Classify(std::string_view name, EventKind kind) {
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

Mapper::Mapper(Builder& b)
    : b_(b),
      phase_(LargeVector(b.tables->scopes.size(), Phase::kNone)),
      layer_(LargeVector(b.tables->scopes.size(), LayerId())),
      class_(b.trace.names->size(), NameClass::kUnknown),
      backward_lane_(b.trace.lanes.size(), false) {
  for (const HostThread& thread : b.threads) {
    backward_lane_[thread.lane.index()] = thread.backward;
  }
  // Scopes of one thread are in order of their begin, parents first. Forward threads go first so
  // that the backward pass finds its layers.
  const std::vector<Scope>& scopes = b.tables->scopes;
  std::vector<std::pair<size_t, size_t>> later;
  for (size_t i = 0; i < scopes.size();) {
    const size_t begin = i;
    const LaneId lane = scopes[i].lane;
    const bool backward = backward_lane_[lane.index()];
    for (; i < scopes.size() && scopes[i].lane == lane; ++i) {
      if (!backward) Map(ScopeId(i), scopes[i]);
    }
    if (backward) later.emplace_back(begin, i);
  }
  for (const auto& [begin, end] : later) {
    for (size_t i = begin; i < end; ++i) Map(ScopeId(i), scopes[i]);
  }
}

Mapper::NameClass Mapper::ClassOf(const Scope& s) {
  NameClass& c = class_[s.name.index()];
  if (c == NameClass::kUnknown) c = Classify(b_.trace.Name(s.name), s.kind);
  return c;
}

LayerId Mapper::LayerNamed(LayerId parent, std::string_view text) {
  NameId name = b_.graph.AddName(text);
  auto [it, fresh] = layers_.try_emplace({parent.value, name.value}, LayerId::None());
  if (fresh) it->second = b_.graph.AddLayer({.name = name, .parent = parent});
  return it->second;
}

// "conv2d #7": the seventh outermost op of this name since the step began.
LayerId Mapper::LayerByCount(const Scope& s) {
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

void Mapper::Map(ScopeId id, const Scope& s) {
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

void Mapper::MapOp(const Scope& s, Phase phase, LayerId& layer) {
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
LayerId Mapper::LayerOfFrame(LayerId around, std::string_view frame) {
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

void Mapper::AssignByWork(TaskId t, Task& task) {
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

}  // namespace daydream
