#include "transforms/analysis/kernel_share.h"

#include <algorithm>

#include "costmodel/roofline.h"

namespace daydream {

std::optional<KernelDemands::Kernel> KernelDemands::Of(TaskId t) {
  Kernel kernel{.device = devices_.Of(t)};
  if (kernel.device == nullptr) return std::nullopt;
  const KernelDetail* launch = graph_.Kernel(t);
  if (launch != nullptr && launch->grid[0] > 0 && launch->block[0] > 0) {
    kernel.demand.launch = LaunchShapeOf(*launch);
    kernel.by_launch = true;
  }
  const bool multiplies = Multiplies(classes_.Of(t));
  const OpWork* work = works_.Of(t).work;
  if (work != nullptr && multiplies == !work->products.empty()) {
    const DType format = work->dtype == DType::kUnknown ? DType::kFp32 : work->dtype;
    const double rate = RateFor(*kernel.device, format, false);
    kernel.demand.arithmetic = rate > 0 ? work->flops / (rate * 1e12) : 0;
    kernel.demand.memory = work->Bytes(format) / kernel.device->SustainedBandwidth();
    kernel.by_shapes = kernel.demand.arithmetic + kernel.demand.memory > 0;
  }
  if (!kernel.by_shapes) {
    kernel.demand.arithmetic = multiplies ? 1 : 0;
    kernel.demand.memory = multiplies ? 0 : 1;
  }
  return kernel;
}

}  // namespace daydream
