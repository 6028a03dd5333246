#include "transforms/memory_profile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "transforms/saved_tensors.h"

namespace daydream {
namespace {

constexpr std::string_view kAccumulate = "torch::autograd::AccumulateGrad";

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

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
    std::map<std::pair<uint16_t, uint16_t>, std::pair<double, double>> passes;  // kept, weights
    for (const ForwardOp& op : ForwardOps(graph_)) {
      ++p_.ops;
      p_.ops_without_shapes += !op.shape.known();
      p_.ops_not_known += op.shape.known() && !op.recognised;
      auto& [kept, weights] = passes[{op.step, op.pass}];
      kept += op.kept;
      weights += op.weights;
    }
    for (const auto& [pass, bytes] : passes) {
      p_.activations = std::max(p_.activations, bytes.first);
      p_.parameters = std::max(p_.parameters, bytes.second);
    }
    passes_ = passes.size();
    p_.trains = std::any_of(graph_.tasks().begin(), graph_.tasks().end(), [](const Task& t) {
      return t.phase == Phase::kBackward && IsGpu(t.kind) && !t.removed;
    });
  }

  // Autograd hands each parameter its gradient once a pass. Without shapes of that, what the
  // forward ops used as weights stands.
  void AddParameters() {
    absl::flat_hash_map<uint32_t, size_t> often;  // by detail of the op
    absl::flat_hash_map<NameId, bool> accumulates;
    for (const Scope& s : graph_.tables().scopes) {
      if (s.kind != EventKind::kOp) continue;
      auto [it, fresh] = accumulates.try_emplace(s.name, false);
      if (fresh) it->second = graph_.Name(s.name) == kAccumulate;
      if (it->second && s.detail < graph_.tables().ops.size()) ++often[s.detail];
    }
    double bytes = 0;
    const auto passes = static_cast<double>(std::max<size_t>(passes_, 1));
    for (const auto& [detail, count] : often) {
      const OpDetail& op = graph_.tables().ops[detail];
      auto shapes = op.shapes.valid() ? ParseShapes(graph_.Name(op.shapes)) : std::nullopt;
      if (!shapes.has_value() || shapes->empty()) continue;
      const DType dtype = ParseDType(op.types.valid() ? graph_.Name(op.types) : "");
      // Steps at the border of the recording are there in part: whole numbers.
      const double times = std::max(1.0, std::round(static_cast<double>(count) / passes));
      bytes += times * ElementsOf(shapes->front()) * DTypeBytes(dtype);
    }
    if (bytes > 0) p_.parameters = bytes;
    if (p_.trains) p_.gradients = p_.parameters;
  }

  // Adam keeps two values a parameter, momentum one (PyTorch's optimizers).
  void AddOptimizer() {
    bool any = false, adam = false, momentum = false, other = false;
    absl::flat_hash_map<NameId, bool> seen;
    auto look = [&](NameId id) {
      if (!seen.try_emplace(id, true).second) return;
      const std::string_view name = graph_.Name(id);
      adam |= Has(name, "Adam") || Has(name, "adam") || Has(name, "addcdiv");
      momentum |= name == "aten::mul_" || name == "aten::_foreach_mul_" || Has(name, "RMSprop") ||
                  Has(name, "Adagrad");
      other |= Has(name, "Optimizer.step#") && !Has(name, "SGD") && !Has(name, "Adam") &&
               !Has(name, "RMSprop") && !Has(name, "Adagrad");
    };
    const std::vector<Scope>& scopes = graph_.tables().scopes;
    for (const Task& t : graph_.tasks()) {
      if (t.phase != Phase::kOptimizer || t.removed) continue;
      any = true;
      ScopeId s = t.scope;
      for (int depth = 0; depth < 64 && s.index() < scopes.size(); ++depth) {
        look(scopes[s.index()].name);
        s = scopes[s.index()].parent;
      }
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

PeakAfter AfterChanges(const MemoryProfile& before, std::span<const MemoryChange> changes) {
  PeakAfter after{.peak = before.peak, .estimate = before.estimate(), .capacity = before.capacity};
  double left = 1;
  for (const MemoryChange& c : changes) {
    const auto bytes = static_cast<double>(c.bytes);
    after.unknown |= c.unknown;
    after.estimate |= c.estimate;
    if (c.of_activations > 0) {
      left *= std::max(0.0, 1 + bytes / static_cast<double>(c.of_activations));
    } else {
      after.peak += bytes;
    }
  }
  after.peak += before.in_step * (left - 1);
  after.peak = std::max(after.peak, 0.0);
  return after;
}

}  // namespace daydream
