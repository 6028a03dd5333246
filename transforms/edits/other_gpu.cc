#include "transforms/edits/other_gpu.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "costmodel/attention_surface.h"
#include "costmodel/roofline.h"
#include "costmodel/wave_scaling.h"
#include "graph/scopes.h"
#include "transforms/edits/retime.h"

namespace daydream {
namespace {

using Tf32 = OtherGpuRules::Tf32;

bool IsHalf(DType d) {
  return d == DType::kFp16 || d == DType::kBf16 || d == DType::kFp8 || d == DType::kNvfp4;
}

// What the new GPU runs a format as that it has no tensor cores for: 16 bit stays 16 bit where
// there is any, everything else is computed by the vector units.
DType FormatOn(const DeviceSpec& target, DType recorded) {
  if (recorded == DType::kFp32 || recorded == DType::kUnknown) return DType::kFp32;
  if (target.TensorPeak(recorded) > 0) return recorded;
  if (IsHalf(recorded) && target.TensorPeak(DType::kFp16) > 0) return DType::kFp16;
  return DType::kFp32;
}

Duration WorkScaled(Duration measured, Duration floor, double factor) {
  const Duration fixed = std::min(measured, floor);
  return fixed + (measured - fixed).Scaled(factor);
}

// Fused attention reaches another share of the tensor cores on each generation. 0: not known.
double AttentionRatio(const DeviceSpec& from, const DeviceSpec& to, DType format) {
  if (!IsHalf(format) || DTypeBytes(format) < 2) return 0;
  const double here = AttentionShare(from) * from.TensorPeak(format);
  const double there = AttentionShare(to) * to.TensorPeak(format);
  return there > 0 ? here / there : 0;
}

}  // namespace

std::string_view Name(TermSource source) {
  switch (source) {
    case TermSource::kShapes:
      return "shapes";
    case TermSource::kWaves:
      return "waves";
    case TermSource::kMeasured:
      return "measurement";
    case TermSource::kClass:
      break;
  }
  return "class";
}

OtherGpu::OtherGpu(const Graph& graph, const DeviceSpec& target, const OtherGpuRules& rules)
    : graph_(graph),
      target_(target),
      rules_(rules),
      works_(graph),
      classes_(graph),
      precision_(graph),
      devices_(graph),
      floor_(KernelFloor(graph)) {
  LearnBias();
}

const DeviceSpec& OtherGpu::InSteps(const DeviceSpec* device) {
  std::unique_ptr<const DeviceSpec>& spec = in_steps_[device];
  if (spec == nullptr) spec = std::make_unique<const DeviceSpec>(device->InSteps());
  return *spec;
}

OpTimes& OtherGpu::TimesOn(const DeviceSpec* device) {
  std::unique_ptr<OpTimes>& times = times_[device];
  if (times == nullptr) times = std::make_unique<OpTimes>(InSteps(device));
  return *times;
}

// Work that was guessed has no bound: it may be less.
OpTime OtherGpu::There(const OpWork& work, DType format) {
  OpTime time = TimesOn(&target_).Of(work, format);
  if (!work.exact) time.bound_ns = 0;
  return time;
}

// The work of an op is that of its matrix kernels, or of its others; an op of one kind may have
// kernels of the other beside them (casts, layout changes), which go with it.
bool OtherGpu::TimedByShapes(TaskId t, const Setting& setting) {
  const OpWork* work = works_.Of(t).work;
  return work != nullptr && setting.from != nullptr &&
         (setting.matrix ? !work->products.empty() : true);
}

void OtherGpu::LearnBias() {
  std::vector<TaskId> first;  // of each op
  for (size_t i = 0; i < graph_.size(); ++i) {
    const TaskId t(i);
    const Task& task = graph_.task(t);
    if (task.removed || task.kind != TaskKind::kKernel) continue;
    const OpWorkTable::Op known = works_.Of(t);
    if (known.work == nullptr) continue;
    Op& op = ops_[known.scope];
    if (op.kernels == 0) first.push_back(t);
    op.total += task.duration;
    ++op.kernels;
  }
  for (TaskId t : first) {
    const Setting setting = SettingOf(t);
    if (!TimedByShapes(t, setting)) continue;
    const OpWorkTable::Op known = works_.Of(t);
    const OpTime& here = TimesOn(setting.from).Of(*known.work, setting.format);
    const Op& op = ops_[known.scope];
    // Short kernels say how long a launch takes, not how fast the GPU is.
    if (!here.absolute() || here.ns < kKernelFloorNs * op.kernels) continue;
    bias_.Add(FamilyOf(here), static_cast<double>(op.total.ns), here.ns);
  }
}

OtherGpu::Setting OtherGpu::SettingOf(TaskId t) {
  Setting s{.from = devices_.Of(t), .precision = precision_.Of(t)};
  const KernelClass kind = classes_.Of(t);
  s.matrix = Multiplies(kind);
  s.attention = kind == KernelClass::kAttention;
  const OpWork* work = works_.Of(t).work;
  if (s.matrix && s.from != nullptr) {
    s.format = RecordedFormat(*s.from, s.precision);
    s.format_there = FormatOn(target_, s.format);
    s.convolution = IsOfConvolution(graph_, t, kind);
    s.native = s.convolution && Contains(graph_.TaskName(t), "sm90");
    if (s.convolution && !s.native) s.share = s.from->ConvolutionShare(s.format);
    if (s.convolution) s.share_there = target_.ConvolutionShare(s.format_there);
    const bool wanted =
        rules_.tf32 == Tf32::kAll || (rules_.tf32 == Tf32::kConvolutions && s.convolution);
    s.tf32 = wanted && s.format == DType::kFp32 && target_.vendor == "NVIDIA" &&
             target_.TensorPeak(DType::kTf32) > 0 && s.from->TensorPeak(DType::kTf32) == 0;
  } else if (work != nullptr && work->dtype != DType::kUnknown) {
    s.format = s.format_there = work->dtype;
  }
  return s;
}

double OtherGpu::Tf32Rate(const Setting& s) const {
  return target_.SustainedTflops(DType::kTf32) *
         (s.convolution ? target_.ConvolutionShare(DType::kTf32) : 1);
}

double OtherGpu::Tf32Gain(const Setting& s) const {
  const double from = target_.SustainedTflops(DType::kFp32), to = Tf32Rate(s);
  return from > 0 && to > from ? std::pow(to / from, kFormatGain) : 1;
}

void OtherGpu::ByShapes(TaskId t, const Setting& s, TransferRules rules, Kernel& kernel) {
  const OpWorkTable::Op known = works_.Of(t);
  const Op& op = ops_[known.scope];
  const auto total = static_cast<double>(op.total.ns);
  OpTime here = TimesOn(s.from).Of(*known.work, s.format);
  if (s.native) {
    const double bytes = known.work->Bytes(s.format);
    here.ns = SustainedRooflineNs(*s.from, known.work->flops, bytes, s.format);
  }
  const OpTime there = There(*known.work, s.format_there);
  rules.floor_ns = kKernelFloorNs * op.kernels;
  kernel.source = TermSource::kShapes;
  const Duration measured = graph_.task(t).duration;
  if (here.ns <= rules.floor_ns && there.ns <= rules.floor_ns) {
    kernel.same_format = kernel.time = measured;
    return;
  }
  const Transfer transfer = TransferOp(total, here, there, bias_.Of(FamilyOf(here)), false, rules);
  kernel.bounded = transfer.bounded;
  kernel.same_format = kernel.time = measured.Scaled(transfer.ns / total);
  kernel.least = kernel.least_same_format = measured.Scaled(there.bound_ns / total);
  if (!s.tf32) return;
  const double fast =
      InFormatNs(target_, *known.work, DType::kFp32, DType::kTf32, transfer.ns, kOwnInFormat);
  const double bound = There(*known.work, DType::kTf32).bound_ns;
  kernel.bounded = fast < bound;
  kernel.tf32 = true;
  kernel.time = measured.Scaled(std::max(fast, bound) / total);
  kernel.least = measured.Scaled(bound / total);
}

void OtherGpu::ByLaunchOrClass(TaskId t, const Setting& s, Kernel& kernel) {
  const Duration measured = graph_.task(t).duration;
  const KernelDetail* launch = graph_.Kernel(t);
  double factor = 1;
  if (!s.matrix && launch != nullptr && launch->grid[0] > 0 && launch->block[0] > 0) {
    kernel.source = TermSource::kWaves;
    factor = ScaleWaves(*s.from, target_, LaunchShapeOf(*launch), {}).factor;
  } else {
    const OpFamily family = s.matrix ? OpFamily::kProduct : OpFamily::kMemory;
    factor = ClassRatio(InSteps(s.from), InSteps(&target_), family, s.format, s.format_there) *
             s.share / s.share_there;
    if (s.attention && s.format == s.format_there) {
      const double attention = AttentionRatio(*s.from, target_, s.format);
      if (attention > 0) factor = attention;
    }
  }
  kernel.same_format = kernel.time = WorkScaled(measured, floor_, factor);
  if (!s.tf32) return;
  kernel.tf32 = true;
  kernel.time = WorkScaled(kernel.same_format, floor_, 1 / Tf32Gain(s));
}

OtherGpu::Kernel OtherGpu::Of(TaskId t, const TransferRules& transfer) {
  Kernel kernel;
  const Setting setting = SettingOf(t);
  kernel.same_format = kernel.time = graph_.task(t).duration;
  if (setting.from == nullptr) return kernel;
  if (RunAlike(*setting.from, target_)) {
    kernel.source = TermSource::kMeasured;
    return kernel;
  }
  if (setting.format_there != setting.format) kernel.lost = setting.format;
  if (TimedByShapes(t, setting) && kernel.time > Duration{}) {
    ByShapes(t, setting, transfer, kernel);
  } else {
    ByLaunchOrClass(t, setting, kernel);
  }
  return kernel;
}

std::string OtherGpu::Explain(TaskId t) {
  const Setting s = SettingOf(t);
  if (s.from == nullptr) return "the recorded GPU is not known: as measured";
  const Kernel kernel = Of(t);
  std::string text = fmt::format("by {}: ", Name(kernel.source));
  if (kernel.source == TermSource::kMeasured) {
    text += fmt::format("the {} has the rates of the recorded GPU", target_.name);
  } else if (kernel.source == TermSource::kShapes) {
    const OpWorkTable::Op known = works_.Of(t);
    const OpTime& here = TimesOn(s.from).Of(*known.work, s.format);
    const OpTime there = There(*known.work, s.tf32 ? DType::kTf32 : s.format_there);
    text += fmt::format("{} measured {:.1f} us; {}: {}; {}: {}; usual deviation here {:.2f}x",
                        graph_.Name(graph_.tables().scopes[known.scope.index()].name),
                        static_cast<double>(ops_[known.scope].total.ns) * 1e-3, s.from->name,
                        daydream::Explain(here), target_.name, daydream::Explain(there),
                        std::exp(bias_.Of(FamilyOf(here))));
    if (here.algorithm != there.algorithm) {
      text += fmt::format("; {} here becomes {} there", AlgorithmName(here.algorithm),
                          AlgorithmName(there.algorithm));
    }
  } else if (kernel.source == TermSource::kWaves) {
    const WaveScaling w = ScaleWaves(*s.from, target_, LaunchShapeOf(*graph_.Kernel(t)), {});
    text += fmt::format("{:.2f} waves become {:.2f}, bandwidth {:.0f} GB/s becomes {:.0f}: x{:.3f}",
                        w.waves_from, w.waves_to, s.from->SustainedBandwidth() * 1e-9,
                        target_.SustainedBandwidth() * 1e-9, w.factor);
  } else if (s.attention && AttentionRatio(*s.from, target_, s.format) > 0) {
    text += fmt::format("fused attention at {:.0f} TFLOPS becomes {:.0f}",
                        AttentionShare(*s.from) * s.from->TensorPeak(s.format),
                        AttentionShare(target_) * target_.TensorPeak(s.format_there));
  } else if (s.matrix) {
    text +=
        fmt::format("{} at {:.1f} TFLOPS becomes {} at {:.1f}", DTypeName(s.format),
                    RateFor(InSteps(s.from), s.format, false) * s.share, DTypeName(s.format_there),
                    RateFor(InSteps(&target_), s.format_there, false) * s.share_there);
  } else {
    text += fmt::format("bandwidth {:.0f} GB/s becomes {:.0f}", s.from->SustainedBandwidth() * 1e-9,
                        target_.SustainedBandwidth() * 1e-9);
  }
  if (kernel.tf32 && kernel.source == TermSource::kClass) {
    text += fmt::format(", then TF32 at {:.1f}: {:.2f}x faster", Tf32Rate(s), Tf32Gain(s));
  }
  if (kernel.bounded) text += "; the roofline of the new GPU counts";
  return text;
}

}  // namespace daydream
