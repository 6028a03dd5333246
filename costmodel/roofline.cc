#include "costmodel/roofline.h"

#include <algorithm>
#include <cmath>

#include "costmodel/surface.h"
#include "costmodel/tiles.h"

namespace daydream {
namespace {

// Fitted with the constants of costmodel/tiles.cc.
constexpr double kL2Share = 0.72, kL2Slope = 12;  // where a working set stops fitting

double Sigmoid(double x) { return 1 / (1 + std::exp(-std::clamp(x, -50.0, 50.0))); }

double L2Bytes(const DeviceSpec& device) { return device.l2_mb * 1e6; }

// Products by their measured surface; 0 without one.
double OnSurfaceNs(const DeviceSpec& device, const OpWork& work, DType dtype) {
  const Surface* surface = SurfaceOf(device, dtype);
  if (work.kind != OpWork::Kind::kGemm || surface == nullptr) return 0;
  double ns = 0;
  for (const GemmShape& product : work.products) {
    const SurfaceTime time = TimeOnSurface(*surface, device, dtype, product);
    ns += device.measured_tensor_share > 0 ? time.ns : SustainedNs(time);
  }
  return ns;
}

}  // namespace

double RateFor(const DeviceSpec& device, DType dtype, bool batched) {
  const double rate = device.SustainedTflops(dtype, batched);
  return rate > 0 ? rate : device.SustainedTflops(DType::kFp32, batched);
}

double RuleRateFor(const DeviceSpec& device, DType dtype) {
  const double rate = device.RuleTflops(dtype);
  return rate > 0 ? rate : device.RuleTflops(DType::kFp32);
}

double ConvolutionRateFor(const DeviceSpec& device, DType dtype) {
  return RuleRateFor(device, dtype) * device.ConvolutionShare(dtype);
}

Duration RooflineBound(const DeviceSpec& device, double flops, double bytes, DType dtype) {
  const double tflops = device.Peak(dtype);
  const double from_memory = std::max(bytes - L2Bytes(device), 0.0);
  return Duration::FromDouble(
      std::floor(std::max(flops / (tflops * 1e3), from_memory / device.memory_gb_per_s)));
}

double SustainedRooflineNs(const DeviceSpec& device, double flops, double bytes, DType dtype) {
  return std::max(flops / (RuleRateFor(device, dtype) * 1e3),
                  bytes / (device.SustainedBandwidth() * 1e-9));
}

MemoryTimes::MemoryTimes(const DeviceSpec& device)
    : log_fits_(std::log(kL2Share * L2Bytes(device))),
      bytes_per_ns_(device.SustainedBandwidth() * 1e-9) {}

double MemoryTimes::Ns(double bytes) const {
  bytes = std::max(bytes, 1.0);
  const double hit = Sigmoid(kL2Slope * (log_fits_ - std::log(bytes)));
  return bytes / bytes_per_ns_ * (1 - hit + hit / kL2Speed);
}

double MemoryNs(const DeviceSpec& device, double bytes) { return MemoryTimes(device).Ns(bytes); }

double RowOpNs(const DeviceSpec& device, const RowShape& shape) {
  // Fitted with the constants above. A row costs a fixed number of cycles and some per element;
  // rows in flight that do not fit in L2 are read from memory twice.
  constexpr double kNormSlope = 2.75482, kNormFit = 0.567787, kNormRow = 7886.48,
                   kNormElement = 4.41595;
  constexpr double kSoftmaxSlope = 6.57732, kSoftmaxFit = 0.879127, kWarpRow = 149.004,
                   kWarpElement = 0.60453, kBlockRow = 9685.86, kBlockElement = 49.6752;
  constexpr double kAmdBlockRow = 33217;  // costmodel/fit/amd.py
  constexpr double kBlend = 2.12239;
  if (shape.rows <= 0 || shape.columns <= 0) return 0;
  const auto b = static_cast<double>(shape.rows), h = static_cast<double>(shape.columns);
  const double bytes = 2 * b * h * shape.element_bytes, row_bytes = h * shape.element_bytes;
  const double threads =
      static_cast<double>(device.multiprocessors) * device.threads_per_multiprocessor;
  const double l2 = L2Bytes(device);
  double miss = 0, extra = 1, cycles = 0;
  if (shape.op == RowOp::kLayerNorm) {
    const double in_flight = threads / 128;
    extra = 0.5;
    miss = Sigmoid(kNormSlope *
                   (std::log(std::min(b, in_flight) * row_bytes) - std::log(kNormFit * l2)));
    cycles = b / in_flight * (kNormRow + kNormElement * h);
  } else if (shape.columns <= 1024) {  // a warp for each row
    cycles = b / (threads / 32) * (kWarpRow + kWarpElement * h);
  } else {
    const double wanted = std::min(h / 4, 1024.0);
    const double block = std::max(32.0, std::exp2(std::ceil(std::log2(wanted / 2))));
    const double in_flight = threads / block;
    miss = Sigmoid(kSoftmaxSlope *
                   (std::log(std::min(b, in_flight) * row_bytes) - std::log(kSoftmaxFit * l2)));
    const double row = device.vendor == "AMD" ? kAmdBlockRow : kBlockRow;
    cycles = b / in_flight * (row + kBlockElement * std::ceil(h / (4 * block)));
  }
  const double memory = MemoryNs(device, bytes) * (1 + extra * miss);
  const double latency = cycles / device.boost_clock_mhz * 1e3;
  return std::pow(std::pow(memory, kBlend) + std::pow(latency, kBlend), 1 / kBlend);
}

double FormatNs(const DeviceSpec& device, const OpWork& work, DType dtype) {
  if (work.kind == OpWork::Kind::kMemory) return MemoryNs(device, work.Bytes(dtype));
  double ns = 0;
  for (size_t i = 0; i < work.products.size(); ++i) {
    const GemmShape& product = work.products[i];
    const bool batched = work.kind == OpWork::Kind::kGemm && product.batch > 1;
    const Operands* operands = i < work.operands.size() ? &work.operands[i] : nullptr;
    ns += TimeOfFedTiles(device, product, dtype, batched, operands).ns;
  }
  return ns;
}

double FormatRatio(const DeviceSpec& device, const OpWork& work, DType from, DType to) {
  if (from == to) return 1;
  const double time_from = FormatNs(device, work, from), time_to = FormatNs(device, work, to);
  return time_from > 0 && time_to > 0 ? time_to / time_from : 1;
}

FormatTimes TimesInFormats(const DeviceSpec& device, const OpWork& work, DType from, DType to) {
  FormatTimes times;
  if (from == to) return times;
  if (work.kind == OpWork::Kind::kGemm) {
    for (const GemmShape& product : work.products) times.least += UnalignedNs(device, to, product);
  }
  const bool known = times.least > 0 || to == DType::kTf32 || work.AlignedForTensorCores();
  if (!known) return times;
  // Two formats of tensor cores are compared by their surfaces; the vector units have none.
  times.from = OnSurfaceNs(device, work, from), times.to = OnSurfaceNs(device, work, to);
  if (times.from > 0 && times.to > 0) return times;
  times.from = FormatNs(device, work, from), times.to = FormatNs(device, work, to);
  return times;
}

double InFormatNs(const FormatTimes& times, double measured_ns, double own) {
  if (measured_ns <= 0 || times.from <= 0 || times.to <= 0) return measured_ns;
  const double by_model = times.to * std::pow(measured_ns / times.from, own);
  return std::min(measured_ns, std::max(by_model, times.least));
}

double InFormatNs(const DeviceSpec& device, const OpWork& work, DType from, DType to,
                  double measured_ns, double own) {
  return InFormatNs(TimesInFormats(device, work, from, to), measured_ns, own);
}

}  // namespace daydream
