// bandwidth: the network carries more, or less, bytes a second.
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/parallel/network_speed.h"

namespace daydream {
namespace {

constexpr ParamSpec kBandwidthParams[] = {
    {.name = "by",
     .unit = Unit::kFactor,
     .fallback = 2,
     .min = 1e-3,
     .max = 1e6,
     .help = "times as many bytes a second: x2 doubles the rate",
     .source = "chosen by the user"},
    kLevelParam,
    kLevelFabricParam,
};

absl::Status RunBandwidth(const Params& params, Editor& edit) {
  edit.BeginCause("the network carries more bytes a second");
  return ChangeSpeed(edit, params, params["by"], 1);
}

}  // namespace

constinit const Transform kBandwidth = {
    .name = "bandwidth",
    .summary = "The network carries more bytes a second",
    .params = kBandwidthParams,
    .stated_by_user = true,
    .apply = &RunBandwidth,
    .model =
        "The part of each transfer that grows with its bytes takes 1/x of its time. Which part "
        "that is, transfers of several sizes in the trace tell: t = a + g sqrt(S) + S b. Waiting "
        "for other ranks is no transfer and stays, unless ranks are played together.",
    .ignores = "That another algorithm may be chosen at another rate; sharing of links.",
    .sources = "Daydream (ATC'20), section 6.5, for collectives without the wait; docs/ranks.md",
    .advice = {.effort = "another network", .risk = "cost", .how = {}},
    .twice = "",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: only times change.",
};

}  // namespace daydream
