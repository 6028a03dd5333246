#include "transforms/analysis/roofline_times.h"

#include <algorithm>

#include "costmodel/roofline.h"

namespace daydream {
namespace {

// The fastest format in which a kernel like this may have run: a bound must not assume a slower
// one than the recorded.
DType FastestFormat(const DeviceSpec& spec, const KernelTraits& traits, DType recorded) {
  if (traits.dtype != DType::kUnknown && traits.dtype != DType::kFp32) return traits.dtype;
  if (recorded != DType::kUnknown && recorded != DType::kFp32) return recorded;
  bool vector_units = traits.dtype == DType::kFp32 && !traits.tensor_cores;
  return !vector_units && spec.TensorPeak(DType::kTf32) > 0 ? DType::kTf32 : DType::kFp32;
}

}  // namespace

RooflineTimes::RooflineTimes(const Graph& graph)
    : graph_(graph), works_(graph), kernels_(graph), devices_(graph) {
  works_.SumTimes([](TaskId) { return true; });
}

std::optional<Duration> RooflineTimes::Of(TaskId t, DType format) {
  const DeviceSpec* spec = devices_.Of(t);
  const OpWorkTable::Op op = works_.Of(t);
  const Duration total = op.work != nullptr ? works_.TimeOf(op.scope) : Duration{};
  if (spec == nullptr || op.work == nullptr || !op.work->exact || total <= Duration{}) {
    return std::nullopt;
  }
  DType stored = op.work->dtype == DType::kUnknown ? DType::kFp32 : op.work->dtype;
  if (format == DType::kUnknown) {
    format = FastestFormat(*spec, kernels_.Of(graph_.task(t).name), op.work->dtype);
  } else if (RateFor(*spec, format, /*batched=*/false) > 0) {
    stored = format;
  } else {
    return std::nullopt;
  }
  const Duration bound = RooflineBound(*spec, op.work->flops, op.work->Bytes(stored), format);
  const double share = std::min(1.0, static_cast<double>(bound.ns) / static_cast<double>(total.ns));
  return graph_.task(t).duration.Scaled(share);
}

}  // namespace daydream
