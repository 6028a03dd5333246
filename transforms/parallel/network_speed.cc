#include "transforms/parallel/network_speed.h"

#include <algorithm>
#include <cmath>
#include <functional>
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

// Of an empty message, which those wait for who wait for a slice.
void SetLatencies(Editor& edit, const std::function<Duration(TaskId slice, Duration lag)>& lag) {
  const Graph& graph = edit.graph();
  for (size_t i = 0; i < graph.edges().size(); ++i) {
    const Edge e = graph.edges()[i];
    const Task& from = graph.task(e.from);
    const bool leaves = !from.removed && from.lane != graph.task(e.to).lane;
    if (leaves && IsSlice(graph, e.from)) edit.SetLag(i, lag(e.from, e.lag));
  }
}

absl::Status NoLevel(std::string what, std::string why) {
  return MakeStatus(
      absl::StatusCode::kFailedPrecondition,
      {.code = "E0825",
       .what = std::move(what),
       .why = std::move(why),
       .fix = "fabric=NAME and one of its levels: `daydream fabric show NAME --text`"});
}

// All transfers of a graph, from one fabric to another.
class Mover {
 public:
  Mover(Editor& edit, const Fabric& after, int nodes)
      : edit_(edit), collectives_(CollectivesOf(edit.graph())), after_(after), nodes_(nodes) {}

  // What transforms added, and with `all` what was recorded, too, changes as the time of `before`
  // does; the rest takes what the fabric says.
  absl::Status Run(const Fabric* before, bool all) {
    std::map<TaskId, double> was;  // microseconds
    for (const RankCollective& c : collectives_.all) {
      const bool added = edit_.graph().task(c.task).event == Id<void>::kNoneValue;
      if (c.bytes == 0) continue;
      DD_ASSIGN_OR_RETURN(is_[c.task], TimeOn(after_, c, nodes_, true));
      if (before == nullptr || !(all || added)) continue;
      DD_ASSIGN_OR_RETURN(was[c.task], TimeOn(*before, c, 0, false));
    }
    RetimeTransfers(edit_, collectives_, [&](const RankCollective& c, Duration transfer) {
      const auto known = was.find(c.task);
      const double us = is_.at(c.task);
      if (known == was.end() || known->second <= 0) return Duration::FromDouble(us * 1e3);
      return transfer.Scaled(us / known->second);
    });
    SetLatencies(edit_, [&](TaskId slice, Duration) { return latency_.at(slice); });
    edit_.model_changes().fabric = std::make_shared<const Fabric>(after_);
    return absl::OkStatus();
  }

  const TimesFrom& from() const { return from_; }

 private:
  absl::StatusOr<double> TimeOn(const Fabric& fabric, const RankCollective& c, int nodes,
                                bool last) {
    const RankCommunicator& group = collectives_.communicators[c.communicator];
    CollectiveShape shape{.kind = c.kind,
                          .bytes = static_cast<double>(c.bytes),
                          .ranks = std::max(2, group.size),
                          .nodes = nodes};
    if (group.name == kOneOfEachNode) {
      shape.nodes = shape.ranks;
      shape.sharing = fabric.NodeSize();
    }
    const bool slice = IsSlice(edit_.graph(), c.task);
    const auto key = std::tuple(&fabric, c.kind, slice ? 0 : c.bytes, shape.ranks, shape.nodes);
    auto known = times_.find(key);
    if (known == times_.end()) {
      Time time;
      if (slice) {
        DD_ASSIGN_OR_RETURN(time.slices, MeasureLongMessages([&](double bytes) {
                              shape.bytes = bytes;
                              return Plain(fabric, shape, last);
                            }));
      } else {
        DD_ASSIGN_OR_RETURN(const CollectiveTime one, TimeOfCollective(fabric, shape));
        time.us = one.us;
        if (last) from_.Add(one);
      }
      known = times_.emplace(key, time).first;
    }
    if (!slice) return known->second.us;
    if (last) latency_[c.task] = known->second.slices.latency;
    return static_cast<double>(c.bytes) * known->second.slices.ns_per_byte / 1e3;
  }

