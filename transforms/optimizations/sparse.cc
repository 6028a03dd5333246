// sparse: products whose weights are pruned run faster, as far as the GPU has hardware for that.
#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "costmodel/roofline.h"
#include "transforms/analysis/kept_peak.h"
#include "transforms/analysis/op_work.h"
#include "transforms/analysis/precision.h"
#include "transforms/core/select.h"
#include "transforms/core/transform.h"
#include "transforms/edits/retime.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr ParamSpec kSparseParams[] = {
    {.name = "select",
     .unit = Unit::kText,
     .help = "which kernels, such as layer:mlp or phase:forward&class:gemm",
     .source = "chosen by the user",
     .required = true},
    {.name = "kept",
     .unit = Unit::kShare,
     .fallback = 0.5,
     .min = 0.001,
     .max = 1,
     .help = "share of the weights that are kept",
     .source = "chosen by the user; 2:4 sparsity keeps half"},
    {.name = "ceiling",
     .unit = Unit::kFactor,
     .fallback = 2,
     .low = 1.3,
     .high = 2,
     .min = 1,
     .max = 1000,
     .help = "arithmetic is at most this much faster, however little is kept",
     .source = "NVIDIA A100 architecture white paper: sparse tensor cores double the rate. The "
               "lower end is a guess: small products stay well below (Mishra et al., 2021)"},
};

class Sparse {
 public:
  Sparse(const Params& params, Editor& edit)
      : params_(params),
        edit_(edit),
        works_(edit.graph()),
        kernels_(edit.graph()),
        devices_(edit.graph()),
        floor_(KernelFloor(edit.graph())) {}

