#include "transforms/parallel/gradients.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "absl/container/flat_hash_map.h"
#include "base/text.h"
#include "costmodel/op_shape.h"
#include "graph/ranks/collectives.h"
#include "graph/scopes.h"
#include "transforms/analysis/memory_profile.h"

namespace daydream {
namespace {

// Where a hook of DistributedDataParallel shows in a recording.
constexpr std::string_view kHook = "torch::distributed::reducer";
constexpr std::string_view kCopyBack = "copy_bucket_to_grad";
constexpr std::string_view kExchange = "nccl:";

uint64_t ElementsIn(const Dims& dims) {
  uint64_t product = 1;
  for (int64_t d : dims) {
    if (d < 0 || __builtin_mul_overflow(product, static_cast<uint64_t>(d), &product)) return 0;
  }
  return product;
}

class GradientFinder {
 public:
  explicit GradientFinder(const Graph& graph) : graph_(graph) {}

  absl::StatusOr<GradientList> Run() {
    ReadSizes();
    const bool sized = size_.size() > out_.frozen;
    if (sized) {
      absl::erase_if(size_, [](const auto& scope) { return scope.second.elements == 0; });
    } else {
      out_.frozen = 0;
    }
    std::vector<StepGradients> steps(std::max<size_t>(graph_.steps().size(), 1));
    FindCopies();
    copied_.resize(steps.size());
    for (const GraphLane& lane : graph_.lanes()) {
      if (lane.lane.kind == LaneKind::kThread) Walk(lane, steps);
    }
    for (size_t s = 0; s < steps.size(); ++s) {
      StepGradients& step = steps[s];
      if (step.ready.empty()) continue;
      const bool copied = NameCopies(copied_[s], step, !sized);
      if (!sized && !copied && !SizeByOptimizer(static_cast<uint16_t>(s), step)) continue;
      step.step = static_cast<uint16_t>(s);
      step.passes = PassesOf(step.ready);
      const size_t one = step.ready.size() / step.passes;
      step.ready.erase(step.ready.begin(), step.ready.end() - static_cast<ptrdiff_t>(one));
      out_.steps.push_back(std::move(step));
    }
    if (out_.steps.empty()) return Unknown();
    return std::move(out_);
  }

 private:
  // The whole sequence is so many times the same one, and a forward pass lies between: layers may
  // be alike, too.
  size_t PassesOf(const std::vector<Gradient>& ready) {
    for (size_t times = std::min<size_t>(ready.size(), 1024); times > 1; --times) {
      if (ready.size() % times != 0) continue;
      const size_t length = ready.size() / times;
      if (length < 2) continue;
      bool same = true;
      for (size_t i = length; i < ready.size() && same; ++i) {
        same = ready[i].size.elements == ready[i - length].size.elements &&
               (i % length != 0 || ForwardBetween(ready[i - 1].last, ready[i].last));
      }
      if (same) return times;
    }
    return 1;
  }

  // Copies of a pass begin with its forward pass.
  bool ForwardBetween(TaskId before, TaskId after) {
    const Task &a = graph_.task(before), &b = graph_.task(after);
    if (a.copy != b.copy) return true;
    if (forward_.empty()) {
      for (const Task& t : graph_.tasks()) {
        if (IsHost(t.kind) && t.phase == Phase::kForward) forward_.push_back(t.recorded_start);
      }
      std::sort(forward_.begin(), forward_.end());
    }
    const auto next = std::upper_bound(forward_.begin(), forward_.end(), a.recorded_start);
    return next != forward_.end() && *next < b.recorded_start;
  }

  // Scopes whose shapes tell nothing get no elements.
  void ReadSizes() {
    for (ScopeId s : GradientScopes(graph_)) {
      GradientSize& size = size_[s] = {};
      const OpDetail* op = graph_.OpOf(s);
      if (op != nullptr && op->shapes.valid()) {
        size = SizeOf(graph_.Name(op->shapes), op->types.valid() ? graph_.Name(op->types) : "");
      }
      out_.frozen += size.elements == 0;
    }
  }

