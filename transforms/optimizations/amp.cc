// amp: products and convolutions move to tensor cores, bytes are halved where tensors get narrow,
// and the casts that autocast adds come in.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "costmodel/roofline.h"
#include "graph/scopes.h"
#include "transforms/analysis/op_shapes.h"
#include "transforms/analysis/op_work.h"
#include "transforms/analysis/precision.h"
#include "transforms/core/floor_param.h"
#include "transforms/core/transform.h"
#include "transforms/edits/amp_casts.h"
#include "transforms/edits/amp_memory.h"
#include "transforms/edits/conv_layout.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr std::string_view kAmpTypes[] = {"auto", "bf16", "fp16", "tf32", "fp8", "nvfp4"};
constexpr ParamSpec kAmpParams[] = {
    {.name = "dtype",
     .unit = Unit::kText,
     .text_fallback = "auto",
     .choices = kAmpTypes,
     .help = "auto = bf16 where the GPU has it, else fp16; fp8 and nvfp4: linear layers, the rest "
             "in bf16",
     .source = "chosen by the user"},
    {.name = "matrix_exponent",
     .unit = Unit::kNone,
     .fallback = kFormatGain,
     .low = 0.4,
     .high = 0.8,
     .max = 1,
     .help = "how much of the ratio of sustained rates a matrix kernel of unknown shape gains",
     .source = "120 ResNet-50 convolutions on a V100 in fp32 and fp16 (dPRO, MLSys'22): median "
               "speed-up 2.8 of 5.5 in sustained rates"},
    {.name = "shape_exponent",
     .unit = Unit::kNone,
     .fallback = kOwnInFormat,
     .low = 0,
     .high = 0.6,
     .max = 1,
     .help =
         "how much of a kernel's own deviation from the cost model stays in the new format; all of "
         "it where TF32 becomes 16 bit",
     .source = "the same convolutions and 18 matrix products: mean error 20 %, with 0.3 given "
               "by the study that the form comes from"},
    {.name = "matrix_time",
     .unit = Unit::kFactor,
     .fallback = 1,
     .low = 0.8,
     .high = 1.25,
     .min = 0.1,
     .max = 10,
     .help = "factor on the new time of matrix kernels",
     .source = "the same kernels: their total is predicted 13 % too short"},
    {.name = "unscale",
     .unit = Unit::kShare,
     .fallback = 0.25,
     .low = 0.08,
     .high = 0.4,
     .max = 10,
     .help = "time to check and unscale gradients, of the optimizer's (fp16)",
     .source = "8 bytes a parameter against 20 to 100 of fused to unfused optimizers in fp32"},
    kFloorParam,
    {.name = "matrix_speedup",
     .unit = Unit::kFactor,
     .fallback = 3,
     .low = 2,
     .high = 4,
     .min = 1,
     .max = 100,
     .help = "speed-up of matrix kernels where the GPU is not known",
     .source = "Daydream (ATC'20): matrix kernels become 3 times faster on tensor cores"},
};

DType WantedByAmp(std::string_view text, const DeviceSpec* spec) {
  if (text == "bf16") return DType::kBf16;
  if (text == "fp16") return DType::kFp16;
  if (text == "tf32") return DType::kTf32;
  if (text == "fp8") return DType::kFp8;
  if (text == "nvfp4") return DType::kNvfp4;
  return spec != nullptr && spec->compute_major >= 8 ? DType::kBf16 : DType::kFp16;
}

// For products of activations and weights only.
bool IsNarrow(DType dtype) { return dtype == DType::kFp8 || dtype == DType::kNvfp4; }

class Amp {
 public:
  Amp(const Params& params, Editor& edit)
      : params_(params),
        edit_(edit),
        rules_(edit.graph()),
        works_(edit.graph()),
        shapes_(edit.graph()),
        costs_(MeasureHostCosts(edit.graph())),
        floor_(FloorOf(params)) {}

