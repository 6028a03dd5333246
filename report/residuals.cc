#include "report/residuals.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "report/format.h"

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

// The end of 90 % in standard deviations: of a normal distribution, and of Student's t with 2 to 10
// degrees of freedom (any table of it).
constexpr double kNormal = 1.645;
constexpr double kStudent[] = {2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812};

double StudentOf(double freedom) {
  const auto place = static_cast<size_t>(freedom - 2);
  // First terms of its expansion around the normal distribution.
  return place < std::size(kStudent) ? kStudent[place]
                                     : kNormal + (std::pow(kNormal, 3) + kNormal) / (4 * freedom);
}

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
  const double freedom = kPriorRows + static_cast<double>(rows);
  return {std::sqrt(sum / freedom) * StudentOf(freedom) / kNormal, rows};
}

std::string CheckedText(std::string_view transform) {
  size_t rows = 0;
  double least = 0, most = 0;
  for (const Residual& r : kResiduals) {
    if (r.transform != transform) continue;
    const double off = std::fabs(r.predicted / r.measured - 1);
    least = rows == 0 ? off : std::min(least, off);
    most = std::max(most, off);
    ++rows;
  }
  if (rows == 0) {
    return "never checked: no recorded pair of before and after; intervals use the errors that are "
           "published for such predictions";
  }
  const std::string range =
      rows == 1 ? FormatPercent(most) : FormatPercent(least) + " to " + FormatPercent(most);
  const bool tells = ModelErrorOf(transform).rows > 0;
  return fmt::format("{} of before and after (docs/accuracy.md): the step was off by {}{}",
                     Plural(rows, "recorded pair"), range,
                     tells ? "" : "; too small a change to say how well it is modelled");
}

bool StatedByUser(std::string_view transform) {
  return transform == "speedup" || transform == "remove";
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
