// roofline: the bound in which kernels reach the data sheet of the GPU.
#include <algorithm>

#include "transforms/analysis/roofline_times.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

absl::Status RunRoofline(const Params&, Editor& edit) {
  const Graph& graph = edit.graph();
  RooflineTimes times(graph);
  uint64_t known = 0, unknown = 0;
  Duration known_time, unknown_time;
  edit.BeginCause("kernels run at their roofline");
  for (TaskId t :
       edit.Select([](const Graph&g, TaskId id) { return g.task(id).kind == TaskKind::kKernel; })) {
    const Duration now = graph.task(t).duration;
    const std::optional<Duration> least = times.Of(t);
    ++(least ? known : unknown);
    (least ? known_time : unknown_time) += now;
    if (least) edit.SetDuration(t, *least);
  }
  edit.changes().notes.push_back(fmt::format(
      "{} kernels ({:.0f} % of kernel time) have a known roofline; {} others stay as they are",
      known, 100.0 * known_time.seconds() / std::max(1e-12, (known_time + unknown_time).seconds()),
      unknown));
  if (known == 0) {
    edit.changes().notes.push_back("shapes of ops (record_shapes=True) and a known GPU are needed");
  }
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kRoofline = {
    .name = "roofline",
    .summary = "Every kernel runs as fast as the GPU's data sheet allows",
    .bound = true,
    .apply = &RunRoofline,
    .model =
        "Kernels of ops with recorded shapes take the larger of their arithmetic at the "
        "peak rate of their format and their bytes, each touched once, at the peak "
        "bandwidth of the recorded GPU. Kernels of other ops stay as they are, and are "
        "counted.",
    .ignores =
        "Fusion, which would need fewer bytes; other formats; forward convolutions, whose "
        "stride is not recorded.",
    .sources =
        "Williams, Waterman, Patterson: Roofline (CACM 2009); data sheets: "
        "docs/cost-model.md",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: only times change.",
};

}  // namespace daydream
