// amp: products and convolutions move to tensor cores, bytes are halved where tensors get narrow,
// and the casts that autocast adds come in.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "costmodel/roofline.h"
#include "transforms/analysis/kernel_table.h"
#include "transforms/analysis/op_shapes.h"
#include "transforms/analysis/op_work.h"
#include "transforms/analysis/precision.h"
#include "transforms/core/floor_param.h"
#include "transforms/core/transform.h"
#include "transforms/edits/amp_casts.h"
#include "transforms/edits/amp_memory.h"
#include "transforms/edits/cast_places.h"
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
    {.name = "tensor_exponent",
     .unit = Unit::kNone,
     .fallback = 1,
     .low = 0.8,
     .high = 1,
     .max = 1,
     .help = "how much of that ratio a product of unknown shape gains that runs in TF32 now",
     .source = "20 matrix products on an H200 in TF32 and bf16 (tests/data/h200/kernels.csv): "
               "median speed-up 2.0 of 2.0 in peaks, 18 of them 1.7 or more"},
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

// What became of the matrix kernels, for the notes.
struct MatrixTally {
  uint64_t moved = 0;
  uint64_t shaped = 0, narrow = 0, unknown_device = 0;  // of those that moved
  uint64_t already = 0, blocked = 0, maybe_tf32 = 0;    // that stay
  std::set<DType> formats;                              // in which kernels run now that did not
};

class Amp {
 public:
  Amp(const Params& params, Editor& edit)
      : params_(params),
        edit_(edit),
        rules_(edit.graph()),
        works_(edit.graph()),
        shapes_(edit.graph()),
        casts_(edit.graph(), rules_, works_, shapes_),
        floor_(FloorOf(params)),
        floors_(edit.AtEnds([](const EndView& at) { return FloorOf(at.params()); })),
        twice_(Everywhere(2)) {}

  absl::Status Run() {
    edit_.NeedEditsWhereOthers([](const Task& t) { return IsHost(t.kind); });  // of host costs
    const HostCosts costs = MeasureHostCosts(graph());                         // before the edits
    works_.SumTimes([&](TaskId t) {
      if (rules_.Of(t).rule != Autocast::kMatrix) return false;
      auto& longer = longer_.try_emplace(works_.Of(t).scope, floors_.size()).first->second;
      edit_.AddLongerAtEnds(t, /*with_gap=*/false, longer);
      return true;
    });
    for (size_t lane = 0; lane < graph().lanes().size(); ++lane) {
      if (graph().lanes()[lane].lane.kind == LaneKind::kStream) Walk(LaneId(lane));
    }
    if (tally_.moved == 0) {
      edit_.changes().notes.push_back(WhyNoAmp());
      return absl::OkStatus();
    }
    if (dtype_ == DType::kFp8) casts_.AddScaleUpdates();
    TellFormats(costs);
    if (!Runs(DType::kTf32)) {
      AddCasts(edit_, casts_.all(), costs, floor_);
      const std::vector<LayoutChange> layouts = MissingLayoutChanges(graph(), works_, moved_);
      AddLayoutChanges(edit_, layouts, 2, floor_);
      if (!layouts.empty()) {
        Note(
            "{} layout changes that the library makes for convolutions on tensor cores; "
            "channels-last saves them",
            layouts.size());
      }
    }
    TellNarrow();
    if (Runs(DType::kFp16)) {
      const size_t steps = AddGradientScaling(edit_, params_["unscale"], floor_);
      if (steps > 0) {
        Note("scaled gradients are checked in {} steps", steps);
      } else {
        Note("no optimizer step was found, so scaling of gradients is left out");
      }
    } else if (Runs(DType::kBf16)) {
      Note("fp16 would add scaling of gradients: amp(dtype=fp16)");
    }
    TellOthers();
    TellMemory();
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }
  bool Runs(DType format) const { return tally_.formats.contains(format); }

