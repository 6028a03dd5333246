#include <algorithm>
#include <cmath>
#include <map>

#include "costmodel/roofline.h"
#include "transforms/amp_casts.h"
#include "transforms/op_work.h"
#include "transforms/precision.h"
#include "transforms/transform.h"

namespace daydream {
namespace {

constexpr std::string_view kTypes[] = {"auto", "bf16", "fp16", "tf32"};
constexpr ParamSpec kParams[] = {
    {.name = "dtype", .unit = Unit::kText, .text_fallback = "auto", .choices = kTypes,
     .help = "bf16, fp16 or tf32; auto = bf16 where the GPU has it, else fp16",
     .source = "chosen by the user"},
    {.name = "matrix_exponent", .unit = Unit::kNone, .fallback = 0.6, .low = 0.4, .high = 0.8,
     .min = 0, .max = 1,
     .help = "how much of the ratio of sustained rates a matrix kernel of unknown shape gains",
     .source = "120 ResNet-50 convolutions on a V100 in fp32 and fp16 (dPRO, MLSys'22): median "
               "speed-up 2.8 of 5.5 in sustained rates"},
    {.name = "shape_exponent", .unit = Unit::kNone, .fallback = 0.3, .low = 0, .high = 0.6,
     .min = 0, .max = 1,
     .help = "how much of a kernel's own deviation from the cost model stays in the new format",
     .source = "the same convolutions and 18 matrix products: mean error 20 % with nothing fitted"},
    {.name = "matrix_time", .unit = Unit::kFactor, .fallback = 1, .low = 0.8, .high = 1.25,
     .min = 0.1, .max = 10, .help = "factor on the new time of matrix kernels",
     .source = "the same kernels: their total is predicted 20 % too short"},
    {.name = "unscale", .unit = Unit::kShare, .fallback = 0.25, .low = 0.08, .high = 0.4,
     .min = 0, .max = 10, .help = "time to check and unscale gradients, of the optimizer's (fp16)",
     .source = "8 bytes a parameter against 20 to 100 of fused to unfused optimizers in fp32"},
    {.name = "floor", .unit = Unit::kDuration, .fallback = 2000, .low = 1500, .high = 4000,
     .min = 0, .max = 1e6, .help = "a kernel takes this long whatever it does",
     .source = "docs/cost-model.md: shortest kernels of traces of V100, A100 and H100"},
    {.name = "matrix_speedup", .unit = Unit::kFactor, .fallback = 3, .low = 2, .high = 4,
     .min = 1, .max = 100, .help = "speed-up of matrix kernels where the GPU is not known",
     .source = "Daydream (ATC'20): matrix kernels become 3 times faster on tensor cores"},
};

DType Wanted(std::string_view text, const DeviceSpec* spec) {
  if (text == "bf16") return DType::kBf16;
  if (text == "fp16") return DType::kFp16;
  if (text == "tf32") return DType::kTf32;
  return spec != nullptr && spec->compute_major >= 8 ? DType::kBf16 : DType::kFp16;
}

// Rate at which a recorded matrix kernel multiplies now, in TFLOPS; 0 = not known.
double RecordedRate(const DeviceSpec& spec, const KernelTraits& traits) {
  // Names that do not tell stand for tensor cores where the GPU has TF32: the smaller gain.
  bool silent = traits.dtype == DType::kUnknown;
  if (traits.tensor_cores || traits.dtype == DType::kTf32 || silent) {
    double tf32 = spec.SustainedTflops(DType::kTf32);
    if (tf32 > 0) return tf32;
  }
  return spec.SustainedTflops(DType::kFp32);
}

class Amp {
 public:
  Amp(const Params& params, Editor& edit)
      : params_(params), edit_(edit), rules_(edit.graph()), works_(edit.graph()),
        floor_(Duration::FromDouble(params["floor"])) {}