  absl::Status Run() {
    works_.SumTimes([&](TaskId t) { return rules_.Of(t).rule == Autocast::kMatrix; });
    for (size_t lane = 0; lane < graph().lanes().size(); ++lane) {
      if (graph().lanes()[lane].lane.kind == LaneKind::kStream) Walk(LaneId(lane));
    }
    if (matrix_ == 0) {
      edit_.changes().notes.push_back(WhyNoAmp());
      return absl::OkStatus();
    }
    NoteScaleUpdates();
    if (!formats_.contains(DType::kTf32)) {
      AddCasts(edit_, casts_, costs_, floor_);
      layouts_ = MissingLayoutChanges(graph(), works_, moved_);
      AddLayoutChanges(edit_, layouts_, 2, floor_);
    }
    if (formats_.contains(DType::kFp16)) {
      scaled_steps_ = AddGradientScaling(edit_, params_["unscale"], floor_);
    }
    TellAmp();
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
    const TaskId first = graph().lane(lane).first;
    if (first.valid()) dtype_ = WantedByAmp(params_.text("dtype"), SpecOf(first));
    for (TaskId t = graph().lane(lane).first; t.valid(); t = graph().task(t).lane_next) {
      const Task& task = graph().task(t);
      if (task.removed || task.kind != TaskKind::kKernel) continue;
      if (task.phase != phase && task.phase == Phase::kForward) half = false;
      phase = task.phase;
      KernelPrecision p = rules_.Of(t);
      switch (p.rule) {
        case Autocast::kMatrix:
          if (p.half_already && !IsNarrow(FormatFor(t))) {
            ++already_;
            half = false;  // what follows reads the format that it was recorded with
          } else if (Multiply(t, p)) {
            NoteCasts(t, !half, p.half_already);
            half = dtype_ != DType::kTf32;
          }
          break;
        case Autocast::kFollow:
          // What the library does for a convolution comes after the cast of its input.
          if ((half || IsLayoutChange(graph().Name(task.name))) && !p.half_already) Halve(t);
          break;
        case Autocast::kFull:
          half = RunInFull(t, p, half);
          break;
        case Autocast::kUntouched:
          break;
      }
    }
  }

  // Autocast casts what a row norm reads, but not what softmax and sums read: they are told to
  // write fp32. Backward runs without autocast, each op in the format of its data; what forward
  // cast is cast the other way. Returns whether 16 bit come out.
  bool RunInFull(TaskId t, const KernelPrecision& p, bool half) {
    const bool backward = graph().task(t).phase == Phase::kBackward;
    const KernelClass kind = p.traits.kind;
    const bool casts = kind == KernelClass::kNorm || (kind == KernelClass::kSoftmax && backward);
    const ScopeId op = rules_.OpOf(t);
    if (half && casts && dtype_ != DType::kTf32 && (!op.valid() || op != last_full_)) {
      AddCast({.at = t, .elements = static_cast<uint64_t>(shapes_.Of(t).largest)});
    }
    last_full_ = op;
    return half && backward && kind != KernelClass::kNorm && kind != KernelClass::kOptimizer;
  }

  // fp8 and nvfp4 are for products of activations and weights (Transformer Engine's Linear). Rows
  // of all operands have to be multiples of 16 bytes (cuBLAS documentation, cublasLtMatmul), and
  // each size is that of a row in one of forward and backward. What is not known to be one runs in
  // bf16.
  DType FormatFor(TaskId t) {
    if (!IsNarrow(dtype_)) return dtype_;
    const OpWorkTable::Op op = works_.Of(t);
    if (op.work == nullptr || op.work->kind != OpWork::Kind::kGemm) return DType::kBf16;
    const GemmShape& p = op.work->products[0];
    const int64_t step = RowStep();
    const bool fits = p.batch == 1 && p.m % step == 0 && p.n % step == 0 && p.k % step == 0;
    return fits && !IsNarrow(rules_.Of(t).traits.dtype) ? dtype_ : DType::kBf16;
  }

  int64_t RowStep() const { return dtype_ == DType::kNvfp4 ? 32 : 16; }

  std::string WhyNoAmp() const {
    if (blocked_ > 0 && devices_.begin()->second.spec == nullptr) {
      return fmt::format("the GPU is not known, so nobody can tell whether it has {}",
                         DTypeName(dtype_));
    }
    if (blocked_ > 0 && dtype_ == DType::kNvfp4) {
      return fmt::format(
          "{} has no tensor cores for nvfp4: only NVIDIA's GPUs from Blackwell on have them (B200, "
          "B300, GB200, RTX5090)",
          devices_.begin()->second.spec->name);
    }
    if (blocked_ > 0) {
      return fmt::format("this GPU has no tensor cores for {} that would be faster",
                         DTypeName(dtype_));
    }
    if (dtype_ == DType::kTf32 && already_ + maybe_tf32_ > 0) {
      return "its matrix kernels run in TF32 or 16 bit already, as far as their names tell";
    }
    if (IsNarrow(dtype_) && already_ > 0) {
      return fmt::format(
          "no product is known to be one of a linear layer with sizes that {} takes (multiples of "
          "{}); shapes of ops are needed (record_shapes=True)",
          DTypeName(dtype_), RowStep());
    }
    if (already_ > 0) return "its matrix kernels run on tensor cores in 16 bit already";
    return "no matrix product or convolution that could run in another format";
  }

