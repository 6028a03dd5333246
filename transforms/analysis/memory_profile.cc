#include "transforms/analysis/memory_profile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/text.h"
#include "graph/scopes.h"
#include "transforms/analysis/kept_peak.h"
#include "transforms/core/transform.h"

namespace daydream {
namespace {

constexpr std::string_view kGradientOp = "torch::autograd::AccumulateGrad";

class Profiler {
 public:
  explicit Profiler(const Graph& graph) : graph_(graph) {}

  MemoryProfile Run() {
    AddForward();
    AddParameters();
    AddOptimizer();
    const double sum = p_.parameters + p_.gradients + p_.optimizer_state + p_.activations;
    if (sum > 0) {
      p_.source = MemoryProfile::Source::kShapes;
      p_.peak = sum;
      p_.at_least = !p_.trains;  // parameters only: what the forward pass makes is not in it
      p_.in_step = p_.activations;
    }
    if (const Trace* trace = graph_.tables().trace.get()) ReadAllocations(*trace);
    const std::vector<Device>& devices = graph_.tables().devices;
    if (!devices.empty()) p_.capacity = devices.front().memory_bytes;
    return p_;
  }

 private:
  void AddForward() {
    std::set<std::pair<uint16_t, uint16_t>> passes;
    std::pair<uint16_t, uint16_t> last;
    double weights = 0;  // of the pass at hand
    const auto add = [&](const ForwardOp& op) {
      ++p_.ops;
      p_.ops_without_shapes += !op.shape.known();
      p_.ops_not_known += op.shape.known() && !op.recognised;
      const std::pair pass(op.step, op.pass);
      if (std::exchange(last, pass) != pass) weights = 0;
      passes.insert(pass);
      weights += op.weights;
      p_.parameters = std::max(p_.parameters, weights);
    };
    if (!ForEachForwardOp(graph_, add)) {
      const std::vector<ForwardOp> ops = ForwardOps(graph_);
      p_.activations = PeakOfKept(ops);
      for (const ForwardOp& op : ops) add(op);
    }
    passes_ = passes.size();
    p_.trains = HasBackward(graph_);
  }

  // Autograd hands each parameter its gradient once a pass. Without shapes of that, what the
  // forward ops used as weights stands.
  void AddParameters() {
    absl::flat_hash_map<std::pair<NameId, NameId>, size_t> often;  // by shapes and types
    for (ScopeId s : GradientScopes(graph_)) {
      const OpDetail* op = graph_.OpOf(s);
      if (op != nullptr && op->shapes.valid()) ++often[{op->shapes, op->types}];
    }
    double bytes = 0;
    const auto passes = static_cast<double>(std::max<size_t>(passes_, 1));
    for (const auto& [op, count] : often) {
      const auto shapes = ParseShapes(graph_.Name(op.first));
      if (!shapes.has_value() || shapes->empty()) continue;
      const DType dtype = ParseDType(op.second.valid() ? graph_.Name(op.second) : "");
      // Steps at the border of the recording are there in part: whole numbers.
      const double times = std::max(1.0, std::round(static_cast<double>(count) / passes));
      bytes += times * ElementsOf(shapes->front()) * DTypeBytes(dtype);
    }
    if (bytes > 0) p_.parameters = bytes * graph_.model_changes().parameter_growth;
    if (p_.trains) p_.gradients = p_.parameters;
  }

  // Adam keeps two values a parameter, momentum one (PyTorch's optimizers).
  void AddOptimizer() {
    bool any = false, adam = false, momentum = false, other = false;
    absl::flat_hash_map<NameId, bool> seen;
    auto look = [&](NameId id) {
      if (!seen.try_emplace(id, true).second) return;
      const std::string_view name = graph_.Name(id);
      adam |= Contains(name, "Adam") || Contains(name, "adam") || Contains(name, "addcdiv");
      momentum |= name == "aten::mul_" || name == "aten::_foreach_mul_" ||
                  Contains(name, "RMSprop") || Contains(name, "Adagrad");
      other |= Contains(name, "Optimizer.step#") && !Contains(name, "SGD") &&
               !Contains(name, "Adam") && !Contains(name, "RMSprop") && !Contains(name, "Adagrad");
    };
    for (const Task& t : graph_.tasks()) {
      if (t.phase != Phase::kOptimizer || (t.removed && !t.merged)) continue;
      any = true;
      for (ScopeId s : ScopesAround(graph_, t.scope)) look(ScopeAt(graph_, s).name);
    }
    p_.optimizer_known = any && (adam || !other);
    if (!p_.optimizer_known) return;
    p_.optimizer_state = p_.parameters * (adam ? 2 : momentum ? 1 : 0);
  }

