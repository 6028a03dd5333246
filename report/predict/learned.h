// What predictions on this machine were off by: rows kept by `whatif --learn`, used by `--learned`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace daydream {

// One prediction that was measured afterwards. Times are per step.
struct LearnedRow {
  std::string opts;    // LearnedName() of the scenario: "amp+fuse(what=optimizer)"
  std::string device;  // name of the first GPU; may be empty
  Duration before, predicted, measured;  // `predicted` without any learned correction
  std::string source;                    // file of the measured trace
};

// First line of such a file; a file that is new begins with it.
inline constexpr std::string_view kLearnedHeader = "daydream-learned 1";
// One line, without its end: fields between tabs.
std::string FormatLearnedRow(const LearnedRow& row);
// Of several rows about one pair of recordings the last one stays: the same measurement said twice
// is no second one. InvalidArgument (E0110) names the line. Empty lines and lines that begin with #
// are skipped.
absl::StatusOr<std::vector<LearnedRow>> ParseLearned(std::string_view text, std::string_view file);

// What the rows of the same optimizations on the same device say together. With the errors
// r = measured / predicted - 1 of n rows:
//   correction = sum(r) / (n + 2)                      of the step
//   sigma^2 = (2 prior^2 + sum((r - correction)^2)) / (2 + n)
// so that nothing learned counts as two rows without error, as wide as `prior`, the share of the
// step that the prediction would be unsure by without them. Sigma is no larger than that unless an
// error was: more than 1.645 prior, the end of 90 %.
struct Correction {
  size_t rows = 0;
  double share = 0, sigma = 0;
};
Correction CorrectionFor(std::span<const LearnedRow> rows, std::string_view opts,
                         std::string_view device, double prior);

}  // namespace daydream