  template <class... Args>
  void Note(fmt::format_string<Args...> text, Args&&... args) {
    edit_.changes().notes.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

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
            ++tally_.already;
            half = false;  // what follows reads the format that it was recorded with
          } else if (Multiply(t, p)) {
            casts_.AroundMatrix({.at = t,
                                 .wanted = dtype_,
                                 .narrow = IsNarrow(FormatFor(t)),
                                 .wide_input = !half,
                                 .half_already = p.half_already});
            half = dtype_ != DType::kTf32;
          }
          break;
        case Autocast::kFollow:
          // What the library does for a convolution comes after the cast of its input.
          if ((half || IsLayoutChange(graph().Name(task.name))) && !p.half_already) Halve(t);
          break;
        case Autocast::kFull:
          half = casts_.AroundFull(t, p, half, dtype_);
          break;
        case Autocast::kUntouched:
          break;
      }
    }
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
    if (tally_.blocked > 0 && devices_.begin()->second.spec == nullptr) {
      return fmt::format("the GPU is not known, so nobody can tell whether it has {}",
                         DTypeName(dtype_));
    }
    if (tally_.blocked > 0 && dtype_ == DType::kNvfp4) {
      return fmt::format(
          "{} has no tensor cores for nvfp4: only NVIDIA's GPUs from Blackwell on have them (B200, "
          "B300, GB200, RTX5090)",
          devices_.begin()->second.spec->name);
    }
    if (tally_.blocked > 0) {
      return fmt::format("this GPU has no tensor cores for {} that would be faster",
                         DTypeName(dtype_));
    }
    if (dtype_ == DType::kTf32 && tally_.already + tally_.maybe_tf32 > 0) {
      return "its matrix kernels run in TF32 or 16 bit already, as far as their names tell";
    }
    if (IsNarrow(dtype_) && tally_.already > 0) {
      return fmt::format(
          "no product is known to be one of a linear layer with sizes that {} takes (multiples of "
          "{}); shapes of ops are needed (record_shapes=True)",
          DTypeName(dtype_), RowStep());
    }
    if (tally_.already > 0) return "its matrix kernels run on tensor cores in 16 bit already";
    return "no matrix product or convolution that could run in another format";
  }

  // Work is shared by equal ops, of which a program has many.
  const FormatTimes& TimesOf(const OpWork& work, const DeviceSpec& spec, DType from, DType to) {
    const auto [known, first] = format_times_.try_emplace({&work, &spec, from, to});
    if (first) known->second = TimesInFormats(spec, work, from, to);
    return known->second;
  }

  // A number as parameters are, and as they are at each end.
  struct Number {
    double now = 0;
    std::vector<double> at_ends;
  };
  Number Everywhere(double value) const {
    return {value, edit_.AtEnds([&](const EndView&) { return value; })};
  }

  // Read when it is first asked for: who asks is noted.
  const Number& Param(std::string_view name) {
    const auto [known, first] = numbers_.try_emplace(name);
    if (first) {
      known->second = {params_[name], edit_.AtEnds([&](EndView at) { return at.params()[name]; })};
    }
    return known->second;
  }

  // Few ends have another value than there is now.
  template <class Of>
  static Number Each(const Number& from, const Of& of) {
    Number to{of(from.now), from.at_ends};
    for (double& value : to.at_ends) value = value == from.now ? to.now : of(value);
    return to;
  }

  // Moves a matrix kernel to tensor cores. False when that cannot be.
  bool Multiply(TaskId t, const KernelPrecision& p) {
    const DeviceSpec* spec = SpecOf(t);
    Number gain;
    const DType format = FormatFor(t);
    if (spec != nullptr) {
      const DType now = RecordedFormat(*spec, p);
      double from = spec->SustainedTflops(now), to = spec->SustainedTflops(format);
      if (spec->SustainedTflops(dtype_) <= 0) {
        ++tally_.blocked;
        return false;
      }
      if (dtype_ == DType::kTf32 && (p.traits.tensor_cores || p.traits.dtype != DType::kFp32)) {
        ++tally_.maybe_tf32;  // runs on tensor cores already, or may
        return false;
      }
      if (from <= 0 || to <= 0 || to <= from) {
        ++tally_.blocked;
        return false;
      }
      if (OpWorkTable::Op op = works_.Of(t); op.work != nullptr && !op.work->products.empty()) {
        // TF32 and 16 bit differ by their rates, and a kernel by as much from the model in one as
        // in the other: both run on tensor cores. From the vector units it is another kernel.
        const Duration time = works_.TimeOf(op.scope);
        const FormatTimes& formats = TimesOf(*op.work, *spec, now, format);
        const auto gain_of = [&](double own, Duration took) {
          const double ns = static_cast<double>(took.ns), then = InFormatNs(formats, ns, own);
          return then > 0 ? ns / then : 1;
        };
        const Number own = now == DType::kTf32 ? Everywhere(1) : Param("shape_exponent");
        gain = Each(own, [&](double value) { return gain_of(value, time); });
        const std::vector<Duration>& longer = longer_[op.scope];
        for (size_t e = 0; e < gain.at_ends.size(); ++e) {
          if (longer[e] != Duration{}) gain.at_ends[e] = gain_of(own.at_ends[e], time + longer[e]);
        }
        ++tally_.shaped;
      } else {
        const bool tensor = now == DType::kTf32 && !IsOfConvolution(graph(), t, p.traits.kind);
        gain = Each(Param(tensor ? "tensor_exponent" : "matrix_exponent"),
                    [&](double by) { return std::pow(to / from, by); });
      }
    } else if (dtype_ == DType::kTf32 || IsNarrow(dtype_)) {
      ++tally_.blocked;  // few GPUs have them
      return false;
    } else {
      ++tally_.unknown_device;
      gain = Param("matrix_speedup");
    }
    const Number& longer = Param("matrix_time");
    gain.now /= longer.now;
    for (size_t e = 0; e < gain.at_ends.size(); ++e) gain.at_ends[e] /= longer.at_ends[e];
    edit_.BeginCause("matrix kernels run on tensor cores");
    SetFaster(t, gain);
    ++tally_.moved;
    tally_.formats.insert(dtype_);
    moved_.push_back(t);
    to_half_.insert(shapes_.Of(t).scope);
    if (IsNarrow(format)) ++tally_.narrow;
    return true;
  }

  void Halve(TaskId t) {
    to_half_.insert(shapes_.Of(t).scope);
    edit_.BeginCause("other kernels move half the bytes");
    SetFaster(t, twice_);
  }

  // No kernel gets shorter than the floor; those that are, stay.
  void SetFaster(TaskId t, const Number& gain) {
    const auto faster = [](double gain, Duration now, Duration floor) {
      const Duration then = std::max(now.Scaled(1 / gain), std::min(now, floor));
      return std::min(now, then);
    };
    const std::vector<Duration> at_ends = edit_.AtEnds([&](const EndView& at) {
      return faster(gain.at_ends[at.end], at.DurationOf(t), floors_[at.end]);
    });
    const Duration now = graph().task(t).duration, then = faster(gain.now, now, floor_);
    if (then < now) edit_.SetDuration(t, then);
    edit_.SetAtEnds(t, at_ends);
  }

  void TellFormats(const HostCosts& costs) {
    const bool tf32 = Runs(DType::kTf32);
    std::string formats;
    for (DType dtype : tally_.formats) {
      formats += fmt::format("{}{}", formats.empty() ? "" : " and ", DTypeName(dtype));
    }
    const size_t casts = tf32 ? 0 : casts_.all().size();
    const std::string each =
        casts == 0 ? "" : fmt::format(", each {:.1f} us of host time", costs.op.us());
    Note("assumes {}: {} matrix kernels, {} casts added{}", formats, tally_.moved, casts, each);
    if (tf32) return;
    if (tally_.shaped == tally_.moved) {
      Note("all of them by their shapes");
    } else if (tally_.shaped == 0) {
      Note("all of them by class");
    } else {
      Note("{} of them by their shapes, the others by class", tally_.shaped);
    }
  }

  void TellNarrow() {
    const bool fp8 = Runs(DType::kFp8);
    if (!fp8 && !Runs(DType::kNvfp4)) return;
    const std::string_view format = DTypeName(fp8 ? DType::kFp8 : DType::kNvfp4);
    Note(
        "{} of them in {}, as linear layers of Transformer Engine; an estimate: no step in {} was "
        "checked against a measurement",
        tally_.narrow, format, format);
    if (tally_.narrow > 0) return;
    edit_.changes().warnings.push_back(fmt::format(
        "no product is known to be one of a linear layer that {} takes: all run in bf16", format));
  }

  void TellMemory() {
    if (Runs(DType::kTf32)) {
      edit_.changes().memory.push_back({.what = "fp32 data stays fp32"});
    } else {
      TellAutocastMemory(edit_, to_half_);
    }
  }

  void TellOthers() {
    if (tally_.already > 0) Note("{} matrix kernels are in 16 bit already", tally_.already);
    if (tally_.unknown_device > 0) {
      edit_.changes().warnings.push_back(fmt::format(
          "the GPU is not known: {} matrix kernels are taken to run {} faster",
          tally_.unknown_device, FormatValue(params_["matrix_speedup"], Unit::kFactor)));
    }
  }

  const Params& params_;
  Editor& edit_;
  PrecisionRules rules_;
  OpWorkTable works_;
  absl::flat_hash_map<ScopeId, std::vector<Duration>> longer_;  // at ends: what an op takes more
  std::map<std::tuple<const OpWork*, const DeviceSpec*, DType, DType>, FormatTimes> format_times_;
  OpShapes shapes_;
  CastPlaces casts_;
  Duration floor_;
  std::vector<Duration> floors_;  // by end
  Number twice_;
  std::map<std::string_view, Number> numbers_;  // by parameter
  DType dtype_ = DType::kBf16;                  // of the GPU whose stream is walked
  std::map<int32_t, DeviceMatch> devices_;
  std::vector<TaskId> moved_;             // matrix kernels
  absl::flat_hash_set<ScopeId> to_half_;  // ops with kernels that read and write 16 bit now
  MatrixTally tally_;
};

