#include "report/questions/limit_findings.h"

#include <fmt/format.h>

#include "report/text/format.h"
#include "transforms/analysis/roofline_times.h"

namespace daydream {
namespace {

// Chosen: single kernels may reach their limit, as where a clock is above the data sheet's.
constexpr double kTooMuchAtLimit = 0.20;

}  // namespace

std::vector<Finding> FindingsOfLimits(const Graph& graph) {
  RooflineTimes limits(graph);
  Duration all, at_limit;
  size_t kernels = 0;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (t.removed || t.kind != TaskKind::kKernel || t.duration <= Duration{}) continue;
    all += t.duration;
    const auto least = limits.Of(TaskId(i));
    if (!least.has_value() || *least < t.duration) continue;
    at_limit += t.duration;
    ++kernels;
  }
  const double share = all.ns > 0 ? at_limit.seconds() / all.seconds() : 0;
  if (share < kTooMuchAtLimit) return {};
  return {{.kind = FindingKind::kTooFast,
           .about = About::kPredictions,
           .text = fmt::format("{} kernels, {} of the GPU time, take less than the data sheet of "
                               "the GPU allows for their shapes: shapes or times are not of this "
                               "run",
                               FormatCount(kernels), FormatPercent(share, 0)),
           .where = {},
           .time = {},
           .share = share,
           .fix = "use the execution trace of the same run with --shapes; times have to be in the "
                  "unit of their format"}};
}

}  // namespace daydream
