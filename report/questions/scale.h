// From the trace of one GPU, or of several ranks, to the step of n that train together: a curve
// with intervals and the reason why it bends.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/build.h"
#include "transforms/core/editor.h"

namespace daydream {

struct ScaleOptions {
  std::string strategy;  // an optimization that takes (ranks, fabric=...): ddp, zero1, zero2
  std::string fabric;
  std::string more;  // further arguments of it: "bucket=50MB"
  std::string also;  // optimizations beside it: "powersgd(4)"
  // Relative standard deviation of the own work of ranks; none: that of the recorded ranks, where
  // there are several, else kUsualJitter (transforms/parallel/jitter.h).
  std::optional<double> jitter;
  bool fixed_global = false;  // n GPUs share the recorded batch, else each has one
  // Asked once `share` has come back: what it has not played by then is left out.
  std::function<bool()> stopped = {};
};

struct ScalePoint {
  int ranks = 1;
  absl::Status error;     // not OK: the rest is empty
  Duration alike;         // the step if all ranks were as the recorded one
  Duration step;          // with the slowest of n, in the mean
  Duration low, high;     // 80 %: what n draws give, of which the recorded rank is one, too
  double efficiency = 1;  // T(1) / T(n); of a fixed global batch T(1) / (n T(n))
  Duration exposed;       // communication a step that no other GPU work hides
  // What most of the step is: "compute", "host" (the GPU waits for its own host), "exposed
  // communication", "the slowest rank".
  std::string bound_by;
  // Where most of what it takes longer than one GPU comes from: "exposed communication", "the
  // slowest rank", "buckets and sharing the GPU"; empty: nowhere.
  std::string lost_to;
};

struct ScaleCurve {
  Duration one;                    // step of one GPU, alone
  double jitter = 0;               // as asked, or found
  std::vector<ScalePoint> points;  // those that were played
  size_t unplayed = 0;             // that are missing
  Changes changes;                 // what the last of them told
};

// Does `work(i)` for each i below `count`, each once, here or in another process that asks the
// same, and gives every result to `take`, one at a time, in any order.
using ScaleShare =
    std::function<absl::Status(size_t count, const std::function<std::string(size_t)>& work,
                               const std::function<absl::Status(const std::string&)>& take)>;

// `recorded`: ranks of one run, each of which stands for all; points are the mean. `ranks` in the
// order asked for; each from 1 on. Every point is a replay of its own, on `jobs` threads. Jitter:
// of n drawn speeds the slowest rank is played (report/questions/slowest_rank.h), and the step is
// the mean over the draws; where lanes may reorder, own work takes 1 + sd e(n), the largest of n
// normal draws in the mean. The interval of k recorded ranks is 1.28 sd sqrt(1/k +
// v(n)) of the own work to either side (transforms/parallel/jitter.h), together with 20 % of the
// exposed communication: 95 % of the sizes that built-in fabrics rest on are off by less
// (docs/ranks.md). `share`: who plays them; none: threads of this process. What it fails with comes
// back.
absl::StatusOr<ScaleCurve> ScaleOver(std::span<const BuiltGraph* const> recorded,
                                     std::span<const int> ranks, const ScaleOptions& options,
                                     unsigned jobs, const ScaleShare& share = nullptr);

}  // namespace daydream
