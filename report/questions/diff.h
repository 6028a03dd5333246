// Two recordings compared, step by step against the noise of the steps.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/build.h"
#include "report/predict/what_if.h"
#include "report/summary.h"

namespace daydream {

struct DiffRow {
  std::string name;
  Duration before, after;  // mean over the steps
  // Probability of a difference this large if nothing had changed (Welch's t-test, two-sided);
  // 1 when there are too few steps to tell.
  double p = 1;
  bool added = false, gone = false;  // only in one of the two
};

struct Diff {
  size_t steps_before = 0, steps_after = 0;
  DiffRow step;
  std::vector<DiffRow> rows;  // GPU time per step by group; largest change first, then by name
};

// A recording and its steps, to be compared.
struct Compared {
  const BuiltGraph& built;
  std::vector<Duration> periods;  // of the steps that count
  Duration error;                 // standard error that all of them share
};
Compared AsRecorded(const BuiltGraph& built);
// Each step as all commands speak of it (ReplayCheck::step()): as recorded, less what its replay is
// shorter by now that stalls, or what recording cost, are taken out of `built`, as `replay` says.
// Where that leaves no step, as recorded. O(tasks + edges).
absl::StatusOr<Compared> AsSteady(const BuiltGraph& built, const ReplayCheck& replay);

// Groups as recorded; nothing is simulated.
Diff Compare(const Compared& before, const Compared& after, GroupBy by);

// Two-sided p-value of Welch's t-test for equal means. 1 when either sample has fewer than two
// values; 0 or 1 when neither varies. `shared`: variance of the difference of the means beyond that
// of the samples, known and not estimated from them.
double WelchP(std::span<const double> a, std::span<const double> b, double shared = 0);

}  // namespace daydream