  // Moves a matrix kernel to tensor cores. False when that cannot be.
  bool Multiply(TaskId t, const KernelPrecision& p) {
    const DeviceSpec* spec = SpecOf(t);
    std::function<double(const Params&)> gain;
    const DType format = FormatFor(t);
    if (spec != nullptr) {
      const DType now = RecordedFormat(*spec, p);
      double from = spec->SustainedTflops(now), to = spec->SustainedTflops(format);
      if (spec->SustainedTflops(dtype_) <= 0) {
        ++blocked_;
        return false;
      }
      if (dtype_ == DType::kTf32 && (p.traits.tensor_cores || p.traits.dtype != DType::kFp32)) {
        ++maybe_tf32_;  // runs on tensor cores already, or may
        return false;
      }
      if (from <= 0 || to <= 0 || to <= from) {
        ++blocked_;
        return false;
      }
      if (OpWorkTable::Op op = works_.Of(t); op.work != nullptr && !op.work->products.empty()) {
        // TF32 and 16 bit differ by their rates, and a kernel by as much from the model in one as
        // in the other: both run on tensor cores. From the vector units it is another kernel.
        const double time = static_cast<double>(works_.TimeOf(op.scope).ns);
        gain = [=, known = std::map<double, double>()](const Params& params) mutable {
          const double own = now == DType::kTf32 ? 1 : params["shape_exponent"];
          const auto [it, first] = known.try_emplace(own);
          if (first) it->second = InFormatNs(*spec, *op.work, now, format, time, own);
          return it->second > 0 ? time / it->second : 1;
        };
        ++shaped_;
      } else {
        gain = [=](const Params& params) { return std::pow(to / from, params["matrix_exponent"]); };
      }
    } else if (dtype_ == DType::kTf32 || IsNarrow(dtype_)) {
      ++blocked_;  // few GPUs have them
      return false;
    } else {
      ++unknown_device_;
      gain = [](const Params& params) { return params["matrix_speedup"]; };
    }
    edit_.BeginCause("matrix kernels run on tensor cores");
    SetFaster(t, [&](const Params& params) { return gain(params) / params["matrix_time"]; });
    ++matrix_;
    formats_.insert(dtype_);
    moved_.push_back(t);
    to_half_.insert(shapes_.Of(t).scope);
    if (IsNarrow(format)) {
      ++narrow_;
      last_narrow_[{graph().task(t).step, graph().task(t).phase}] = t;
    }
    return true;
  }

  void Halve(TaskId t) {
    to_half_.insert(shapes_.Of(t).scope);
    edit_.BeginCause("other kernels move half the bytes");
    SetFaster(t, [](const Params&) { return 2.0; });
  }

  // No kernel gets shorter than the floor; those that are, stay.
  template <class Gain>
  void SetFaster(TaskId t, const Gain& gain) {
    const auto faster = [&](const Params& params, Duration now, Duration floor) {
      const Duration then = std::max(now.Scaled(1 / gain(params)), std::min(now, floor));
      return std::min(now, then);
    };
    const std::vector<Duration> at_ends = edit_.AtEnds([&](const EndView& at) {
      return faster(at.params(), at.DurationOf(t), FloorOf(at.params()));
    });
    const Duration now = graph().task(t).duration, then = faster(params_, now, floor_);
    if (then < now) edit_.SetDuration(t, then);
    edit_.SetAtEnds(t, at_ends);
  }

  // A linear layer with a bias, whose product and bias are one op.
  bool AddsBias(ScopeId op) const {
    if (!op.valid()) return false;
    const std::string_view name = graph().Name(graph().tables().scopes[op.index()].name);
    return ContainsAny(name, {"addmm", "AddmmBackward"});
  }

  void AddCast(Cast cast) {
    cast.dtype = dtype_;
    casts_.push_back(cast);
  }