  GradientSize SizeOf(std::string_view shapes, std::string_view types) {
    const auto dims = ParseShapes(shapes);
    if (!dims.has_value() || dims->empty()) return {};
    return Sized(dims->front(), ParseDType(types));
  }

  // A scalar has no dimensions, and neither has what is no tensor: the type tells them apart.
  GradientSize Sized(const Dims& dims, DType dtype) {
    if (dims.empty() && dtype == DType::kUnknown) return {};
    out_.width_assumed |= dtype == DType::kUnknown;
    const uint64_t rows = dims.empty() ? 1 : static_cast<uint64_t>(std::max<int64_t>(1, dims[0]));
    return {ElementsIn(dims), static_cast<uint32_t>(DTypeBytes(dtype)), rows};
  }

  // By launching call, the copies on the GPU; and the type that all recorded exchanges have.
  void FindCopies() {
    for (const Edge& e : graph_.edges()) {
      const bool copies = graph_.task(e.to).kind == TaskKind::kMemcpy;
      if (e.rule == Rule::kLaunch && copies) copy_of_[e.from] = e.to;
    }
    for (const CollectiveDetail& d : graph_.tables().collectives) {
      if (CollectiveNamed(graph_.Name(d.name)) != CollectiveKind::kAllReduce) continue;
      const uint64_t bytes = ElementBytes(graph_.Name(d.dtype));
      if (exchanged_bytes_ != 0 && bytes != exchanged_bytes_) bytes_differ_ = true;
      exchanged_bytes_ = bytes;
    }
  }

  // Copies of a step stand in the order of its buckets, and in these gradients stand as they became
  // ready. One copy for each gradient of the last backward pass, or they tell nothing.
  bool NameCopies(const std::vector<TaskId>& copies, StepGradients& step, bool size) {
    const size_t count = copies.size(), all = step.ready.size();
    if (count == 0 || all % count != 0) return false;
    const bool known = exchanged_bytes_ != 0 && !bytes_differ_;
    const uint64_t width = known ? exchanged_bytes_ : 4;
    for (size_t i = 0; i < all; ++i) {
      const TaskId copy = copies[i % count];
      if (i >= all - count) step.ready[i].copy = copy;
      if (!size) continue;
      const CopyDetail* detail = graph_.Copy(copy);
      step.ready[i].size = {detail->bytes / width, static_cast<uint32_t>(width), 0};
    }
    if (size) out_.copied = true, out_.width_assumed |= !known;
    return true;
  }

  // An op of the optimizer that is there once for each gradient of a pass, or one on a list of all:
  // it goes through the parameters in their order, and gradients come in about the opposite.
  bool SizeByOptimizer(uint16_t step, StepGradients& found) {
    std::map<NameId, std::vector<GradientSize>> by_op;
    ScopeId before;
    for (const GraphLane& lane : graph_.lanes()) {
      if (lane.lane.kind != LaneKind::kThread) continue;
      for (TaskId t = lane.first; t.valid(); t = graph_.task(t).lane_next) {
        const Task& task = graph_.task(t);
        if (task.step != step || task.phase != Phase::kOptimizer || task.scope == before) continue;
        before = task.scope;
        const OpDetail* op = task.scope.valid() ? graph_.OpOf(task.scope) : nullptr;
        if (op == nullptr || !op->shapes.valid()) continue;
        const auto dims = ParseShapes(graph_.Name(op->shapes));
        if (!dims.has_value() || dims->empty()) continue;
        const DType dtype = ParseDType(op->types.valid() ? graph_.Name(op->types) : "");
        std::vector<GradientSize>& sizes = by_op[ScopeAt(graph_, task.scope).name];
        const bool list = graph_.Name(op->shapes).starts_with("[[[");
        const size_t all = list ? std::min(dims->size(), found.ready.size()) : 1;
        for (size_t i = 0; i < all; ++i) sizes.push_back(Sized((*dims)[i], dtype));
      }
    }
    size_t passes = 1;
    for (size_t i = 1; i < found.ready.size(); ++i) {
      passes += ForwardBetween(found.ready[i - 1].last, found.ready[i].last);
    }
    for (const auto& [name, sizes] : by_op) {
      const size_t one = sizes.size(), all = found.ready.size();
      if (one != all && one * passes != all) continue;
      for (size_t i = 0; i < all; ++i) found.ready[i].size = sizes[one - 1 - i % one];
      out_.order_assumed = true;
      return true;
    }
    return false;
  }

