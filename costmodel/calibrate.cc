#include "costmodel/calibrate.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "costmodel/op_time.h"
#include "costmodel/roofline.h"
#include "costmodel/surface.h"

namespace daydream {
namespace {

// Standard deviations of logarithms. Rules against fitted rates on the seven training GPUs (a test
// computes it from the device files); with a similar GPU's correction, which takes out about half;
// and the model on one operation, whose mean error is 6 to 15 % where rates are fitted.
constexpr double kSpreadOfRules = 0.16, kSpreadOfLike = 0.12, kSpreadOfSample = 0.12;
constexpr double kOutlier = 2;     // spreads; beyond, a sample pulls no stronger
constexpr double kFarthest = 1.5;  // logarithm of rate / prior

std::optional<Rate> RateOf(const RateSample& sample) {
  switch (sample.work.kind) {
    case OpWork::Kind::kConv:
    case OpWork::Kind::kRecurrent:
      return std::nullopt;
    case OpWork::Kind::kMemory:
      return Rate::kBandwidth;
    case OpWork::Kind::kGemm:
      break;
  }
  if (sample.dtype != DType::kFp32 && sample.dtype != DType::kUnknown) return Rate::kTensorProducts;
  const bool batched = !sample.work.products.empty() && sample.work.products[0].batch > 1;
  return batched ? Rate::kBatchedProducts : Rate::kProducts;
}

// What the rate is a share of: TFLOPS, or GB/s.
double PeakOf(const DeviceSpec& device, Rate rate) {
  switch (rate) {
    case Rate::kTensorProducts:
      return std::max(device.fp16_tflops, device.bf16_tflops);
    case Rate::kBandwidth:
      return device.memory_gb_per_s;
    default:
      return device.Peak(DType::kFp32);
  }
}

double RateNow(const DeviceSpec& device, Rate rate) {
  switch (rate) {
    case Rate::kProducts:
      return device.SustainedTflops(DType::kFp32, false);
    case Rate::kBatchedProducts:
      return device.SustainedTflops(DType::kFp32, true);
    case Rate::kTensorProducts: {
      const DType dtype = device.fp16_tflops > 0 ? DType::kFp16 : DType::kBf16;
      const Surface* surface = SurfaceOf(device, dtype);
      if (surface == nullptr || device.measured_tensor_share > 0) {
        return device.SustainedTflops(dtype);
      }
      return std::min(LongShareOf(*surface, device), 1.0) * device.TensorPeak(dtype);
    }
    case Rate::kBandwidth:
      break;
  }
  return device.SustainedBandwidth() * 1e-9;
}

void SetRate(DeviceSpec& device, Rate rate, double value) {
  switch (rate) {
    case Rate::kProducts:
      device.measured_fp32_gemm_tflops = value;
      break;
    case Rate::kBatchedProducts:
      device.measured_fp32_batched_gemm_tflops = value;
      break;
    case Rate::kTensorProducts:
      device.measured_tensor_share = value / PeakOf(device, rate);
      break;
    case Rate::kBandwidth:
      device.measured_bandwidth_share = value / PeakOf(device, rate);
      break;
  }
}

DeviceSpec WithoutMeasurements(DeviceSpec device) {
  device.measured_fp32_gemm_tflops = device.measured_fp32_batched_gemm_tflops = 0;
  device.measured_tensor_share = device.measured_bandwidth_share = 0;
  device.measured_source.clear();
  device.measured_residuals.clear();
  return device;
}

bool IsMeasured(const DeviceSpec& device, Rate rate) {
  switch (rate) {
    case Rate::kProducts:
      return device.measured_fp32_gemm_tflops > 0;
    case Rate::kBatchedProducts:
      return device.measured_fp32_batched_gemm_tflops > 0;
    case Rate::kTensorProducts:
      return device.measured_tensor_share > 0;
    case Rate::kBandwidth:
      break;
  }
  return device.measured_bandwidth_share > 0;
}

const DeviceSpec* MostAlike(const DeviceSpec& device) {
  for (const DeviceSpec& spec : DeviceSpecs()) {
    if (spec.vendor == device.vendor && spec.compute_major == device.compute_major &&
        spec.memory == device.memory && spec.name != device.name &&
        IsMeasured(spec, Rate::kProducts)) {
      return &spec;
    }
  }
  return nullptr;
}

using Samples = std::vector<const RateSample*>;

double LogError(const DeviceSpec& device, const RateSample& sample) {
  return std::log(sample.ns / (PredictOp(device, sample.work, sample.dtype).ns * sample.own));
}

double MeanError(const DeviceSpec& device, const Samples& samples) {
  double sum = 0;
  for (const RateSample* s : samples) sum += std::abs(std::expm1(-LogError(device, *s)));
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

// Nothing that a GPU of this kind does is slower by more than the search goes.
absl::Status OtherGpuOrUnit(const DeviceSpec& device, const RateFit& fit) {
  return MakeStatus(
      absl::StatusCode::kFailedPrecondition,
      {.code = "E0806",
       .what = fmt::format("the operations took longer than any {} needs for them", device.name),
       .why = fmt::format("the samples of {} give less than {:.0f} % of the rate known for it",
                          RateName(fit.rate), 100 * std::exp(-kFarthest)),
       .fix = "times are in microseconds; --gpu is the GPU that was measured"});
}

// The search for one rate.
class Fit {
 public:
  Fit(const DeviceSpec& device, Rate rate, double prior, double spread)
      : device_(device), rate_(rate), prior_(prior), spread_(spread) {}

  // The logarithm of the best rate over the prior; `drawn`: towards the prior. Golden section.
  double Search(const Samples& samples, bool drawn) {
    constexpr double kRatio = 0.6180339887498949;
    double low = -kFarthest, high = std::min(kFarthest, Limit());
    double a = high - kRatio * (high - low), b = low + kRatio * (high - low);
    double at_a = Cost(samples, a, drawn), at_b = Cost(samples, b, drawn);
    while (high - low > 1e-5) {
      if (at_a <= at_b) {
        high = b, b = a, at_b = at_a;
        a = high - kRatio * (high - low);
        at_a = Cost(samples, a, drawn);
      } else {
        low = a, a = b, at_a = at_b;
        b = low + kRatio * (high - low);
        at_b = Cost(samples, b, drawn);
      }
    }
    return (low + high) / 2;
  }
  double Limit() const { return std::log(PeakOf(device_, rate_) / prior_); }
  const DeviceSpec& At(double x) {
    SetRate(device_, rate_, std::min(prior_ * std::exp(x), PeakOf(device_, rate_)));
    return device_;
  }

 private:
  double Cost(const Samples& samples, double x, bool drawn) {
    At(x);
    double cost = drawn ? x * x / (spread_ * spread_) / 2 : 0;
    for (const RateSample* s : samples) {
      const double e = std::abs(LogError(device_, *s)) / kSpreadOfSample;
      cost += e <= kOutlier ? e * e / 2 : kOutlier * (e - kOutlier / 2);
    }
    return cost;
  }

  DeviceSpec device_;
  Rate rate_;
  double prior_, spread_;
};

// Errors of samples that took no part in the fit, in five turns.
double HeldOutError(Fit& fit, const Samples& samples) {
  constexpr size_t kParts = 5;
  if (samples.size() < kParts) return 0;
  double sum = 0;
  for (size_t part = 0; part < kParts; ++part) {
    Samples in, out;
    for (size_t i = 0; i < samples.size(); ++i) {
      (i % kParts == part ? out : in).push_back(samples[i]);
    }
    sum += MeanError(fit.At(fit.Search(in, true)), out) * static_cast<double>(out.size());
  }
  return sum / static_cast<double>(samples.size());
}

RateFit FitRate(DeviceSpec& device, Rate rate, const Samples& samples, double prior,
                double spread) {
  Fit fit(device, rate, prior, spread);
  RateFit result{.rate = rate, .samples = samples.size(), .prior = prior};
  result.error_before = MeanError(fit.At(0), samples);
  result.alone = prior * std::exp(fit.Search(samples, false));
  const double kept = fit.Search(samples, true);
  // Six digits: what stands in a device file.
  const double digits = std::pow(10, 5 - std::floor(std::log10(prior)));
  result.kept =
      std::min(std::round(prior * std::exp(kept) * digits) / digits, PeakOf(device, rate));
  result.at_peak = kept > fit.Limit() - 1e-4;
  result.error_held_out = HeldOutError(fit, samples);
  result.error_after = MeanError(fit.At(kept), samples);
  result.by_rule = result.error_held_out > 0 && result.error_held_out >= result.error_before;
  if (result.by_rule) {
    result.kept = prior;
    result.at_peak = false;
    result.error_after = result.error_before;
  }
  SetRate(device, rate, result.kept);
  return result;
}

}  // namespace

std::string_view RateName(Rate rate) {
  switch (rate) {
    case Rate::kProducts:
      return "fp32 products";
    case Rate::kBatchedProducts:
      return "fp32 batched products";
    case Rate::kTensorProducts:
      return "tensor-core products";
    case Rate::kBandwidth:
      break;
  }
  return "memory";
}

absl::StatusOr<Calibration> Calibrate(const DeviceSpec& device, std::span<const RateSample> samples,
                                      const CalibrationRules& rules) {
  Calibration calibration{.device = WithoutMeasurements(device)};
  DeviceSpec& to = calibration.device;
  Samples of_rate[4];
  for (const RateSample& sample : samples) {
    const std::optional<Rate> rate = RateOf(sample);
    const OpTime model = PredictOp(to, sample.work, sample.dtype);
    const bool impossible = sample.work.exact && sample.ns < model.bound_ns;
    if (impossible) ++calibration.impossible;
    const bool long_enough =
        sample.ns >= 2 * kKernelFloorNs && sample.own > 0 && model.ns >= 2 * kKernelFloorNs;
    if (!rate || !long_enough || impossible || PeakOf(to, *rate) <= 0) {
      ++calibration.unused;
      continue;
    }
    of_rate[static_cast<size_t>(*rate)].push_back(&sample);
  }
  if (samples.empty()) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      {.code = "E0806",
                       .what = "there is no measured operation with known sizes",
                       .why = "a recording without shapes does not tell what its operations did",
                       .fix = "record with record_shapes=True, or write a table"});
  }
  if (calibration.unused == samples.size()) {
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition,
        {.code = "E0806",
         .what = "no measured operation can be used",
         .why = fmt::format("{} are faster than the data sheet of {} allows; the others are "
                            "convolutions, are shorter than {:.0f} us, or are in a format that it "
                            "does not have",
                            calibration.impossible, device.name, 2e-3 * kKernelFloorNs),
         .fix = "measure products, copies or elementwise operations that take longer"});
  }
  const DeviceSpec* like = rules.like != nullptr ? rules.like : MostAlike(device);
  const DeviceSpec bare = like != nullptr ? WithoutMeasurements(*like) : to;
  calibration.prior_from =
      like == nullptr ? "rules" : fmt::format("rules as they hold on {}", like->name);
  // Bandwidth first: products wait for it, too.
  for (Rate rate :
       {Rate::kBandwidth, Rate::kProducts, Rate::kBatchedProducts, Rate::kTensorProducts}) {
    const double corrected =
        like != nullptr && IsMeasured(*like, rate) ? RateNow(*like, rate) / RateNow(bare, rate) : 1;
    double prior = std::min(RateNow(to, rate) * corrected, PeakOf(to, rate));
    // Both kinds of fp32 products run at one clock: what one has shown is the other's prior.
    const bool shown = rate == Rate::kBatchedProducts && IsMeasured(to, Rate::kProducts);
    if (shown) prior = to.measured_fp32_gemm_tflops;
    const double spread = shown || corrected != 1 ? kSpreadOfLike : kSpreadOfRules;
    const Samples& own = of_rate[static_cast<size_t>(rate)];
    if (own.empty()) {
      if (shown) SetRate(to, rate, prior);
      continue;
    }
    calibration.fits.push_back(FitRate(to, rate, own, prior, spread));
    const RateFit& fit = calibration.fits.back();
    if (std::log(fit.alone / fit.prior) < -kFarthest + 1e-3) return OtherGpuOrUnit(device, fit);
  }
  to.measured_source = rules.source;
  for (const RateFit& fit : calibration.fits) {
    to.measured_residuals.push_back(fmt::format(
        "{}: {} sample{}, mean error {:.1f} %, {:.1f} % before", RateName(fit.rate), fit.samples,
        fit.samples == 1 ? "" : "s", 100 * fit.error_after, 100 * fit.error_before));
  }
  return calibration;
}

}  // namespace daydream
