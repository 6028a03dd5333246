// aot: graphs of a whole step (transforms/edits/capture.h) without the host work and the
// allocations of the framework.
#include "transforms/edits/capture.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr std::string_view kAotScopes[] = {"partial", "step"};
constexpr ParamSpec kAotParams[] = {
    {.name = "scope",
     .unit = Unit::kText,
     .text_fallback = "partial",
     .choices = kAotScopes,
     .help = "what one graph holds, as for graphs: all between two things that cannot be captured, "
             "or the whole step once what can leave it has left",
     .source = "chosen by the user"},
    kGraphLaunchParam,
    kGraphNodeParam,
    kGraphGapParam};

CaptureOptions AotOptions(const Params& params) {
  return {.scope = CaptureScopeOf(params),
          .launch = params["launch"],
          .per_node = params["per_node"],
          .gap = params["gap"],
          .ahead_of_time = true};
}

absl::Status RunAot(const Params& params, Editor& edit) {
  return CaptureLaunches(&AotOptions, params, edit);
}

}  // namespace

constinit const Transform kAot = {
    .name = "aot",
    .summary = "The step is scheduled ahead of time: launches and the framework's work are gone",
    .params = kAotParams,
    .ends = AtEnds::kGaps,
    .apply = &RunAot,
    .model =
        "As graphs, with what Nimble adds. Memory is reserved before the first step, so "
        "allocations are gone and split nothing. Runs of launches become one graph launch where "
        "that is cheaper; shorter ones keep their calls, but the host work between them is gone. "
        "The time of framework ops before and after each run is gone, too; the program's own "
        "time next to a border stays, since what it does there is not known, and so do ops that "
        "launch nothing between a launch and a copy to the GPU: they may make what is copied. "
        "Borders are waits, copies between host and GPU, collectives, graph launches that are "
        "there and fetches of a batch; with `scope=step` those leave the step that leave it for "
        "graphs.",
    .ignores =
        "The run before the first step, and whether shapes and control flow are the same in every "
        "step, which it takes for granted. Nimble's other half is multi-stream.",
    .sources =
        "Nimble (NeurIPS'20), section 4.1, ahead-of-time scheduling; CUDA C++ Programming "
        "Guide, CUDA Graphs",
    .advice = {.effort = "~50 lines",
               .risk = "fixed shapes, fixed control flow",
               .how = "capture the whole step with static inputs: torch.cuda.graph(g) around "
                      "forward, backward and optimizer(capturable=True)"},
    .twice = "the step is scheduled ahead of time already",
    .memory = MemoryEffect::kAdds,
    .memory_model =
        "As graphs: what a step copies to the GPU has a place of its own. What is reserved ahead "
        "of time is what the step needs at its peak.",
};

}  // namespace daydream