  // Each matrix op casts its weight (and its bias) once a step, and its input where that comes in
  // fp32. Backward casts the gradient of the weight back, and the gradient that it reads where
  // that comes in fp32. fp8 and nvfp4 cast every input and every gradient.
  void NoteCasts(TaskId t, bool input, bool half_already) {
    const Phase phase = graph().task(t).phase;
    const OpWorkTable::Op op = works_.Of(t);
    // In backward the outermost op is the whole of one autograd function.
    const ScopeId scope =
        phase == Phase::kBackward ? OutermostOp(graph(), graph().task(t).scope) : rules_.OpOf(t);
    if (scope.valid() && scope == last_op_) return;  // further kernels of the same op
    last_op_ = scope;
    const bool narrow = IsNarrow(FormatFor(t));
    const bool weight =
        !works_.HasNoWeight(t) && rules_.Of(t).traits.kind != KernelClass::kAttention;
    uint64_t weights = 0, inputs = 0, bias = 0;
    if (op.work != nullptr && !op.work->products.empty()) {
      const GemmShape& p = op.work->products[0];
      weights = static_cast<uint64_t>(std::max<int64_t>(p.n * p.k, 0));
      bias = static_cast<uint64_t>(std::max<int64_t>(p.n, 0));
      bool gemm = op.work->kind == OpWork::Kind::kGemm;
      if (gemm) inputs = static_cast<uint64_t>(std::max<int64_t>(p.batch * p.m * p.k, 0));
    }
    if (phase == Phase::kBackward) {
      if (narrow || input) AddCast({.at = t, .narrow = narrow, .elements = inputs});
      if (weight && !half_already) {
        AddCast({.at = t, .after = true, .elements = weights});
        if (AddsBias(scope)) AddCast({.at = t, .after = true, .elements = bias});
      }
      return;
    }
    if (weight) {
      AddCast({.at = t, .narrow = narrow, .elements = weights});
      if (!narrow && AddsBias(scope)) AddCast({.at = t, .elements = bias});
    }
    if (input || narrow) AddCast({.at = t, .narrow = narrow, .elements = inputs});
  }

  // fp8: once a step and direction the largest values become the scales of the next step.
  void NoteScaleUpdates() {
    if (dtype_ != DType::kFp8) return;
    for (const auto& [where, last] : last_narrow_) {
      AddCast({.at = last, .after = true, .narrow = true});
    }
  }

  void TellAmp() {
    if (formats_.contains(DType::kTf32)) {
      edit_.changes().memory.push_back({.what = "fp32 data stays fp32"});
    } else {
      TellAutocastMemory(edit_, to_half_);
    }
    auto& notes = edit_.changes().notes;
    std::string formats;
    for (DType dtype : formats_) {
      formats += fmt::format("{}{}", formats.empty() ? "" : " and ", DTypeName(dtype));
    }
    const bool tf32 = formats_.contains(DType::kTf32);
    notes.push_back(fmt::format("assumes {}: {} matrix kernels, {} casts added", formats, matrix_,
                                tf32 ? 0 : casts_.size()));
    if (!tf32 && !casts_.empty()) {
      notes.back() += fmt::format(", each {:.1f} us of host time", costs_.op.us());
    }
    if (matrix_ > 0 && !tf32) {
      notes.push_back(fmt::format("{} of them by their shapes, the others by class", shaped_));
    }
    if (!layouts_.empty()) {
      notes.push_back(
          fmt::format("{} layout changes that the library makes for convolutions on tensor cores; "
                      "channels-last saves them",
                      layouts_.size()));
    }
    if (const bool fp8 = formats_.contains(DType::kFp8); fp8 || formats_.contains(DType::kNvfp4)) {
      const std::string_view format = DTypeName(fp8 ? DType::kFp8 : DType::kNvfp4);
      notes.push_back(
          fmt::format("{} of them in {}, as linear layers of Transformer Engine; an "
                      "estimate: no step in {} was checked against a measurement",
                      narrow_, format, format));
      if (narrow_ == 0) {
        edit_.changes().warnings.push_back(fmt::format(
            "no product is known to be one of a linear layer that {} takes: all run in bf16",
            format));
      }
    }
    if (formats_.contains(DType::kFp16)) {
      notes.push_back(scaled_steps_ > 0
                          ? fmt::format("scaled gradients are checked in {} steps", scaled_steps_)
                          : "no optimizer step was found, so scaling of gradients is left out");
    } else if (formats_.contains(DType::kBf16)) {
      notes.push_back("fp16 would add scaling of gradients: amp(dtype=fp16)");
    }
    if (already_ > 0) {
      notes.push_back(fmt::format("{} matrix kernels are in 16 bit already", already_));
    }
    if (unknown_device_ > 0) {
      edit_.changes().warnings.push_back(
          fmt::format("the GPU is not known: {} matrix kernels are taken to run {} faster",
                      unknown_device_, FormatValue(params_["matrix_speedup"], Unit::kFactor)));
    }
  }

