// The kernels of a recorded program on another GPU, each by the best method that its recording
// allows:
//
//   shapes   the op around it has recorded shapes: the cost model on both GPUs, and what the
//            measurement says of this op (costmodel/transfer.h)
//   waves    a memory-bound kernel with a recorded launch: wave scaling (costmodel/wave_scaling.h)
//   measurement  the new GPU has the rates of the recorded one, whatever its name: as measured
//   class    anything else: the ratio of sustained rates of its class (fused attention: of what
//            FlashAttention-2 reaches on both). Matrix kernels without shapes are here, for another
//            GPU runs another kernel with another launch.
//
// Only the work scales: what every kernel takes, whatever it does, stays.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "costmodel/transfer.h"
#include "transforms/analysis/kernel_table.h"
#include "transforms/analysis/op_shapes.h"
#include "transforms/analysis/op_work.h"
#include "transforms/analysis/precision.h"
#include "transforms/core/editor.h"

namespace daydream {

std::string_view Name(TermSource source);  // "shapes"

struct OtherGpuRules {
  // Which fp32 matrix kernels run in TF32 where the new GPU has it and the recorded one has not.
  enum class Tf32 : uint8_t { kNone, kConvolutions, kAll };
  Tf32 tf32 = Tf32::kConvolutions;
  TransferRules transfer;
};

// Valid while the graph lives and its durations are those that it was made with.
class OtherGpu {
 public:
  OtherGpu(const Graph& graph, const DeviceSpec& target, const OtherGpuRules& rules);

  struct Kernel {
    TermSource source = TermSource::kClass;
    Duration same_format;               // on the new GPU in the recorded format
    Duration time;                      // in the format that it runs in there
    bool tf32 = false;                  // came with the GPU
    DType lost = DType::kUnknown;       // the recorded format, which the new GPU does not have
    bool bounded = false;               // the roofline of the new GPU counts
    Duration least, least_same_format;  // that roofline; 0 where the work is not known
  };
  // Of a recorded GPU that is not known: unchanged, by class. REQUIRES: `t` is a kernel.
  Kernel Of(TaskId t) { return Of(t, rules_.transfer); }
  Kernel Of(TaskId t, const TransferRules& transfer);  // with these instead of its own
  // "by shapes: V100-SXM2-32GB 512.3 us by tiles in waves: ...; A100-SXM4-40GB ...".
  std::string Explain(TaskId t);
  const DeviceSpec* Recorded(TaskId t) { return devices_.Of(t); }

 private:
  struct Setting {
    const DeviceSpec* from = nullptr;
    KernelPrecision precision;
    DType format = DType::kFp32, format_there = DType::kFp32;  // without TF32 that arrives
    bool matrix = false, attention = false, convolution = false, tf32 = false;
    bool native = false;                // a convolution that was written for the recorded Hopper
    double share = 1, share_there = 1;  // DeviceSpec::ConvolutionShare of the two formats
  };
  // What is known of an op: all kernels of one are taken together.
  struct Op {
    Duration total;
    double kernels = 0;
  };
  Setting SettingOf(TaskId t);
  bool TimedByShapes(TaskId t, const Setting& setting);
  void LearnBias();
  const DeviceSpec& InSteps(const DeviceSpec* device);
  OpTimes& TimesOn(const DeviceSpec* device);
  OpTime There(const OpWork& work, DType format);
  void ByShapes(TaskId t, const Setting& setting, TransferRules transfer, Kernel& kernel);
  void ByLaunchOrClass(TaskId t, const Setting& setting, Kernel& kernel);
  double Tf32Rate(const Setting& setting) const;  // TFLOPS
  double Tf32Gain(const Setting& setting) const;

  const Graph& graph_;
  const DeviceSpec& target_;
  OtherGpuRules rules_;
  OpWorkTable works_;
  KernelClasses classes_;
  PrecisionRules precision_;
  KnownDevices devices_;
  Duration floor_;
  SourceBias bias_;
  absl::flat_hash_map<ScopeId, Op> ops_;
  absl::flat_hash_map<const DeviceSpec*, std::unique_ptr<const DeviceSpec>> in_steps_;
  absl::flat_hash_map<const DeviceSpec*, std::unique_ptr<OpTimes>> times_;
};

}  // namespace daydream
