#include "report/residuals.h"

#include <cmath>

namespace daydream {
namespace {

#define RESIDUAL(transform, row, before, predicted, measured) \
  {transform, row, before, predicted, measured},
constexpr Residual kResiduals[] = {
#include "report/residuals.def"
};
#undef RESIDUAL

constexpr CheckedKernels kChecked[] = {
    {"amp", "gemm", "18 products of a ResNet-50 on a V100 (dPRO, MLSys'22)"},
    {"amp", "conv", "120 convolutions of a ResNet-50 on a V100 (dPRO, MLSys'22)"},
    {"prefetch", "", "two loader pairs of a ResNet-50 on a V100 (docs/accuracy.md)"},
    {"gpu", "conv", "a ResNet-50 on a V100 and an A100 (tests/other_gpu_test.cc)"},
    {"gpu", "norm", "a ResNet-50 on a V100 and an A100 (tests/other_gpu_test.cc)"},
    {"gpu", "elementwise", "a ResNet-50 on a V100 and an A100 (tests/other_gpu_test.cc)"},
    {"gpu", "gemm", "linear layers and bmm on 8 GPUs (NeuSight, ASPLOS'25; docs/cost-model.md)"},
    {"gpu", "softmax", "softmax on 7 GPUs (NeuSight, ASPLOS'25; docs/cost-model.md)"},
    {"pin-memory", "", "copies of 154 MB each way on an A100 (docs/accuracy.md)"},
};

}  // namespace

std::span<const Residual> Residuals() { return kResiduals; }
std::span<const CheckedKernels> AllCheckedKernels() { return kChecked; }

ModelError ModelErrorOf(std::string_view transform, std::string_view left_out) {
  double sum = kPriorRows * kPriorModelError * kPriorModelError;
  size_t rows = 0;
  for (const Residual& r : kResiduals) {
    if (r.transform != transform || r.row == left_out) continue;
    const double change = std::fabs(r.predicted - r.before);
    if (change < 3 * kRunToRun * r.predicted) continue;
    const double error = (r.measured - r.predicted) / change;
    sum += error * error;
    ++rows;
  }
  return {std::sqrt(sum / (kPriorRows + static_cast<double>(rows))), rows};
}

bool WasChecked(std::string_view transform, std::string_view kernel_class) {
  for (const CheckedKernels& c : kChecked) {
    if (c.transform == transform && (c.kernel_class.empty() || c.kernel_class == kernel_class)) {
      return true;
    }
  }
  return false;
}

}  // namespace daydream
