// graphs: the launches of a step become CUDA graphs (transforms/edits/capture.h).
#include "transforms/edits/capture.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr std::string_view kGraphsScopes[] = {"partial", "step", "layer"};
constexpr ParamSpec kGraphsParams[] = {
    {.name = "scope",
     .unit = Unit::kText,
     .text_fallback = "partial",
     .choices = kGraphsScopes,
     .help = "what one graph holds: all between two things that cannot be captured, the whole "
             "step once what can leave it has left, or one direction of one layer",
     .source = "chosen by the user; PyTorch: torch.cuda.graph, torch.cuda.make_graphed_callables"},
    kGraphLaunchParam,
    kGraphNodeParam,
    kGraphGapParam,
    {.name = "entry",
     .unit = Unit::kDuration,
     .fallback = 90000,
     .low = 10000,
     .high = 360000,
     .max = 1e9,
     .help = "host time of the program to enter a graph: guards, inputs into their buffers",
     .source = "70 graph launches of a compiled recommender on an A100: least 41 us, median 91 us; "
               "the compiled region of a segmentation model 360 us; low end: one copied input, an "
               "op and its launch"},
    {.name = "min_nodes",
     .unit = Unit::kNone,
     .fallback = 0,
     .low = 0,
     .high = 0,
     .max = 1e6,
     .help =
         "runs of fewer launches stay as they are; 0: those stay for which a graph launch takes "
         "longer than what it replaces",
     .source = "chosen by the user: which runs are worth the work of capturing them is no doubt "
               "about what that brings",
     .whole = true},
    {.name = "depth",
     .unit = Unit::kNone,
     .fallback = 1,
     .min = 1,
     .max = 64,
     .help = "with scope=layer: how deep in the tree of modules; 1 = the outermost, deeper ones "
             "stand for those that have no such depth",
     .source = "chosen by the user",
     .whole = true},
};

CaptureOptions GraphsOptions(const Params& params) {
  return {.scope = CaptureScopeOf(params),
          .depth = static_cast<int>(params["depth"]),
          .launch = params["entry"] + params["launch"],
          .per_node = params["per_node"],
          .gap = params["gap"],
          .min_launches = static_cast<size_t>(params["min_nodes"])};
}

absl::Status RunGraphs(const Params& params, Editor& edit) {
  return CaptureLaunches(&GraphsOptions, params, edit);
}

constexpr Conflict kGraphsConflicts[] = {{"aot", "both say what launches the kernels"}};

}  // namespace

constinit const Transform kGraphs = {
    .name = "graphs",
    .summary = "CUDA graphs replay the launches of a step",
    .params = kGraphsParams,
    .ends = AtEnds::kGaps,
    .apply = &RunGraphs,
    .model =
        "Launches of a step that follow each other without a border become one graph launch where "
        "that is cheaper: its first call costs `entry`, `launch` and `per_node` for each node, the "
        "other calls and the host work between them are gone, and dead time between its kernels is "
        "at most `gap`. Borders stay where they are: calls that wait for the GPU, allocations, "
        "copies between host and GPU, collectives, graph launches that are there already, and "
        "fetches of a batch. With `scope=step` those that can leave the step do: waits come after "
        "the graph and wait for all of it, allocations are gone, copies and collectives are nodes; "
        "reads by which the program decides what to do, graphs that are there and fetches of a "
        "batch remain borders. With `scope=layer` a graph ends with its layer or direction, and "
        "the optimizer is not captured. A captured Adam or AdamW that goes over its "
        "parameters in a "
        "loop counts its steps on the GPU (capturable=True): 12 kernels more for each parameter, "
        "each as short as the shortest of the optimizer.",
    .ignores =
        "Capture itself, and whether the program can be captured at all: shapes that change from "
        "step to step, or host code that reads a value, forbid it. Both are named where the trace "
        "shows them. What capturable=True costs other optimizers, and foreach=True.",
    .sources =
        "CUDA C++ Programming Guide, CUDA Graphs; PyTorch documentation, CUDA semantics, "
        "CUDA Graphs, and torch/optim/adam.py; Nimble (NeurIPS'20)",
    .advice = {.effort = "~20 lines",
               .risk = "fixed shapes",
               .how = "g = torch.cuda.CUDAGraph(); with torch.cuda.graph(g): step(); "
                      "g.replay()"},
    .conflicts = kGraphsConflicts,
    .twice = "a graph cannot be captured into a graph",
    .memory = MemoryEffect::kAdds,
    .memory_model =
        "A graph reads its inputs from fixed places: at most as many bytes more as a step copies "
        "to the GPU, and with `scope=layer` as the first op of each layer and direction works on, "
        "the first of a step left out, at most as much as is on the GPU at the peak. Its private "
        "pool holds what the captured kernels need and gives nothing back to other work, so that "
        "the reserved memory, not the peak of tensors, grows beyond that.",
};

}  // namespace daydream
