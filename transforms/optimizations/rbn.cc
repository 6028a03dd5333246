// rbn: batch norm next to convolutions becomes part of them.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "graph/scopes.h"
#include "transforms/core/transform.h"
#include "transforms/edits/fuse_groups.h"
#include "transforms/edits/scale_by.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr ParamSpec kRbnParams[] = {
    {.name = "forward",
     .unit = Unit::kShare,
     .fallback = 0.667,
     .low = 0.5,
     .high = 1,
     .max = 1,
     .help = "time of batch norm in forward that stays",
     .source = "Jung et al. (MLSys'19): the input is read for the statistics and for the result, "
               "and the result written; the first of the three passes moves into the convolution"},
    {.name = "backward",
     .unit = Unit::kShare,
     .fallback = 0.6,
     .low = 0.5,
     .high = 1,
     .max = 1,
     .help = "time of batch norm in backward that stays",
     .source = "the same: two of five passes (input and gradient are read twice, the result is "
               "written once) move into convolutions; Daydream (ATC'20) takes a half"},
    {.name = "conv",
     .unit = Unit::kFactor,
     .fallback = 1,
     .low = 1,
     .high = 1.15,
     .min = 0.1,
     .max = 10,
     .help = "time of the convolutions that take over the work",
     .source =
         "design estimate, not measured: Daydream predicted a gain of 12.7 % and measured 7 %"},
};

bool IsBatchNorm(std::string_view kernel) {
  return Contains(kernel, "batch_norm") || Contains(kernel, "batchnorm") ||
         Contains(kernel, "BatchNorm") || Contains(kernel, "bn_fw") || Contains(kernel, "bn_bw");
}

class Rbn {
 public:
  Rbn(const Params& params, Editor& edit) : params_(params), edit_(edit), classes_(edit.graph()) {}

  absl::Status Run() {
    for (const GraphLane& lane : graph().lanes()) {
      if (lane.lane.kind != LaneKind::kStream) continue;
      kernels_.clear();
      for (TaskId t = lane.first; t.valid(); t = graph().task(t).lane_next) {
        const Task& task = graph().task(t);
        if (!task.removed && task.kind == TaskKind::kKernel) kernels_.push_back(t);
      }
      for (size_t i = 0; i < kernels_.size(); ++i) Visit(i);
    }
    if (norms_ == 0) {
      edit_.changes().notes.push_back("no batch norm between convolutions");
      return absl::OkStatus();
    }
    edit_.BeginCause("batch norm moves into convolutions");
    ScaleBy("forward", shorter_forward_, params_, edit_);
    ScaleBy("backward", shorter_backward_, params_, edit_);
    std::sort(convs_.begin(), convs_.end());
    convs_.erase(std::unique(convs_.begin(), convs_.end()), convs_.end());
    if (params_["conv"] != 1) edit_.BeginCause("convolutions do the work of batch norm");
    ScaleBy("conv", convs_, params_, edit_);
    edit_.BeginCause("activations move into convolutions");
    edit_.RemoveWithLaunches(activations_);
    edit_.changes().notes.push_back(
        fmt::format("{} batch norm kernels get shorter, {} activations after them are gone", norms_,
                    activations_.size()));
    edit_.changes().warnings.push_back("no library offers these kernels: they have to be written");
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }
  std::string_view Name(size_t i) const { return graph().TaskName(kernels_[i]); }

  bool IsConv(size_t i) const { return classes_.Of(kernels_[i]) == KernelClass::kConv; }

  // ReLU and its gradient, by the op where it is known: the kernels have many names.
  bool IsActivation(size_t i) const {
    if (classes_.Of(kernels_[i]) != KernelClass::kElementwise) return false;
    for (ScopeId s : ScopesAround(graph(), graph().task(kernels_[i]).scope)) {
      const Scope& scope = ScopeAt(graph(), s);
      if (scope.kind != EventKind::kOp) break;
      if (ContainsAny(graph().Name(scope.name), {"relu", "Relu", "threshold", "clamp_min"})) {
        return true;
      }
    }
    return ContainsAny(Name(i), {"relu", "threshold", "clamp_min", "clamp_scalar"});
  }

  void Visit(size_t i) {
    if (!IsBatchNorm(Name(i))) return;
    const Phase phase = graph().task(kernels_[i]).phase;
    const bool backward =
        phase == Phase::kBackward || Contains(Name(i), "backward") || Contains(Name(i), "bn_bw");
    // In forward the convolution comes before the norm, in backward after it.
    const size_t conv = FindConv(i, backward);
    if (conv == kernels_.size()) return;
    ++norms_;
    (backward ? shorter_backward_ : shorter_forward_).push_back(kernels_[i]);
    convs_.push_back(kernels_[conv]);
    const size_t next = backward ? i - 1 : i + 1;
    if (next < kernels_.size() && IsActivation(next)) activations_.push_back(kernels_[next]);
  }

  // PyTorch counts the batches that a norm has seen, on the GPU, with one block.
  bool CountsBatches(size_t i) const {
    const KernelDetail* detail = graph().Kernel(kernels_[i]);
    return classes_.Of(kernels_[i]) == KernelClass::kElementwise && detail != nullptr &&
           detail->grid == std::array<uint32_t, 3>{1, 1, 1};
  }

  // The convolution that fed a norm, or takes its gradient; layout changes and the other kernels of
  // the same norm may be between.
  size_t FindConv(size_t i, bool backward) const {
    for (size_t n = 0, at = i; n < 4; ++n) {
      at = backward ? at + 1 : at - 1;
      if (at >= kernels_.size()) break;
      if (IsConv(at)) return at;
      const KernelClass kind = classes_.Of(kernels_[at]);
      if (kind == KernelClass::kGemm) return at;  // a convolution as a product
      const bool passed = kind == KernelClass::kCopy || IsBatchNorm(Name(at)) || CountsBatches(at);
      if (!passed) break;
    }
    return kernels_.size();
  }

  const Params& params_;
  Editor& edit_;
  mutable KernelClasses classes_;
  std::vector<TaskId> kernels_;  // of one stream
  std::vector<TaskId> shorter_forward_, shorter_backward_, activations_, convs_;
  size_t norms_ = 0;
};

absl::Status RunRbn(const Params& params, Editor& edit) { return Rbn(params, edit).Run(); }

}  // namespace

constinit const Transform kRbn = {
    .name = "rbn",
    .summary = "Batch norm is split and moves into the convolutions around it",
    .params = kRbnParams,
    .ends = AtEnds::kTold,
    .apply = &RunRbn,
    .model =
        "Reconstructed batch norm: its statistics are gathered by the convolution before it, "
        "its normalisation and the activation are done by the convolution after it. Batch "
        "norm kernels next to a convolution keep the passes over memory that remain; ReLU "
        "kernels right after them (before them, in backward) are gone with their launches.",
    .ignores =
        "Residual additions between norm and activation keep both kernels; what the "
        "convolutions lose when they do more, unless `conv` says so.",
    .sources =
        "Jung et al.: Restructuring Batch Normalization to Accelerate CNN Training "
        "(MLSys'19); Daydream (ATC'20), section 6: predicted 12.7 %, measured about 7 %",
    .advice = {.effort = "new kernels",
               .risk = "maintenance",
               .how = "fuse conv, statistics, normalisation and ReLU in your own CUDA kernels"},
    .twice = "the passes that it saves are gone already",
    .memory = MemoryEffect::kNone,
    .memory_model =
        "None: ops that are gone keep nothing; the convolution that takes over a normalisation "
        "still needs its input, which stands for what the activation kept.",
};

}  // namespace daydream
