// share: times all kernels for a part of the GPU's multiprocessors.
#include <algorithm>

#include "transforms/analysis/kernel_share.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr ParamSpec kShareParams[] = {
    {.name = "part",
     .unit = Unit::kShare,
     .fallback = 1,
     .min = 0.001,
     .max = 1,
     .help = "share of the multiprocessors: CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, or a green context",
     .source = "chosen by the user",
     .required = true},
    {.name = "bandwidth",
     .unit = Unit::kShare,
     .fallback = 1,
     .min = 0.001,
     .max = 1,
     .help = "share of the memory bandwidth: all of it under MPS while nobody else runs, a slice "
             "under MIG",
     .source = "chosen by the user"},
    kSaturationParam,
};

struct Seen {
  uint64_t kernels = 0, unknown = 0;
  Duration time, by_launch, by_shapes;
};

std::string Percent(Duration part, Duration whole) {
  return fmt::format("{:.0f} %", whole.ns > 0 ? 100 * part.seconds() / whole.seconds() : 0.0);
}

void TellShare(const Seen& seen, int processors, const DeviceSpec* device, Changes& changes) {
  if (seen.kernels == 0) {
    changes.notes.push_back("the GPU is not known, or there are no kernels");
    return;
  }
  changes.notes.push_back(fmt::format("{} of {} multiprocessors of {}", processors,
                                      device->multiprocessors, device->name));
  changes.notes.push_back(fmt::format(
      "{} of kernel time by blocks of the launch, the rest divides evenly; arithmetic and bytes "
      "known for {}, by class for the rest",
      Percent(seen.by_launch, seen.time), Percent(seen.by_shapes, seen.time)));
  if (seen.unknown > 0) {
    changes.warnings.push_back(
        fmt::format("{} kernels of a GPU that is not known stay as they are", seen.unknown));
  }
}

absl::Status RunShare(const Params& params, Editor& edit) {
  const Graph& graph = edit.graph();
  KernelDemands demands(graph);
  const ShareRules rules{.saturation = params["saturation"], .bandwidth = params["bandwidth"]};
  Seen seen;
  const DeviceSpec* device = nullptr;
  edit.BeginCause("kernels have fewer multiprocessors");
  for (TaskId t :
       edit.Select([](const Graph&g, TaskId id) { return g.task(id).kind == TaskKind::kKernel; })) {
    const auto kernel = demands.Of(t);
    if (!kernel) {
      ++seen.unknown;
      continue;
    }
    device = kernel->device;
    const Duration time = graph.task(t).duration;
    ++seen.kernels;
    seen.time += time;
    if (kernel->by_launch) seen.by_launch += time;
    if (kernel->by_shapes) seen.by_shapes += time;
    edit.SetDuration(
        t, time.Scaled(ShareSlowdown(*kernel->device, kernel->demand, params["part"], rules)));
  }
  TellShare(seen, device == nullptr ? 0 : MultiprocessorsIn(*device, params["part"]), device,
            edit.changes());
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kShare = {
    .name = "share",
    .summary = "The program has a share of the GPU's multiprocessors (MPS, green contexts)",
    .params = kShareParams,
    .apply = &RunShare,
    .model =
        "Each kernel takes its recorded time, times what the cost model says of the share "
        "against the whole GPU. Arithmetic: the busiest multiprocessor has ceil(blocks / "
        "multiprocessors) blocks of the recorded grid, as many at once as its threads, "
        "registers and shared memory hold; fewer warps than fill its pipelines (16) cost no "
        "less than one block. Memory: bandwidth in proportion to the multiprocessors that "
        "work, until `saturation` of them draw all of it. The longer of both counts. The host, "
        "copies and collectives stay as they are.",
    .ignores =
        "The L2 cache, which is not divided; clocks that rise when less of the chip is busy; "
        "kernels that choose their grid by the number of multiprocessors; other programs on the "
        "rest of the GPU (colocate).",
    .sources =
        "Dhakal et al., Spatial Sharing of GPU for Autotuning DNN models (arXiv 2008.03602) and "
        "D-STACK (arXiv 2304.13541) for the knee; CUDA C++ Programming Guide, 5.2.3, for the "
        "warps that fill a multiprocessor",
    .advice = {.effort = "1 variable",
               .risk = "none",
               .how = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50, with nvidia-cuda-mps-control running"},
    .twice = "a program has one share of the GPU",
    .memory = MemoryEffect::kNone,
    .memory_model =
        "None for this program; it says nothing of the memory that its neighbours take.",
};

}  // namespace daydream