  absl::Status Run() {
    DD_ASSIGN_OR_RETURN(Selector selector, Selector::Compile(params_.text("select")));
    gain_ = std::min(1 / params_["kept"], params_["ceiling"]);
    edit_.BeginCause(fmt::format("weights of {} are sparse", selector.text()));
    for (TaskId t : selector.Select(graph())) {
      if (graph().task(t).kind == TaskKind::kKernel) Thin(t);
    }
    TellSparse(selector.text());
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  // New over old time of the work: arithmetic shrinks by the gain, of the bytes only the weights.
  // Positions of the kept ones take 2 bits each (PTX ISA, sparse matrix storage).
  double RatioOf(const DeviceSpec& device, const OpWork& work, DType format) const {
    const double bytes = work.Bytes(format);
    double weights = 0;
    for (const GemmShape& p : work.products) {
      const auto elements =
          static_cast<double>(p.batch) * static_cast<double>(p.n) * static_cast<double>(p.k);
      weights += elements * DTypeBytes(format);
    }
    const double less = std::min(weights, bytes) * (1 - Stored(format));
    const double before = SustainedRooflineNs(device, work.flops, bytes, format);
    const double after = SustainedRooflineNs(device, work.flops / gain_, bytes - less, format);
    return before > 0 ? std::min(after / before, 1.0) : 1 / gain_;
  }

  void Thin(TaskId t) {
    const KernelTraits& traits = kernels_.Of(graph().task(t).name);
    const bool product = traits.kind == KernelClass::kGemm || traits.kind == KernelClass::kConv;
    if (!product || works_.HasNoWeight(t)) {
      ++others_;
      return;
    }
    const DeviceSpec* device = devices_.Of(t);
    const OpWork* work = works_.Of(t).work;
    double ratio = 1 / gain_;
    if (device != nullptr && work != nullptr && !work->products.empty()) {
      const DType format = traits.dtype != DType::kUnknown ? traits.dtype : work->dtype;
      ratio = RatioOf(*device, *work, format);
      ++shaped_;
    }
    if (device == nullptr) unknown_gpu_ = true;
    if (device != nullptr && !device->HasSparseTensorCores()) dense_gpu_ = device->name;
    const Duration now = graph().task(t).duration;
    const Duration fixed = std::min(now, floor_);
    edit_.SetDuration(t, fixed + (now - fixed).Scaled(ratio));
    ++thinned_;
    chosen_.insert(t);
  }

  // Weights of the selected forward ops are stored thinned; gradients and the optimizer's copies
  // stay dense.
  void TellMemory() {
    const std::vector<ForwardOp> ops = ForwardOps(graph());
    const double less = MostInAPass(ops, [&](const ForwardOp& op) {
      return chosen_.contains(op.first) ? op.weights * (1 - Stored(op.shape.dtype)) : 0.0;
    });
    const bool shapes = CheckShapes("", ops).ok();
    edit_.changes().memory.push_back({.what = "weights are stored sparse",
                                      .bytes = -std::llround(less),
                                      .estimate = true,
                                      .unknown = !shapes && params_["kept"] < 1});
  }

  // Bytes of thinned weights for each byte of dense ones.
  double Stored(DType format) const {
    const double kept = params_["kept"];
    return kept < 1 ? std::min(kept * (1 + 0.25 / DTypeBytes(format)), 1.0) : 1;
  }

  void TellSparse(std::string_view selected) {
    Changes& changes = edit_.changes();
    if (thinned_ == 0) {
      changes.notes.push_back(fmt::format("no matrix product or convolution matches {}", selected));
      return;
    }
    changes.notes.push_back(fmt::format(
        "{} products and convolutions keep {} of their weights, {} of them by their shapes; {} "
        "other kernels stay",
        thinned_, FormatValue(params_["kept"], Unit::kShare), shaped_, others_));
    TellMemory();
    if (!dense_gpu_.empty()) {
      changes.warnings.push_back(fmt::format(
          "{} has no sparse tensor cores: the gain needs a library of one's own", dense_gpu_));
    }
    if (unknown_gpu_) {
      changes.warnings.push_back("the GPU is not known: nobody can tell whether it gains at all");
    }
  }

  const Params& params_;
  Editor& edit_;
  OpWorkTable works_;
  KernelTable kernels_;
  KnownDevices devices_;
  Duration floor_;
  double gain_ = 1;
  absl::flat_hash_set<TaskId> chosen_;
  uint64_t thinned_ = 0, shaped_ = 0, others_ = 0;
  std::string dense_gpu_;  // a GPU without sparse tensor cores
  bool unknown_gpu_ = false;
};

absl::Status RunSparse(const Params& params, Editor& edit) { return Sparse(params, edit).Run(); }

}  // namespace

constinit const Transform kSparse = {
    .name = "sparse",
    .summary = "Products of the selected layers skip weights that are zero",
    .params = kSparseParams,
    .apply = &RunSparse,
    .model =
        "Of the selected kernels, products and convolutions become faster, but for products of two "
        "activations (batched ones, attention), which have no weight: their arithmetic by "
        "1 / kept, at most by the ceiling, their bytes by the weights that are no longer read "
        "(plus 2 bits for the place of each that is). The longer of the two counts, in ratio to "
        "the dense kernel; without shapes arithmetic alone. What every kernel takes stays, and so "
        "do all other kernels.",
    .ignores =
        "Pruning, sorting of channels, formats that the library does not take; that the gradient "
        "of a weight is a product with a dense result: select forward only, unless the training "
        "keeps masks for both directions. Accuracy.",
    .sources =
        "NVIDIA A100 white paper; Mishra et al., Accelerating Sparse Deep Neural Networks "
        "(arXiv 2104.08378); PTX ISA, mma.sp; hipSPARSELt documentation, MI300 features",
    .advice = {.effort = "~20 lines",
               .risk = "numerics",
               .how = "torch.sparse.to_sparse_semi_structured(layer.weight)"},
    .twice = "",
    .memory = MemoryEffect::kAdds,
    .memory_model =
        "Weights of the selected forward ops shrink to the share that is kept and 2 bits for the "
        "place of each; gradients and the optimizer's state stay dense.",
};

}  // namespace daydream