  absl::Status Run() {
    works_.SumTimes([&](TaskId t) { return rules_.Of(t).rule == Autocast::kMatrix; });
    for (size_t lane = 0; lane < graph().lanes().size(); ++lane) {
      if (graph().lanes()[lane].lane.kind == LaneKind::kStream) Walk(LaneId(lane));
    }
    if (matrix_ == 0) {
      edit_.changes().notes.push_back(
          already_ > 0 ? "its matrix kernels run on tensor cores in 16 bit already"
          : blocked_ > 0
              ? "this GPU has no tensor cores for this format"
              : "no matrix product or convolution that could run in another format");
      return absl::OkStatus();
    }
    if (dtype_ != DType::kTf32) {
      AddCasts(edit_, casts_, {.floor = floor_, .dtype = dtype_, .bandwidth = bandwidth_});
    }
    if (dtype_ == DType::kFp16) {
      scaled_steps_ = AddGradientScaling(edit_, params_["unscale"], floor_);
    }
    Tell();
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  const DeviceSpec* SpecOf(TaskId t) {
    int32_t id = graph().lane(graph().task(t).lane).lane.device;
    auto [it, inserted] = devices_.try_emplace(id);
    if (inserted) it->second = DeviceOf(graph(), t);
    return it->second.spec;
  }

  // Follows the format of the data along a stream, from matrix kernels (16 bit) and kernels that
  // stay in fp32 to those that take what comes.
  void Walk(LaneId lane) {
    bool half = false;  // format of what the last kernel wrote
    Phase phase = Phase::kNone;
    for (TaskId t = graph().lane(lane).first; t.valid(); t = graph().task(t).lane_next) {
      const Task& task = graph().task(t);
      if (task.removed || task.kind != TaskKind::kKernel) continue;
      dtype_ = Wanted(params_.text("dtype"), SpecOf(t));
      if (task.phase != phase && task.phase == Phase::kForward) half = false;
      phase = task.phase;
      KernelPrecision p = rules_.Of(t);
      switch (p.rule) {
        case Autocast::kMatrix:
          if (p.half_already && dtype_ != DType::kTf32) {
            ++already_;
          } else if (Multiply(t, p)) {
            NoteCasts(t, !half);
            half = dtype_ != DType::kTf32;
          }
          break;
        case Autocast::kFollow:
          if (half && !p.half_already) Halve(t);
          break;
        case Autocast::kFull: half = false; break;
        case Autocast::kUntouched: break;
      }
    }
  }

  // Moves a matrix kernel to tensor cores. False when that cannot be.
  bool Multiply(TaskId t, const KernelPrecision& p) {
    const DeviceSpec* spec = SpecOf(t);
    double gain = params_["matrix_speedup"];
    if (spec != nullptr) {
      double from = RecordedRate(*spec, p.traits), to = spec->SustainedTflops(dtype_);
      if (dtype_ == DType::kTf32 && (p.traits.tensor_cores || p.traits.dtype != DType::kFp32)) {
        return false;  // runs on tensor cores already, or may
      }
      if (from <= 0 || to <= 0 || to <= from) {
        ++blocked_;
        return false;
      }
      bandwidth_ = spec->SustainedBandwidth();
      gain = std::pow(to / from, params_["matrix_exponent"]);
      if (OpWorkTable::Op op = works_.Of(t); op.work != nullptr && !op.work->products.empty()) {
        gain = GainOf(*spec, op, from == spec->SustainedTflops(DType::kFp32) ? DType::kFp32
                                                                           : DType::kTf32);
        ++shaped_;
      }
    } else {
      ++unknown_device_;
    }
    edit_.BeginCause("matrix kernels run on tensor cores");
    SetFaster(t, gain / params_["matrix_time"]);
    ++matrix_;
    return true;
  }

  // From shapes: T(16 bit) * (t / T(now)) ^ exponent, with T from the cost model and t the time
  // of all matrix kernels of the op. 1 where the sizes do not fit tensor cores.
  double GainOf(const DeviceSpec& spec, const OpWorkTable::Op& op, DType now) const {
    if (!op.work->AlignedForTensorCores() && dtype_ != DType::kTf32) return 1;
    double model_now = 0, model_then = 0;
    for (const GemmShape& product : op.work->products) {
      bool batched = op.work->kind == OpWork::Kind::kGemm && product.batch > 1;
      model_now += GemmNs(spec, product, now, batched);
      model_then += GemmNs(spec, product, dtype_, batched);
    }
    double time = static_cast<double>(works_.TimeOf(op.scope).ns);
    if (model_now <= 0 || model_then <= 0 || time <= 0) return 1;
    double then = model_then * std::pow(time / model_now, params_["shape_exponent"]);
    return std::max(time / then, 1.0);
  }

  void Halve(TaskId t) {
    edit_.BeginCause("other kernels move half the bytes");
    SetFaster(t, 2);
  }

  // No kernel gets shorter than the floor; those that are, stay.
  void SetFaster(TaskId t, double gain) {
    Duration now = graph().task(t).duration;
    Duration then = std::max(now.Scaled(1 / gain), std::min(now, floor_));
    if (then < now) edit_.SetDuration(t, then);
  }

  // Each matrix op casts its weight once a step, and its input where that comes in fp32; the
  // backward pass casts the weight's gradient back.
  void NoteCasts(TaskId t, bool input) {
    const Phase phase = graph().task(t).phase;
    const OpWorkTable::Op op = works_.Of(t);
    const ScopeId scope = phase == Phase::kBackward ? rules_.OutermostOp(t) : rules_.OpOf(t);
    if (scope.valid() && scope == last_op_) return;  // further kernels of the same op
    last_op_ = scope;
    // Products of two activations have no weight.
    bool weight = !(op.work != nullptr && op.work->products.size() == 1 &&
                    op.work->products[0].batch > 1) &&
                  rules_.Of(t).traits.kind != KernelClass::kAttention;
    uint64_t weights = 0, inputs = 0;
    if (op.work != nullptr && !op.work->products.empty()) {
      const GemmShape& p = op.work->products[0];
      weights = static_cast<uint64_t>(std::max<int64_t>(p.n * p.k, 0));
      bool gemm = op.work->kind == OpWork::Kind::kGemm;
      if (gemm) inputs = static_cast<uint64_t>(std::max<int64_t>(p.batch * p.m * p.k, 0));
    }
    if (phase == Phase::kBackward) {
      if (weight) casts_.push_back({.at = t, .after = true, .elements = weights});
      return;
    }
    if (weight) casts_.push_back({.at = t, .after = false, .elements = weights});
    if (input) casts_.push_back({.at = t, .after = false, .elements = inputs});
  }

  void Tell() {
    auto& notes = edit_.changes().notes;
    notes.push_back(fmt::format("assumes {}: {} matrix kernels, {} casts added",
                                DTypeName(dtype_), matrix_,
                                dtype_ == DType::kTf32 ? 0 : casts_.size()));
    if (matrix_ > 0 && dtype_ != DType::kTf32) {
      notes.push_back(fmt::format("{} of them by their shapes, the others by class", shaped_));
    }
    if (dtype_ == DType::kFp16) {
      notes.push_back(scaled_steps_ > 0
                          ? fmt::format("the host reads the check of scaled gradients in {} steps",
                                        scaled_steps_)
                          : "no optimizer step was found, so scaling of gradients is left out");
    } else if (dtype_ == DType::kBf16) {
      notes.push_back("fp16 would add scaling of gradients: amp(dtype=fp16)");
    }
    if (already_ > 0) {
      notes.push_back(fmt::format("{} matrix kernels are in 16 bit already", already_));
    }
    if (unknown_device_ > 0) {
      edit_.changes().warnings.push_back(fmt::format(
          "the GPU is not known: {} matrix kernels are taken to run {} faster", unknown_device_,
          FormatValue(params_["matrix_speedup"], Unit::kFactor)));
    }
  }

  const Params& params_;
  Editor& edit_;
  PrecisionRules rules_;
  OpWorkTable works_;
  Duration floor_;
  DType dtype_ = DType::kBf16;
  std::map<int32_t, DeviceMatch> devices_;
  std::vector<Cast> casts_;
  ScopeId last_op_;
  double bandwidth_ = 0;
  size_t scaled_steps_ = 0;
  uint64_t shaped_ = 0;
  uint64_t matrix_ = 0, already_ = 0, blocked_ = 0, unknown_device_ = 0;
};

absl::Status Run(const Params& params, Editor& edit) { return Amp(params, edit).Run(); }

}  // namespace

constinit const Transform kAmp = {
    .name = "amp",
    .summary = "Train in mixed precision (autocast)",
    .params = kParams,
    .apply = &Run,
    .model = "Matrix products and convolutions that are not in 16 bit already run at the rate "
             "of the GPU's tensor cores against the rate they have now (fp32 or TF32), as far "
             "as their shapes let them. Kernels that follow them take half the time where they "
             "are bound by bandwidth. Softmax, row norms, losses and the optimizer stay in "
             "fp32. Casts are added where autocast casts (weights once a step, inputs in fp32, "
             "weight gradients), each with its launch and host time. No kernel gets shorter than "
             "the floor. fp16 adds the check and scaling of gradients, which the host waits for.",
    .ignores = "Larger batches that the saved memory would allow, other algorithms that the "
               "library may pick, layout changes for tensor cores, smaller all-reduces.",
    .sources = "PyTorch documentation, Autocast Op Reference; Daydream (ATC'20) and dPRO "
               "(MLSys'22) for the idea and measurements; docs/cost-model.md for rates",
};

}  // namespace daydream
