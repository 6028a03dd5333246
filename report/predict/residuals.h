// What is known about the errors of predictions: measured rows by kind of prediction, how much the
// same program differs from run to run, and which kernels a model was ever compared with.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace daydream {

// Rows of docs/accuracy.md that were predicted alike and may be wrong for one reason: the same
// program, the same network, the same GPU. tests/accuracy fails when they are stale.
struct ResidualGroup {
  std::string_view kind;   // an optimization; for other GPUs report/predict/error_kind.h
  std::string_view group;  // "to T4"
  // Of recordings of both sides; of steps put together from operators that were measured one by
  // one; of gains that were published, predicted from a trace of another program.
  size_t recorded = 0, composed = 0, published = 0;
  size_t inside = 0;                     // of the intervals that were predicted without this group
  double least = 0, most = 0;            // |predicted / measured - 1|
  std::initializer_list<double> errors;  // ErrorOf() of the rows that tell something, ascending

  size_t rows() const { return recorded + composed + published; }
};
std::span<const ResidualGroup> Residuals();
// The kind of gains that were predicted from the trace of another program: whatever they are of,
// they are as wrong as that, too, and say nothing about their own kind.
inline constexpr std::string_view kAnotherProgram = "another program";

// What the error of a prediction is a share of. A kind whose name begins with "gpu" times all work
// anew: 1. Others are as wrong as what they change: |ln(after / before)|, which for small changes
// is their share of the step.
double DoseOf(std::string_view kind, double before, double predicted);
// By how much the measured value is longer or shorter (1 = twice, or half), over the dose. Less
// than 0 where a row tells nothing: its change is less than three times what runs differ by.
double ErrorOf(std::string_view kind, double before, double predicted, double measured);

// Mean size of a normal error, in standard deviations: sqrt(2 / pi).
inline constexpr double kMeanOfNormal = 0.7979;

// How far off a prediction is expected to be, per dose.
struct ModelError {
  double sigma = 0;  // of the normal error with the same 90 %
  // Of the errors, each group counting the same. Where fewer than two groups are known no less than
  // the prior's.
  double mean = 0;
  size_t rows = 0;  // measured rows behind it; 0: the prior alone
};

// How alike the errors of one group are: the intraclass correlation, 0 to 1, by an analysis of
// variance (Donner, "A Review of Inference Procedures for the Intraclass Correlation Coefficient in
// the One-Way Random Effects Model", 1986). 1 where nothing can tell: one group, or one row each.
double AlikeInGroups(std::span<const ResidualGroup* const> groups);  // O(rows)
// As how many independent rows those of a group count (Kish, "Survey Sampling", 1965: the design
// effect): as one where they are all alike, as themselves where they are not at all.
double RowsThatCount(double rows, double alike);

// The size of error that nine rows in ten of another group stay below. Each known group counts as
// RowsThatCount(); two rows more stand for groups that are not known: their errors are
// Student's t, times the root mean square of what is known, of the groups and of the prior as two
// rows, with as many degrees of freedom as there are groups and two. The more groups agree, the
// less that matters; the errors of the rows themselves need no shape. A kind that was never checked
// has the prior alone, with a heavy tail. With each group counting once and the two at infinity
// this would be conformal prediction for groups (Dunn, Wasserman and Ramdas, "Distribution-Free
// Prediction Sets for Two-Layer Hierarchical Models", 2022), whose ranges end only with nine groups
// or more (docs/decisions/006-intervals-are-drawn.md). Groups of `left_out` are not used: no row is
// judged by its own kin. O(rows).
ModelError ModelErrorOf(std::string_view kind, std::span<const std::string> left_out = {});

// Rows of `kind`, each judged without its own group: how many are inside of their ranges, as in
// docs/accuracy.md.
struct HeldRows {
  size_t rows = 0, inside = 0;
  size_t groups = 0;  // those with rows that tell something
  double share = 1;   // inside, where each group counts the same; 1 without rows
};
HeldRows HeldRowsOf(std::string_view kind);  // O(groups)
// Of nine in ten that should be inside, at least so many must be for a range to be believed.
inline constexpr double kHeldWell = 0.80;

// "2 recorded pairs, 48 composed steps ...: off by 0.2 % to 3.5 %", or that it was never checked.
std::string CheckedText(std::string_view transform);

// Largest errors published for such predictions: 13 % of the measured step (Daydream, ATC'20, for
// mixed precision and fused optimizers) where up to two fifths of the time were saved, so where
// |ln(after / before)| was 0.51; taken as the end of 90 %. Of other GPUs: 11.8 % of the step on
// average (Habitat, ATC'21), times sqrt(pi / 2) to be a standard deviation.
inline constexpr double kPriorModelError = 0.13 / 0.51 / 1.645;
inline constexpr double kPriorGpuError = 0.118 * 1.2533;
// Both are of NVIDIA's cards with a power supply of their own. Beyond these ("gpu, other vendor",
// "gpu, slot-powered") a prediction is taken to be no better than a plain roofline: root mean
// square of its published errors on whole networks (NeuSight, ASPLOS'25: 40 on four GPUs, each GPU
// the same). None of the four is in a group of these kinds.
inline constexpr double kPriorFarGpuError = 0.36;

inline constexpr size_t kPriorGroups = 2;

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
