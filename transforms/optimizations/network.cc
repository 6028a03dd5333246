// network: the collectives of this run on another fabric.
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/parallel/fabric_choice.h"
#include "transforms/parallel/network_speed.h"

namespace daydream {
namespace {

constexpr ParamSpec kNetworkParams[] = {
    {.name = "fabric",
     .unit = Unit::kText,
     .help = "one of `daydream fabric list`, or a file",
     .source = "chosen by the user",
     .required = true},
    {.name = "nodes",
     .max = 1 << 20,
     .help = "machines that a group is spread over; 0: as few as it fits on",
     .source = "chosen by the user",
     .whole = true},
};

absl::Status RunNetwork(const Params& params, Editor& edit) {
  DD_ASSIGN_OR_RETURN(const Fabric fabric, ChooseFabric(params.text("fabric")));
  edit.BeginCause(fmt::format("transfers as on {}", fabric.Title()));
  return ChangeNetwork(edit, fabric, static_cast<int>(params["nodes"]));
}

}  // namespace

constinit const Transform kNetwork = {
    .name = "network",
    .summary = "The collectives run on another network",
    .params = kNetworkParams,
    .apply = &RunNetwork,
    .model =
        "Each transfer takes what the fabric says for its kind, size and number of ranks: a "
        "measured curve where there is one, else one derived from another number of ranks or "
        "another collective (daydream fabric show). Waiting for other ranks stays, unless ranks "
        "are played together.",
    .ignores =
        "Recorded compute that shares the GPU with a collective keeps its time; sharing of links "
        "between groups.",
    .sources = "sweeps of nccl-tests and rccl-tests that others published: docs/ranks.md",
    .advice = {.effort = "another network", .risk = "cost", .how = {}},
    .memory = MemoryEffect::kNone,
    .memory_model = "None: only times change.",
};

}  // namespace daydream
