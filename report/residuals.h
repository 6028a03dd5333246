// What is known about the errors of predictions: measured pairs by optimization, how much the same
// program differs from run to run, and which kernels a model was ever compared with.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace daydream {

// One row of docs/accuracy.md, in ms per step. tests/accuracy fails when it is stale.
struct Residual {
  std::string_view transform;  // the only one of its scenario
  std::string_view row;
  double before, predicted, measured;
};
std::span<const Residual> Residuals();

// How far off the change of the step by one optimization is expected to be, as a share of it.
struct ModelError {
  double sigma = 0;
  size_t rows = 0;  // measured pairs behind it; 0: the prior alone
};

// The prior counts as two rows: sigma^2 = (2 prior^2 + sum of errors^2) / (2 + rows), widened to
// the normal error with the same 90 % as Student's t of 2 + rows degrees of freedom: so few rows
// say little about sigma itself. A kind that was never checked is the least sure: 1.78 times the
// prior. Rows whose change is less than three times what runs differ by tell nothing about it and
// do not count. `left_out` (a row's name) is not used: no row is judged by itself.
ModelError ModelErrorOf(std::string_view transform, std::string_view left_out = {});

// "2 measured pairs, the step off by 0.2 % to 3.5 %", or that it was never checked.
std::string CheckedText(std::string_view transform);

// What the user states himself has no model that could be wrong.
bool StatedByUser(std::string_view transform);

// Largest errors published for such predictions: 13 % of the measured step (Daydream, ATC'20, for
// mixed precision and fused optimizers) where up to two fifths of the time were saved: 0.13 * 0.6 /
// 0.4 of the change, taken as the end of 90 %.
inline constexpr double kPriorModelError = 0.13 * 0.6 / 0.4 / 1.645;
inline constexpr double kPriorRows = 2;

// The same program recorded twice: 152.3 and 152.8 ms, 116.8 and 122.2 ms (ResNet-50 on a V100, the
// loader pairs of docs/accuracy.md). Root mean square of the two differences over sqrt(2), n = 2.
inline constexpr double kRunToRun = 0.0226;

// Kernels whose new times under `transform` were compared with measured ones.
struct CheckedKernels {
  std::string_view transform;
  std::string_view kernel_class;  // as in `summary --by class`; empty: all
  std::string_view source;
};
std::span<const CheckedKernels> AllCheckedKernels();
bool WasChecked(std::string_view transform, std::string_view kernel_class);

}  // namespace daydream