  void ReadAllocations(const Trace& trace) {
    struct Level {
      double now = 0, low = 0, high = 0, reserved = 0;
      bool begun = false, total = true;
    };
    std::map<int32_t, Level> levels;
    for (const Allocation& a : trace.allocations) {
      Level& level = levels[a.device];
      const auto bytes = static_cast<double>(a.bytes);
      if (a.allocated < 0) level.total = false;
      const double after = a.allocated >= 0 ? static_cast<double>(a.allocated) : level.now + bytes;
      // Before the first event: as much as makes the event fit.
      if (!std::exchange(level.begun, true)) level.low = level.high = after - bytes;
      level.now = after;
      level.low = std::min(level.low, after);
      level.high = std::max(level.high, after);
      level.reserved = std::max(level.reserved, static_cast<double>(a.reserved));
    }
    const Level* most = nullptr;
    for (const auto& [device, level] : levels) {
      if (most == nullptr || level.high - level.low > most->high - most->low) most = &level;
    }
    if (most == nullptr || most->high <= most->low) return;
    p_.source = MemoryProfile::Source::kAllocations;
    p_.at_least = !most->total;
    p_.in_step = most->high - most->low;
    // Without totals the lowest point counts as empty.
    p_.peak = most->total ? most->high : p_.in_step;
    p_.reserved = most->reserved;
  }

  const Graph& graph_;
  MemoryProfile p_;
  size_t passes_ = 0;
};

}  // namespace

MemoryProfile ProfileMemory(const Graph& graph) { return Profiler(graph).Run(); }

std::optional<int64_t> SumOfChanges(std::span<const MemoryChange> changes) {
  int64_t sum = 0;
  for (const MemoryChange& c : changes) {
    if (c.unknown) return std::nullopt;
    sum += c.bytes;
  }
  return sum;
}

MemoryChange ChangeOfParameters(const MemoryProfile& before, double growth) {
  const double all = before.parameters + before.gradients + before.optimizer_state;
  const bool all_known = !before.trains || before.optimizer_known;
  return {.what = all_known ? "parameters, their gradients and the optimizer's state"
                            : "parameters and gradients; the optimizer is not known",
          .bytes = std::llround(all * growth),
          .estimate = true,
          .unknown = before.parameters <= 0};
}

std::vector<ScopeId> GradientScopes(const Graph& graph) {
  std::vector<ScopeId> found;
  absl::flat_hash_map<NameId, bool> accumulates;
  const std::vector<Scope>& scopes = graph.tables().scopes;
  for (size_t i = 0; i < scopes.size(); ++i) {
    if (scopes[i].kind != EventKind::kOp) continue;
    auto [it, fresh] = accumulates.try_emplace(scopes[i].name, false);
    if (fresh) it->second = graph.Name(scopes[i].name) == kGradientOp;
    if (it->second) found.emplace_back(i);
  }
  return found;
}

PeakAfter AfterChanges(const MemoryProfile& before, std::span<const MemoryChange> changes) {
  PeakAfter after{.peak = before.peak, .estimate = before.estimate(), .capacity = before.capacity};
  for (const MemoryChange& c : changes) {
    after.peak += static_cast<double>(c.bytes);
    after.unknown |= c.unknown;
    after.estimate |= c.estimate;
    after.at_most |= c.at_most;
  }
  after.peak = std::max(after.peak, 0.0);
  return after;
}

MemoryTrail::MemoryTrail(const MemoryProfile& profile)
    : measured_(profile.source == MemoryProfile::Source::kAllocations),
      trains_(profile.trains),
      shapes_(profile.ops > profile.ops_without_shapes),
      in_step_(profile.in_step),
      kept_(profile.activations) {
  if (measured_ && kept_ > 0) scale_ = in_step_ / kept_;
}

void MemoryTrail::Measure(const Graph& graph, MemoryChange& change) {
  change.estimate = true;
  if (trains_ && shapes_) {
    const double now = PeakOfKept(ForwardOps(graph));
    change.bytes = std::llround(scale_ * (now - kept_));
    in_step_ += scale_ * (now - kept_);
    kept_ = now;
  } else if (measured_ && change.in_step > 0) {
    change.bytes = std::llround(in_step_ * (change.in_step - 1));
    in_step_ *= change.in_step;
  } else {
    // Without a backward pass nothing is kept; what lives at once within forward, nothing tells.
    change.unknown = trains_ || change.in_step > 0;
  }
}

void MemoryTrail::Follow(const Transform& transform, const Graph& graph, Changes& changes) {
  if (transform.memory == MemoryEffect::kNone) return;
  if (changes.moved > 0) {
    // Less can be told of who keeps what on another stream, but it is all there.
    const double now = kept_ > 0 ? PeakOfKept(ForwardOps(graph)) : 0;
    if (now > 0) scale_ *= kept_ / now, kept_ = now;
    return;
  }
  if (transform.memory != MemoryEffect::kKept) return;
  std::vector<MemoryChange>& memory = changes.memory;
  auto told =
      std::find_if(memory.begin(), memory.end(), [](const MemoryChange& c) { return c.kept; });
  if (told != memory.end()) {
    Measure(graph, *told);
    return;
  }
  MemoryChange change{.what = "what is kept for backward", .kept = true};
  Measure(graph, change);
  // An optimization that says what else it changes, and nothing of this, leaves it as it is.
  if (change.unknown && !memory.empty()) return;
  if (change.unknown) change.what += " without shapes of ops (record_shapes=True)";
  if (change.bytes != 0 || change.unknown) memory.insert(memory.begin(), std::move(change));
}

}  // namespace daydream
