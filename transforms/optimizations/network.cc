// network: the collectives of this run on another fabric.
#include <map>

#include "costmodel/network/collective_time.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/parallel/fabric_choice.h"
#include "transforms/parallel/transfers.h"

namespace daydream {
namespace {

constexpr ParamSpec kParams[] = {
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

absl::Status Run(const Params& params, Editor& edit) {
  DD_ASSIGN_OR_RETURN(const Fabric fabric, ChooseFabric(params.text("fabric")));
  const RankCollectives collectives = CollectivesOf(edit.graph());
  std::map<std::tuple<CollectiveKind, uint64_t, int>, double> times;
  std::map<std::string, size_t> from;
  for (const RankCollective& c : collectives.all) {
    if (c.bytes == 0) continue;
    const int ranks = std::max(2, collectives.communicators[c.communicator].size);
    const auto [known, fresh] = times.try_emplace(std::tuple(c.kind, c.bytes, ranks), 0.0);
    if (!fresh) continue;
    DD_ASSIGN_OR_RETURN(const CollectiveTime time,
                        TimeOfCollective(fabric, {.kind = c.kind,
                                                  .bytes = static_cast<double>(c.bytes),
                                                  .ranks = ranks,
                                                  .nodes = static_cast<int>(params["nodes"])}));
    known->second = time.us;
    ++from[time.explained];
  }
  edit.BeginCause(fmt::format("transfers as on {}", fabric.name));
  RetimeTransfers(edit, collectives, [&](const RankCollective& c, Duration) {
    const int ranks = std::max(2, collectives.communicators[c.communicator].size);
    return Duration::FromDouble(times.at(std::tuple(c.kind, c.bytes, ranks)) * 1e3);
  });
  for (const auto& [text, count] : from) {
    edit.changes().notes.push_back(fmt::format("{}: {}", fabric.name, text));
  }
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kNetwork = {
    .name = "network",
    .summary = "The collectives run on another network",
    .params = kParams,
    .apply = &Run,
    .model =
        "Each transfer takes what the fabric says for its kind, size and number of ranks: a "
        "measured curve where there is one, else one derived from another number of ranks or "
        "another collective (daydream fabric show). Waiting for other ranks stays, unless ranks "
        "are played together.",
    .ignores =
        "Compute that shares the GPU with a collective keeps its time; sharing of links between "
        "groups.",
    .sources = "sweeps of nccl-tests and rccl-tests that others published: docs/ranks.md",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: only times change.",
};

}  // namespace daydream
