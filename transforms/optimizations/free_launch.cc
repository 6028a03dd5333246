// free-launch: the bound in which putting work on the GPU costs nothing.
#include <algorithm>

#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

absl::Status RunFreeLaunch(const Params&, Editor& edit) {
  edit.BeginCause("launches take no time");
  Graph& graph = edit.graph();
  for (size_t i = 0; i < graph.edges().size(); ++i) {
    const Edge& e = graph.edges()[i];
    if (e.rule != Rule::kLaunch || graph.task(e.to).removed) continue;
    edit.SetLag(i, std::min(e.lag, Duration{}));
    if (graph.task(e.from).duration > Duration{}) edit.SetDuration(e.from, {});
  }
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kFreeLaunch = {
    .name = "free-launch",
    .summary = "Launching GPU work takes no time",
    .bound = true,
    .apply = &RunFreeLaunch,
    .model =
        "Every API call that puts work on the GPU (kernel launches, copies, fills) takes no "
        "host time, and the work may start the moment the call is made.",
    .ignores = "The host time of the framework around the calls stays.",
    .sources = "a limit: follows from the graph alone",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: only times change.",
};

}  // namespace daydream