  const Params& params_;
  Editor& edit_;
  PrecisionRules rules_;
  OpWorkTable works_;
  OpShapes shapes_;
  const HostCosts costs_;  // before the edits
  Duration floor_;
  DType dtype_ = DType::kBf16;  // of the GPU whose stream is walked
  std::set<DType> formats_;     // in which kernels run now that did not
  std::map<int32_t, DeviceMatch> devices_;
  std::vector<Cast> casts_;
  std::vector<TaskId> moved_;             // matrix kernels
  absl::flat_hash_set<ScopeId> to_half_;  // ops with kernels that read and write 16 bit now
  std::vector<LayoutChange> layouts_;
  ScopeId last_op_, last_full_;
  size_t scaled_steps_ = 0;
  uint64_t shaped_ = 0;
  uint64_t narrow_ = 0;                                       // in fp8
  std::map<std::pair<uint16_t, Phase>, TaskId> last_narrow_;  // by step and phase
  uint64_t matrix_ = 0, already_ = 0, blocked_ = 0, maybe_tf32_ = 0, unknown_device_ = 0;
};

absl::Status RunAmp(const Params& params, Editor& edit) { return Amp(params, edit).Run(); }

}  // namespace

constinit const Transform kAmp = {
    .name = "amp",
    .summary = "Train in mixed precision (autocast)",
    .params = kAmpParams,
    .ends = AtEnds::kTimes,
    .apply = &RunAmp,
    .model =
        "Matrix products and convolutions that are not in 16 bit already run at the rate "
        "of the GPU's tensor cores against the rate they have now (fp32 or TF32), as far "
        "as their shapes let them. Kernels that follow them on their stream take half the time, "
        "as if each were bound by bandwidth. Softmax, row norms, losses, embeddings, the optimizer "
        "and what follows these stay in fp32, and so do ops of other libraries, which autocast "
        "does not know. Casts are added where autocast casts (weights and biases once a step, "
        "inputs in fp32, what row norms read, and the gradients of all of these), each with its "
        "launch and host time. No kernel gets shorter than "
        "the floor. fp16 adds the check and scaling of gradients, which the host waits for. "
        "tf32 changes nothing but fp32 matrix kernels. "
        "Convolutions that tensor cores cannot read as they lie get the changes of layout that "
        "the library makes around them (channels-last removes those). fp8 runs products of linear "
        "layers in "
        "fp8, and casts each input, weight and gradient for them together with its largest "
        "value; the rest is as in bf16. nvfp4 does the same in 4 bit, but finds the largest value "
        "in a kernel of its own before each cast. Parameters stay in fp32 (master weights).",
    .ignores =
        "Larger batches that the saved memory would allow, other algorithms that the "
        "library may pick, smaller all-reduces. With nvfp4: linear layers that recipes keep in "
        "bf16 (NVIDIA's: 15 %), the arithmetic of random Hadamard transforms and of stochastic "
        "rounding.",
    .sources =
        "PyTorch documentation, Autocast Op Reference and Gradient Scaling; Transformer "
        "Engine documentation, delayed scaling and NVFP4BlockScaling; \"Pretraining Large Language "
        "Models with NVFP4\" (NVIDIA, arXiv:2509.25149, 2025); Daydream (ATC'20) and dPRO "
        "(MLSys'22) for "
        "the idea and measurements; docs/cost-model.md for rates",
    .advice = {.effort = "2 lines",
               .risk = "numerics",
               .how = "with torch.autocast(\"cuda\", dtype=torch.bfloat16): out = model(batch), "
                      "and the loss; before "
                      "Ampere dtype=torch.float16 with torch.amp.GradScaler"},
    .twice = "kernels that are in 16 bit already would be halved again",
    .memory_model =
        "What ops of autocast's 16-bit list keep for backward takes half the bytes of its fp32 "
        "form; norms over rows, softmax and losses keep fp32, masks a byte an element. Autocast "
        "holds a 16-bit copy of each weight that it casts until the end of the forward pass; "
        "parameters, gradients and the optimizer's state stay in fp32. Without a backward pass, of "
        "what comes and goes the share of fp32 results that are in 16 bit then takes half.",
};

}  // namespace daydream
