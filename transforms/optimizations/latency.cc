// latency: the part of a transfer that does not depend on its size.
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/parallel/network_speed.h"

namespace daydream {
namespace {

constexpr ParamSpec kLatencyParams[] = {
    {.name = "by",
     .unit = Unit::kFactor,
     .fallback = 2,
     .max = 1e6,
     .help = "times as long: x2 doubles the time, x0.5 halves it",
     .source = "chosen by the user"},
    kLevelParam,
    kLevelFabricParam,
};

absl::Status RunLatency(const Params& params, Editor& edit) {
  edit.BeginCause("the network answers at another speed");
  return ChangeSpeed(edit, params, 1, params["by"]);
}

}  // namespace

constinit const Transform kLatency = {
    .name = "latency",
    .summary = "The network takes another time for an empty message",
    .params = kLatencyParams,
    .stated_by_user = true,
    .apply = &RunLatency,
    .model =
        "The part of each transfer that does not grow in proportion to its bytes takes x times as "
        "long: a + g sqrt(S) of t = a + g sqrt(S) + S b, fitted to the transfers in the trace; 20 "
        "us where they have one size only. Waiting for other ranks is no transfer and stays.",
    .ignores = "That another algorithm may be chosen; sharing of links.",
    .sources = "as bandwidth: docs/ranks.md",
    .advice = {.effort = "another network", .risk = "cost", .how = {}},
    .twice = "",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: only times change.",
};

}  // namespace daydream