absl::Status RunAmp(const Params& params, Editor& edit) { return Amp(params, edit).Run(); }

}  // namespace

constinit const Transform kAmp = {
    .name = "amp",
    .summary = "Train in mixed precision (autocast)",
    .params = kAmpParams,
    .ends = AtEnds::kTold,
    .apply = &RunAmp,
    .model =
        "Matrix products and convolutions that are not in 16 bit already run at the rate of the "
        "GPU's tensor cores against the rate they have now (fp32 or TF32), as far as their shapes "
        "let them. Kernels that follow them on their stream take half the time, as if each were "
        "bound by bandwidth. Softmax, row norms, losses, embeddings, the optimizer and what "
        "follows these stay in fp32, and so do ops of other libraries, which autocast does not "
        "know. Casts are added where autocast casts (weights and biases once a step, inputs in "
        "fp32, what row norms read, and the gradients of all of these), each with its launch and "
        "host time. No kernel gets shorter than the floor. fp16 adds the check and scaling of "
        "gradients, which the host waits for. tf32 changes nothing but fp32 matrix kernels. "
        "Convolutions that tensor cores cannot read as they lie get the changes of layout that the "
        "library makes around them (channels-last removes those). fp8 runs products of linear "
        "layers in fp8, and casts each input, weight and gradient for them together with its "
        "largest value; the rest is as in bf16. nvfp4 does the same in 4 bit, but finds the "
        "largest value in a kernel of its own before each cast. Parameters stay in fp32 (master "
        "weights).",
    .ignores =
        "Larger batches that the saved memory would allow, other algorithms that the "
        "library may pick, smaller all-reduces. With nvfp4: linear layers that recipes keep in "
        "bf16 (NVIDIA's: 15 %), the arithmetic of random Hadamard transforms and of stochastic "
        "rounding.",
    .sources =
        "PyTorch documentation, Autocast Op Reference and Gradient Scaling; Transformer Engine "
        "documentation, delayed scaling and NVFP4BlockScaling; \"Pretraining Large Language Models "
        "with NVFP4\" (NVIDIA, arXiv:2509.25149, 2025); Daydream (ATC'20) and dPRO (MLSys'22) for "
        "the idea and measurements; docs/cost-model.md for rates",
    .advice = {.effort = "2 lines",
               .risk = "numerics",
               .how = "with torch.autocast(\"cuda\", dtype=torch.bfloat16): out = model(batch), "
                      "and the loss; before Ampere dtype=torch.float16 with torch.amp.GradScaler"},
    .twice = "kernels that are in 16 bit already would be halved again",
    .memory_model =
        "What ops of autocast's 16-bit list keep for backward takes half the bytes of its fp32 "
        "form; norms over rows, softmax and losses keep fp32, masks a byte an element. Autocast "
        "holds a 16-bit copy of each weight that it casts until the end of the forward pass; "
        "parameters, gradients and the optimizer's state stay in fp32. Without a backward pass, of "
        "what comes and goes the share of fp32 results that are in 16 bit then takes half.",
};

}  // namespace daydream
