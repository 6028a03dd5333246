// Sustained rates of a GPU from a handful of measured operations.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "costmodel/device.h"
#include "costmodel/op_shape.h"

namespace daydream {

struct RateSample {
  OpWork work;
  DType dtype = DType::kFp32;
  double ns = 0;  // of its kernels
  // By how much this operation was slower than the model on another GPU, apart from what its whole
  // family was there (transfer.h): the model's own error, which is not this GPU's. 1 = not known.
  double own = 1;
};

enum class Rate : uint8_t { kProducts, kBatchedProducts, kTensorProducts, kBandwidth };
std::string_view RateName(Rate rate);  // "fp32 products"

struct RateFit {
  Rate rate = Rate::kProducts;
  size_t samples = 0;
  double prior = 0;  // before any sample: TFLOPS, or GB/s
  double alone = 0;  // what the samples say by themselves
  double kept = 0;   // in between; nearer to the samples the more there are
  // Mean absolute errors of the samples' times, as shares: with the prior, with what was kept, and
  // of samples that the rate was not fitted to (five parts; 0 with less than five samples).
  double error_before = 0, error_after = 0, error_held_out = 0;
  bool at_peak = false;  // the data-sheet rate ended the search
  bool by_rule = false;  // held-out samples are no nearer than by the rule, so that is kept
};

struct Calibration {
  DeviceSpec device;  // with the kept rates, their source and residuals
  std::vector<RateFit> fits;
  // Convolutions (no absolute times) and operations whose time is not made of their work: under
  // twice the floor of a kernel.
  size_t unused = 0;
  // Of these, faster than the data sheet allows: their sizes, times or GPU are not what they say.
  size_t impossible = 0;
  std::string prior_from;  // "rules", or "rules as they hold on T4"
};

struct CalibrationRules {
  // A GPU with measured rates that is built alike: the rules are corrected as they are there.
  // nullptr: the known one of the same vendor, architecture and class of memory, if there is one.
  const DeviceSpec* like = nullptr;
  std::string source;  // of the samples, for the device file
};

// Each rate minimises the errors of its samples, drawn towards the prior: by as much as rules are
// off on the seven GPUs that were fitted, against the error of the model on a single operation. No
// rate is above the data sheet. Deterministic. E0806 when no sample can be used, or all say less
// than a quarter of the prior: another GPU, or another unit.
absl::StatusOr<Calibration> Calibrate(const DeviceSpec& device, std::span<const RateSample> samples,
                                      const CalibrationRules& rules);

}  // namespace daydream
