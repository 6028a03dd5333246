// How long a kernel takes on a GPU, from the work it does. Bounds come from the data sheet,
// estimates from what GPUs sustain (costmodel/device.h).
#pragma once

#include "base/time.h"
#include "costmodel/device.h"
#include "costmodel/op_shape.h"

namespace daydream {

// No kernel with this work is faster: the data-sheet rates of arithmetic and memory, the latter
// for what cannot have been in the L2 cache. `dtype` picks tensor cores where the device has them
// for it, else the vector units.
Duration RooflineBound(const DeviceSpec& device, double flops, double bytes, DType dtype);

// Speed of the L2 cache over device memory; fitted with the constants of costmodel/tiles.cc.
inline constexpr double kL2Speed = 2.5;
// The shortest time of a kernel: docs/cost-model.md, "Short kernels".
inline constexpr double kKernelFloorNs = 2000;

// TFLOPS that `dtype` runs at: tensor cores if there are any for it, else vector units.
double RateFor(const DeviceSpec& device, DType dtype, bool batched);
double RuleRateFor(const DeviceSpec& device, DType dtype);
double ConvolutionRateFor(const DeviceSpec& device, DType dtype);  // by rule

// Sustained roofline: the larger of arithmetic and memory time, rates by rule. For ratios between
// formats or devices of kernels whose algorithm is not known.
double SustainedRooflineNs(const DeviceSpec& device, double flops, double bytes, DType dtype);

// A memory-bound kernel that moves `bytes`: sustained bandwidth, 2.5 times that for what stays in
// the L2 cache.
double MemoryNs(const DeviceSpec& device, double bytes);
// The same for many sizes on one device.
class MemoryTimes {
 public:
  explicit MemoryTimes(const DeviceSpec& device);
  double Ns(double bytes) const;

 private:
  double log_fits_;  // of the bytes up to which half stays in the cache
  double bytes_per_ns_;
};

// Softmax or layer norm, forward.
double RowOpNs(const DeviceSpec& device, const RowShape& shape);

// What `work` takes in a format: products and convolutions by TimeOfFedTiles, the rest by bytes.
// Not limited by launch latency: that is the caller's.
double FormatNs(const DeviceSpec& device, const OpWork& work, DType dtype);

// T(to) / T(from) of `work` on `device`. 1 when nothing is known about one of the formats.
double FormatRatio(const DeviceSpec& device, const OpWork& work, DType from, DType to);

// What `work` takes in two formats by the models (of a product that has a surface in both,
// costmodel/surface.h, by that one): all that InFormatNs() asks of `work`. Times in ns; 0: not
// known.
struct FormatTimes {
  double from = 0, to = 0;
  double least = 0;  // what products take in `to` that do not fit its tensor cores: UnalignedNs()
};
FormatTimes TimesInFormats(const DeviceSpec& device, const OpWork& work, DType from, DType to);

// What a kernel that takes `measured_ns` in format `from` takes in `to`: T(to) * (t / T(from)) ^
// own, where `own` says how much of its deviation from the model it keeps. Sizes that do not fit
// tensor cores keep their time where UnalignedNs() (surface.h) knows none; nothing gets slower.
double InFormatNs(const FormatTimes& times, double measured_ns, double own);
double InFormatNs(const DeviceSpec& device, const OpWork& work, DType from, DType to,
                  double measured_ns, double own);

}  // namespace daydream
