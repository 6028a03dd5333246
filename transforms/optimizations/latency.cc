// latency: the part of a transfer that does not depend on its size.
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/parallel/contention.h"
#include "transforms/parallel/level_change.h"
#include "transforms/parallel/transfers.h"

namespace daydream {
namespace {

constexpr ParamSpec kParams[] = {
    {.name = "by",
     .unit = Unit::kFactor,
     .fallback = 2,
     .low = 2,
     .high = 2,
     .min = 0,
     .max = 1e6,
     .help = "times as long: x2 doubles the time, x0.5 halves it",
     .source = "chosen by the user"},
    kLevelParam,
    kLevelFabricParam,
};

absl::Status Run(const Params& params, Editor& edit) {
  edit.BeginCause("the network answers at another speed");
  const bool shared = UnshareGpu(edit);
  if (params.given("level")) {
    DD_RETURN_IF_ERROR(ChangeLevel(edit, params, 1, params["by"]));
    if (shared) ShareAgain(edit);
    return absl::OkStatus();
  }
  const RankCollectives collectives = CollectivesOf(edit.graph());
  const SizeCurve curve = TransfersBySize(edit.graph(), collectives);
  RetimeTransfers(edit, collectives, [&](const RankCollective& c, Duration transfer) {
    const double bytes = static_cast<double>(c.bytes), whole = curve.Smooth(bytes);
    if (!(whole > 0)) return transfer;
    const double carried = curve.us_per_byte * bytes;
    return transfer.Scaled((carried + (whole - carried) * params["by"]) / whole);
  });
  if (shared) ShareAgain(edit);
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kLatency = {
    .name = "latency",
    .summary = "The network takes another time for an empty message",
    .params = kParams,
    .stated_by_user = true,
    .apply = &Run,
    .model =
        "The part of each transfer that does not grow in proportion to its bytes takes x times as "
        "long: a + g sqrt(S) of t = a + g sqrt(S) + S b, fitted to the transfers in the trace; 20 "
        "us where they have one size only. Waiting for other ranks is no transfer and stays.",
    .ignores = "That another algorithm may be chosen; sharing of links.",
    .sources = "as bandwidth: docs/ranks.md",
    .twice = "",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: only times change.",
};

}  // namespace daydream
