#include "transforms/parallel/network_speed.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "costmodel/network/collective_time.h"
#include "transforms/parallel/contention.h"
#include "transforms/parallel/fabric_choice.h"
#include "transforms/parallel/transfers.h"

namespace daydream {
namespace {

absl::Status NoLevel(std::string what, std::string why) {
  return MakeStatus(
      absl::StatusCode::kFailedPrecondition,
      {.code = "E0825",
       .what = std::move(what),
       .why = std::move(why),
       .fix = "fabric=NAME and one of its levels: `daydream fabric show NAME --text`"});
}

absl::Status ChangeLevel(Editor& edit, const Params& params, double rate, double latency) {
  Fabric before;
  if (!params.text("fabric").empty()) {
    DD_ASSIGN_OR_RETURN(before, ChooseFabric(params.text("fabric")));
  } else if (edit.model_changes().fabric != nullptr) {
    before = *edit.model_changes().fabric;
  } else {
    return NoLevel("the levels of the network are not known", "level= names one of a fabric");
  }
  Fabric after = before;
  std::string names;
  bool found = false;
  for (FabricLevel& level : after.levels) {
    names += (names.empty() ? "" : ", ") + level.name;
    if (level.name != params.text("level")) continue;
    level.rate_factor *= rate;
    level.latency_factor *= latency;
    found = true;
  }
  if (!found) {
    return NoLevel(fmt::format("{} has no level '{}'", before.name, params.text("level")),
                   fmt::format("its levels are {}", names));
  }
  const RankCollectives collectives = CollectivesOf(edit.graph());
  std::map<std::tuple<CollectiveKind, uint64_t, int>, double> ratios;
  for (const RankCollective& c : collectives.all) {
    const int ranks = std::max(2, collectives.communicators[c.communicator].size);
    const auto [ratio, fresh] = ratios.try_emplace(std::tuple(c.kind, c.bytes, ranks), 1.0);
    if (!fresh || c.bytes == 0) continue;
    const CollectiveShape shape{
        .kind = c.kind, .bytes = static_cast<double>(c.bytes), .ranks = ranks};
    DD_ASSIGN_OR_RETURN(const CollectiveTime was, TimeOfCollective(before, shape));
    DD_ASSIGN_OR_RETURN(const CollectiveTime is, TimeOfCollective(after, shape));
    if (was.us > 0) ratio->second = is.us / was.us;
  }
  edit.model_changes().fabric = std::make_shared<const Fabric>(std::move(after));
  RetimeTransfers(edit, collectives, [&](const RankCollective& c, Duration transfer) {
    const int ranks = std::max(2, collectives.communicators[c.communicator].size);
    return transfer.Scaled(ratios.at(std::tuple(c.kind, c.bytes, ranks)));
  });
  return absl::OkStatus();
}

void ChangeAll(Editor& edit, double rate, double latency) {
  const RankCollectives collectives = CollectivesOf(edit.graph());
  const SizeCurve curve = TransfersBySize(edit.graph(), collectives);
  RetimeTransfers(edit, collectives, [&](const RankCollective& c, Duration transfer) {
    const double bytes = static_cast<double>(c.bytes), whole = curve.Smooth(bytes);
    if (!(whole > 0)) return transfer;
    const double carried = curve.us_per_byte * bytes;
    return transfer.Scaled((carried / rate + (whole - carried) * latency) / whole);
  });
}

}  // namespace

absl::Status ChangeSpeed(Editor& edit, const Params& params, double rate, double latency) {
  const bool shared = UnshareGpu(edit);
  if (params.given("level")) {
    DD_RETURN_IF_ERROR(ChangeLevel(edit, params, rate, latency));
  } else {
    ChangeAll(edit, rate, latency);
  }
  if (shared) ShareAgain(edit);
  return absl::OkStatus();
}

}  // namespace daydream
