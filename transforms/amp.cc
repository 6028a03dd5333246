#include <algorithm>
#include <cmath>
#include <map>

#include "transforms/amp_casts.h"
#include "transforms/host_calls.h"
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
      : params_(params), edit_(edit), rules_(edit.graph()),
        floor_(Duration::FromDouble(params["floor"])) {}

  absl::Status Run() {
    for (size_t lane = 0; lane < graph().lanes().size(); ++lane) {
      if (graph().lanes()[lane].lane.kind == LaneKind::kStream) Walk(LaneId(lane));
    }
    if (!edit_.changes().any()) {
      edit_.changes().notes.push_back(
          already_ > 0 ? "its matrix kernels run on tensor cores in 16 bit already"
          : blocked_ > 0
              ? "this GPU has no tensor cores for this format"
              : "no matrix product or convolution that could run in another format");
      return absl::OkStatus();
    }
    if (dtype_ != DType::kTf32) AddCasts(edit_, casts_, {.floor = floor_, .dtype = dtype_});
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
      gain = std::pow(to / from, params_["matrix_exponent"]);
    } else {
      ++unknown_device_;
    }
    edit_.BeginCause("matrix kernels run on tensor cores");
    SetFaster(t, gain);
    ++matrix_;
    return true;
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
    ScopeId op = rules_.OpOf(t);
    const Task& task = graph().task(t);
    if (op.valid() && op == last_op_) return;  // further kernels of the same op
    last_op_ = op;
    if (task.phase == Phase::kBackward) {
      casts_.push_back({.at = t, .after = true, .what = "gradient"});
      return;
    }
    casts_.push_back({.at = t, .after = false, .what = "weight"});
    if (input) casts_.push_back({.at = t, .after = false, .what = "input"});
  }

  void Tell() {
    auto& notes = edit_.changes().notes;
    notes.push_back(fmt::format("assumes {}: {} matrix kernels, {} casts added",
                                DTypeName(dtype_), matrix_,
                                dtype_ == DType::kTf32 ? 0 : casts_.size()));
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
  Duration floor_;
  DType dtype_ = DType::kBf16;
  std::map<int32_t, DeviceMatch> devices_;
  std::vector<Cast> casts_;
  ScopeId last_op_;
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
