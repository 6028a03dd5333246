// blueconnect: an all-reduce in stages, one for each level of the network.
#include <algorithm>

#include "costmodel/network/collective_time.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/parallel/exchange.h"

namespace daydream {
namespace {

constexpr ParamSpec kBlueconnectParams[] = {kExchangeFabricParam};

// How ranks are spread: so many in a node, on so many nodes.
struct Layout {
  int inside = 1, nodes = 1;
};

absl::StatusOr<Duration> StageTime(const Fabric& fabric, CollectiveKind kind, double bytes,
                                   int ranks, int nodes, int sharing) {
  DD_ASSIGN_OR_RETURN(
      const CollectiveTime time,
      TimeOfCollective(
          fabric,
          {.kind = kind, .bytes = bytes, .ranks = ranks, .nodes = nodes, .sharing = sharing}));
  return Duration::FromDouble(time.us * 1e3);
}

// The collective that is there becomes the first stage; the others follow it on its stream.
absl::Status Split(Editor& edit, Exchanges& exchanges, const Exchange& e, Layout at) {
  const Fabric& fabric = *exchanges.fabric();
  const auto bytes = static_cast<double>(e.bytes);
  struct Stage {
    CollectiveKind kind;
    double bytes;
    int ranks, nodes, sharing;
    std::string_view group = {};
  };
  const Stage stages[] = {
      {CollectiveKind::kReduceScatter, bytes, at.inside, 1, 1},
      {CollectiveKind::kAllReduce, bytes / at.inside, at.nodes, at.nodes, at.inside,
       kOneOfEachNode},
      {CollectiveKind::kAllGather, bytes, at.inside, 1, 1},
  };
  const Duration whole = edit.graph().task(e.collective).duration;
  const Duration waits = whole - std::min(whole, edit.graph().Transfer(e.collective));
  TaskId last = e.collective;
  for (const Stage& s : stages) {
    DD_ASSIGN_OR_RETURN(const Duration time,
                        StageTime(fabric, s.kind, s.bytes, s.ranks, s.nodes, s.sharing));
    const CollectiveCall call{.kind = s.kind,
                              .bytes = static_cast<uint64_t>(s.bytes),
                              .ranks = s.ranks,
                              .step = e.step,
                              .group = s.group};
    if (&s == stages) {
      DescribeAs(edit, e.collective, call);
      edit.SetDuration(e.collective, waits + time);
      edit.SetTransfer(e.collective, time);
      edit.Rename(e.collective, "ncclDevKernel_ReduceScatter");
      continue;
    }
    last = AddCollective(
        edit, call,
        {.stream = edit.graph().task(last).lane, .call = e.call, .compute = {}, .after = last},
        time);
  }
  if (e.after.valid()) edit.AddEdge(last, e.after, {}, Rule::kEventWait);
  return absl::OkStatus();
}

absl::Status RunBlueconnect(const Params& params, Editor& edit) {
  edit.BeginCause("all-reduces in stages by level");
  DD_ASSIGN_OR_RETURN(Exchanges exchanges, Exchanges::Find(edit, params.text("fabric")));
  if (exchanges.fabric() == nullptr) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      {.code = "E0825",
                       .what = "the levels of the network are not known",
                       .why = "blueconnect gives each level of it a stage of its own",
                       .fix = "blueconnect(fabric=NAME): `daydream fabric list`, or a file"});
  }
  size_t flat = 0;
  const int node = exchanges.fabric()->NodeSize();
  for (const Exchange& e : exchanges.all) {
    const Layout at{std::min(node, e.ranks), (e.ranks + node - 1) / std::max(1, node)};
    if (at.nodes < 2 || at.inside < 2 || e.kind != CollectiveKind::kAllReduce) {
      ++flat;
      continue;
    }
    DD_RETURN_IF_ERROR(Split(edit, exchanges, e, at));
  }
  if (flat > 0) {
    edit.changes().notes.push_back(
        fmt::format("{} exchanges stay within one level of {}, or are no all-reduces", flat,
                    exchanges.fabric()->Title()));
  }
  exchanges.Finish();
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kBlueconnect = {
    .name = "blueconnect",
    .summary = "BlueConnect: all-reduces in stages, one for each level of the network",
    .params = kBlueconnectParams,
    .apply = &RunBlueconnect,
    .model =
        "Each all-reduce of S bytes over d GPUs a node becomes a reduce-scatter of S inside of the "
        "node, an all-reduce of S/d between nodes, which shares the NICs with those of the "
        "other d - 1 GPUs, and an all-gather of S inside of the node, one after the other on the "
        "stream that is there.",
    .ignores =
        "Stages of different buckets do not overlap, although they use different links. NCCL "
        "builds trees and hierarchies of its own, so compare with what the fabric says of its "
        "all-reduce, not with a flat ring.",
    .sources = "Cho et al. 2019 (BlueConnect, MLSys); fabrics: docs/ranks.md",
    .twice = "they have their stages already",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: parts of the buckets that are there are exchanged.",
};

}  // namespace daydream