  absl::StatusOr<Duration> Plain(const Fabric& fabric, const CollectiveShape& shape, bool last) {
    DD_ASSIGN_OR_RETURN(const CollectiveTime time, TimeOfCollective(fabric, shape));
    if (last) from_.Add(time);
    return Duration::FromDouble(time.us * 1e3);
  }

  struct Time {
    double us = 0;
    LongMessages slices;
  };
  Editor& edit_;
  const RankCollectives collectives_;
  const Fabric after_;
  const int nodes_;
  std::map<std::tuple<const Fabric*, CollectiveKind, uint64_t, int, int>, Time> times_;
  std::map<TaskId, double> is_;
  std::map<TaskId, Duration> latency_;
  TimesFrom from_;
};

absl::Status ChangeFabric(Editor& edit, const Params& params, const Fabric& before, double rate,
                          double latency) {
  Fabric after = before;
  std::string names;
  bool found = !params.given("level");
  for (FabricLevel& level : after.levels) {
    names += (names.empty() ? "" : ", ") + level.name;
    if (params.given("level") && level.name != params.text("level")) continue;
    level.rate_factor *= rate;
    level.latency_factor *= latency;
    found = true;
  }
  if (!found) {
    return NoLevel(fmt::format("{} has no level '{}'", before.Title(), params.text("level")),
                   fmt::format("its levels are {}", names));
  }
  return Mover(edit, after, 0).Run(&before, true);
}

void ChangeAll(Editor& edit, double rate, double latency) {
  const RankCollectives collectives = CollectivesOf(edit.graph());
  const SizeCurve curve = TransfersBySize(edit.graph(), collectives);
  RetimeTransfers(edit, collectives, [&](const RankCollective& c, Duration transfer) {
    if (IsSlice(edit.graph(), c.task)) return transfer.Scaled(1 / rate);
    const double bytes = static_cast<double>(c.bytes), whole = curve.Smooth(bytes);
    if (!(whole > 0)) return transfer;
    // Where nothing grows in proportion to the bytes, what grows with their root is carried.
    const double carried =
        curve.us_per_byte > 0 ? curve.us_per_byte * bytes : curve.g_us * std::sqrt(bytes);
    return transfer.Scaled((carried / rate + (whole - carried) * latency) / whole);
  });
  SetLatencies(edit, [&](TaskId, Duration lag) { return lag.Scaled(latency); });
}

}  // namespace

absl::Status ChangeSpeed(Editor& edit, const Params& params, double rate, double latency) {
  std::shared_ptr<const Fabric> known = edit.model_changes().fabric;
  if (!params.text("fabric").empty()) {
    DD_ASSIGN_OR_RETURN(Fabric chosen, ChooseFabric(params.text("fabric")));
    known = std::make_shared<const Fabric>(std::move(chosen));
  }
  if (known == nullptr && params.given("level")) {
    return NoLevel("the levels of the network are not known", "level= names one of a fabric");
  }
  const bool shared = UnshareGpu(edit);
  if (known != nullptr) {
    DD_RETURN_IF_ERROR(ChangeFabric(edit, params, *known, rate, latency));
  } else {
    ChangeAll(edit, rate, latency);
  }
  if (shared) ShareAgain(edit);
  return absl::OkStatus();
}

absl::Status ChangeNetwork(Editor& edit, const Fabric& fabric, int nodes) {
  const bool shared = UnshareGpu(edit);
  const std::shared_ptr<const Fabric> before = edit.model_changes().fabric;
  Mover mover(edit, fabric, nodes);
  DD_RETURN_IF_ERROR(mover.Run(before.get(), false));
  for (const std::string& text : mover.from().Lines()) {
    edit.changes().notes.push_back(fmt::format("{}: {}", fabric.Title(), text));
  }
  if (shared) ShareAgain(edit);
  return absl::OkStatus();
}

}  // namespace daydream