  // Tasks of one scope stand together on their thread; what is nested in it may lie between.
  void Walk(const GraphLane& lane, std::vector<StepGradients>& steps) {
    ScopeId now;
    uint16_t copy = 0;
    Gradient* open = nullptr;
    Gradient* latest = nullptr;
    for (TaskId t = lane.first; t.valid(); t = graph_.task(t).lane_next) {
      const Task& task = graph_.task(t);
      if ((task.removed && !task.merged) || !IsHost(task.kind)) continue;
      const ScopeId scope = GradientAround(task.scope);
      if (!scope.valid()) {
        LookAtHook(t, task, latest);
        open = nullptr;
        continue;
      }
      if (graph_.TaskName(t) == kCopyBackCall) continue;
      if (open == nullptr || scope != now || task.copy != copy) {
        if (task.step >= steps.size()) continue;
        steps[task.step].ready.push_back({.size = size_.at(scope), .last = t});
        open = latest = &steps[task.step].ready.back();
        now = scope, copy = task.copy;
      }
      open->last = t;
      open->host += task.duration;
    }
  }

  ScopeId GradientAround(ScopeId innermost) const {
    for (ScopeId s : ScopesAround(graph_, innermost)) {
      if (size_.contains(s)) return s;
    }
    return {};
  }

  // Behind the gradient `latest`: what its hook does, up to the exchange that it launches, or,
  // after all of backward, a copy back.
  void LookAtHook(TaskId t, const Task& task, Gradient* latest) {
    if (latest == nullptr) return;
    for (ScopeId s : ScopesAround(graph_, task.scope)) {
      const std::string_view name = graph_.Name(ScopeAt(graph_, s).name);
      if (name.starts_with(kHook)) latest->hooked = true;
      if (name.starts_with(kHook) || name.starts_with(kExchange)) latest->call = t;
      const auto copy = name.ends_with(kCopyBack) ? copy_of_.find(t) : copy_of_.end();
      if (copy == copy_of_.end() || task.step >= copied_.size()) continue;
      const CopyDetail* detail = graph_.Copy(copy->second);
      if (detail != nullptr && detail->bytes > 0) copied_[task.step].push_back(copy->second);
    }
  }

  absl::Status Unknown() const {
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition,
        {.code = "E0815",
         .what = "the sizes of the gradients are not known",
         .why = size_.empty()
                    ? "no gradient of PyTorch's autograd is in this trace"
                    : fmt::format("{} gradients were recorded without shapes, and without copies "
                                  "out of buckets",
                                  size_.size()),
         .fix = "record a training step with record_shapes=True"});
  }

  const Graph& graph_;
  GradientList out_;
  absl::flat_hash_map<ScopeId, GradientSize> size_;
  absl::flat_hash_map<TaskId, TaskId> copy_of_;
  std::vector<std::vector<TaskId>> copied_;  // by step
  std::vector<Instant> forward_;             // work of forward passes on the host, in order
  uint64_t exchanged_bytes_ = 0;             // of an element; 0: not known
  bool bytes_differ_ = false;
};

}  // namespace

absl::StatusOr<GradientList> FindGradients(const Graph& graph) {
  return GradientFinder(graph).Run();
}

}  // namespace daydream
