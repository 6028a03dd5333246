// Two recordings compared, step by step against the noise of the steps.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/build.h"
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
  DiffRow step;               // recorded periods
  std::vector<DiffRow> rows;  // GPU time per step by group; largest change first, then by name
};

// Uses recorded times only; nothing is simulated.
Diff Compare(const BuiltGraph& before, const BuiltGraph& after, GroupBy by);

// Two-sided p-value of Welch's t-test for equal means. 1 when either sample has fewer than two
// values; 0 or 1 when neither varies.
double WelchP(std::span<const double> a, std::span<const double> b);

}  // namespace daydream
