#include "transforms/analysis/precision.h"

#include <algorithm>
#include <array>

#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "costmodel/op_shape.h"
#include "graph/facts.h"
#include "graph/scopes.h"

namespace daydream {
namespace {

// Ops that autocast runs in fp32, without "aten::" and what comes before "_backward": PyTorch
// documentation, "Autocast Op Reference", CUDA ops that autocast to float32.
constexpr std::array<std::string_view, 36> kFullOps = {"softmax",
                                                       "log_softmax",
                                                       "_softmax",
                                                       "_log_softmax",
                                                       "layer_norm",
                                                       "native_layer_norm",
                                                       "group_norm",
                                                       "native_group_norm",
                                                       "norm",
                                                       "cosine_similarity",
                                                       "cross_entropy_loss",
                                                       "nll_loss",
                                                       "nll_loss_forward",
                                                       "mse_loss",
                                                       "l1_loss",
                                                       "smooth_l1_loss",
                                                       "kl_div",
                                                       "binary_cross_entropy_with_logits",
                                                       "cumsum",
                                                       "cumprod",
                                                       "prod",
                                                       "sum",
                                                       "exp",
                                                       "expm1",
                                                       "log",
                                                       "log10",
                                                       "log1p",
                                                       "log2",
                                                       "pow",
                                                       "reciprocal",
                                                       "rsqrt",
                                                       "softplus",
                                                       "cdist",
                                                       "erfinv",
                                                       "tan",
                                                       "embedding"};

bool IsFullOp(std::string_view name) {
  if (!name.starts_with("aten::")) return false;
  name.remove_prefix(6);
  for (std::string_view end : {"_backward_data", "_backward"}) {
    if (name.ends_with(end)) name.remove_suffix(end.size());
  }
  static const auto& full =
      *new absl::flat_hash_set<std::string_view>(kFullOps.begin(), kFullOps.end());
  return full.contains(name);
}

// Ops of other libraries ("fbgemm::permute_pooled_embs"), which autocast has no rule for.
bool IsCustomOp(std::string_view name) {
  constexpr std::string_view kOwn[] = {"aten", "prims", "autograd", "torch", "inductor"};
  const size_t end = name.find("::");
  return end != name.npos &&
         std::find(std::begin(kOwn), std::end(kOwn), name.substr(0, end)) == std::end(kOwn);
}

// FlashAttention's kernels take nothing else (its README: "Datatype fp16 and bf16").
bool TakesOnlyHalf(std::string_view kernel) {
  return Contains(kernel, "flash_fwd") || Contains(kernel, "flash_bwd");
}

bool IsHalf(DType d) {
  return d == DType::kFp16 || d == DType::kBf16 || d == DType::kFp8 || d == DType::kNvfp4;
}

bool NamesHalf(std::string_view types) {
  return Contains(types, "Half") || Contains(types, "BFloat16") || Contains(types, "Float8");
}

Autocast RuleOf(KernelClass kind, std::string_view kernel) {
  switch (kind) {
    case KernelClass::kGemm:
    case KernelClass::kConv:
    case KernelClass::kAttention:
      return Autocast::kMatrix;
    case KernelClass::kNorm:
      // Batch norm takes 16-bit input; only its statistics are in fp32.
      return Contains(kernel, "batch_norm") || Contains(kernel, "batchnorm") ||
                     Contains(kernel, "BatchNorm") || Contains(kernel, "bn_fw") ||
                     Contains(kernel, "bn_bw")
                 ? Autocast::kFollow
                 : Autocast::kFull;
    case KernelClass::kElementwise:
    case KernelClass::kPool:
    case KernelClass::kCopy:
      return Autocast::kFollow;
    case KernelClass::kSoftmax:
    case KernelClass::kReduce:
    case KernelClass::kOptimizer:
      return Autocast::kFull;
    case KernelClass::kIndex:
    case KernelClass::kComm:
    case KernelClass::kOther:
      break;
  }
  return Autocast::kUntouched;
}

}  // namespace

PrecisionRules::PrecisionRules(const Graph& graph)
    : graph_(graph), kernels_(graph), facts_(FactOfTables<RowFlags<ScopeId>>(graph, [&] {
        return RowFlags<ScopeId>(graph.tables().scopes.size());
      })) {}

uint8_t PrecisionRules::OpFacts::flags() const {
  return static_cast<uint8_t>((full ? 1 : 0) | (custom ? 2 : 0) | (typed ? 4 : 0) | (half ? 8 : 0));
}

PrecisionRules::OpFacts PrecisionRules::OpFacts::Of(uint8_t flags) {
  return {.full = (flags & 1) != 0,
          .custom = (flags & 2) != 0,
          .typed = (flags & 4) != 0,
          .half = (flags & 8) != 0};
}

PrecisionRules::OpFacts PrecisionRules::FactsOf(ScopeId scope) {
  return OpFacts::Of(facts_->Of(scope, [&] { return FindFacts(scope).flags(); }));
}

PrecisionRules::OpFacts PrecisionRules::FindFacts(ScopeId scope) {
  OpFacts facts;
  for (ScopeId s : ScopesAround(graph_, scope)) {
    const Scope& here = ScopeAt(graph_, s);
    if (here.kind != EventKind::kOp) break;
    const auto [named, is_new] = names_.try_emplace(here.name);
    if (is_new) {
      const std::string_view name = graph_.Name(here.name);
      named->second = {.full = IsFullOp(name), .custom = IsCustomOp(name)};
    }
    facts.full |= named->second.full;
    if (s == scope) facts.custom = named->second.custom;
    const OpDetail* op = graph_.OpOf(s);
    if (op == nullptr || !op->types.valid()) continue;
    const auto [typed, are_new] = types_.try_emplace(op->types);
    if (are_new) {
      const std::string_view types = graph_.Name(op->types);
      typed->second = {.typed = ParseDType(types) != DType::kUnknown, .half = NamesHalf(types)};
    }
    facts.typed |= typed->second.typed;
    facts.half |= typed->second.half;
  }
  return facts;
}

bool PrecisionRules::IsHalfElsewhere(NameId kernel) {
  if (!formats_) {
    formats_.emplace();
    for (const Task& task : graph_.tasks()) {
      if (task.kind != TaskKind::kKernel) continue;
      const OpFacts op = FactsOf(task.scope);
      if (op.typed) (op.half ? (*formats_)[task.name].half : (*formats_)[task.name].other) = true;
    }
  }
  auto it = formats_->find(kernel);
  return it != formats_->end() && it->second.half && !it->second.other;
}

bool PrecisionRules::ProductsAreHalf() {
  if (!products_half_) {
    bool half = false, other = false;
    for (const Task& task : graph_.tasks()) {
      if (task.kind != TaskKind::kKernel) continue;
      const KernelTraits& traits = kernels_.Of(task.name);
      if (traits.kind != KernelClass::kGemm && traits.kind != KernelClass::kConv) continue;
      const OpFacts op = FactsOf(task.scope);
      const bool known = traits.dtype != DType::kUnknown || op.typed;
      (IsHalf(traits.dtype) || op.half ? half : other) |= known;
    }
    products_half_ = half && !other;
  }
  return *products_half_;
}

KernelPrecision PrecisionRules::Of(TaskId t) {
  const Task& task = graph_.task(t);
  OpFacts op = FactsOf(task.scope);
  KernelPrecision p{.traits = kernels_.Of(task.name)};
  std::string_view name = graph_.Name(task.name);
  p.half_already = IsHalf(p.traits.dtype);
  if (p.traits.dtype == DType::kUnknown) {
    p.half_already = op.half || TakesOnlyHalf(name) || (!op.typed && IsHalfElsewhere(task.name));
    // Attention takes what products give it.
    p.half_already |= p.traits.kind == KernelClass::kAttention && !op.typed && ProductsAreHalf();
  }
  p.rule = RuleOf(p.traits.kind, name);
  if (p.rule == Autocast::kFollow && (op.custom || task.phase == Phase::kOptimizer)) {
    p.rule = Autocast::kFull;
  }
  if (p.rule != Autocast::kMatrix && op.full) p.rule = Autocast::kFull;
  bool integer = p.traits.dtype == DType::kInt8 || p.traits.dtype == DType::kFp64;
  if (integer && p.rule != Autocast::kFull) p.rule = Autocast::kUntouched;
  return p;
}

ScopeId PrecisionRules::OpOf(TaskId t) const {
  ScopeId innermost;
  for (ScopeId s : ScopesAround(graph_, graph_.task(t).scope)) {
    if (ScopeAt(graph_, s).kind != EventKind::kOp) continue;
    if (!innermost.valid()) innermost = s;
    const OpDetail* op = graph_.OpOf(s);
    if (op != nullptr && op->shapes.valid()) return s;
  }
  return innermost;
}

DType RecordedFormat(const DeviceSpec& spec, const KernelPrecision& kernel) {
  const KernelTraits& traits = kernel.traits;
  if (kernel.half_already) return traits.dtype == DType::kUnknown ? DType::kFp16 : traits.dtype;
  // Names that do not tell stand for tensor cores where the GPU has TF32: the smaller gain.
  const bool silent = traits.dtype == DType::kUnknown;
  const bool tensor = traits.tensor_cores || traits.dtype == DType::kTf32 || silent;
  return tensor && spec.TensorPeak(DType::kTf32) > 0 ? DType::kTf32 : DType::kFp32;
}

DeviceMatch DeviceOf(const Graph& graph, TaskId t) {
  if (const DeviceSpec* spec = graph.model_changes().device.get()) {
    return {.spec = spec, .sure = true, .named = true, .how = spec->name + ", put in by gpu"};
  }
  const int32_t id = graph.lane(graph.task(t).lane).lane.device;
  const std::vector<Device>& devices = graph.tables().devices;
  for (const Device& d : devices) {
    if (d.id == id) return MatchDevice(d);
  }
  if (!devices.empty()) return MatchDevice(devices.front());
  return {};
}

}  // namespace daydream
