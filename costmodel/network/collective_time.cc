#include "costmodel/network/collective_time.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace daydream {
namespace {

// NCCL src/graph/tuning.cc (v2.2x): microseconds of the LL protocol, and of one hop over NVLink and
// over a network, for rings and trees.
constexpr double kRingBase = 6.6, kTreeBase = 6.8;
constexpr double kRingHop = 0.6, kTreeHop = 0.6, kRingNet = 2.7, kTreeNet = 5.0;
// Share of the wire that gathers of 2 x 8 GPUs reach, by NIC: 189 of 200 GB/s at 8 x 200 Gbit/s,
// 329 of 400 at 8 x 400; a good middle for others (sweeps h100-a3mega, h200-a3ultra;
// docs/ranks.md).
constexpr double kWireShare = 0.94, kFastWireShare = 0.82;
// All-to-all inside of a node, of the rate of a gather: nobody measured it here.
constexpr double kAllToAllShare = 0.8;

bool IsReduction(CollectiveKind kind) { return kind == CollectiveKind::kAllReduce; }

// Steps that each byte travels one after the other.
double Steps(CollectiveKind kind, int ranks) {
  const double n = ranks;
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * (n - 1);
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kSendRecv:
      return 1;
    default:
      return n - 1;
  }
}

// NCCL's own estimate of the time of an empty message: for ratios only.
double TunerLatency(CollectiveKind kind, int ranks, int nodes) {
  const double steps = Steps(kind, ranks);
  const double rounds = IsReduction(kind) ? 2.0 * (nodes - 1) : nodes - 1.0;
  const double across = nodes > 1 ? std::min(steps, std::max(1.0, rounds)) : 0;
  const double ring = kRingBase + (steps - across) * kRingHop + across * kRingNet;
  if (!IsReduction(kind)) return ring;
  const double per_node = static_cast<double>(ranks) / nodes;
  const double tree = kTreeBase + 2 * ((per_node - 1) * kTreeHop +
                                       std::log2(static_cast<double>(nodes)) * kTreeNet);
  return std::min(ring, tree);
}

// What the fat tree leaves of a NIC's rate: flows of a ring in the order of nodes leave a leaf
// once, those of an all-to-all with all that is elsewhere.
double LeafShare(const FabricLevel& level, CollectiveKind kind, int nodes) {
  const double over = level.oversubscription;
  if (level.topology != Topology::kFatTree || over <= 1) return 1;
  const double leaf = std::max(1, level.nodes_per_leaf);
  if (nodes <= leaf) return 1;
  if (kind == CollectiveKind::kAllToAll) return 1 / std::max(1.0, (1 - leaf / nodes) * over);
  return std::min(1.0, leaf / over);
}

// 10^9 bytes a second of bus bandwidth that the NICs of a node sustain; 0: not known.
double Wire(const FabricLevel& level) {
  return level.NodeWire() * (level.nic_gbits >= 400 ? kFastWireShare : kWireShare);
}

// The curve that is nearest in ranks, those of the wanted number of nodes first.
const FabricCurve* Nearest(std::span<const FabricCurve> curves, int ranks, int nodes) {
  const FabricCurve* best = nullptr;
  auto far = [&](const FabricCurve& c) {
    return std::pair(std::abs(c.nodes - nodes), std::abs(c.ranks - ranks));
  };
  for (const FabricCurve& c : curves) {
    if (best == nullptr || far(c) < far(*best)) best = &c;
  }
  return best;
}

// Bus bandwidth of long messages. All-reduces over two nodes may exceed the wire, as trees send
// each byte once each way: such a curve is never used for more nodes.
double BusRate(const Fabric& fabric, const FabricLevel& level, const FabricCurve* curve,
               const CollectiveShape& shape) {
  const bool across = shape.nodes > 1;
  double rate = curve != nullptr ? curve->bus_gbps
                : across         ? Wire(level)
                                 : level.gbps_per_rank * kWireShare;
  if (across) {
    const double wire = Wire(level);
    if (wire > 0 && (shape.nodes > 2 || curve == nullptr)) rate = std::min(rate, wire);
    rate *= LeafShare(level, shape.kind, shape.nodes) / std::max(1, shape.sharing);
    const FabricLevel& node = fabric.levels[0];
    const FabricCurve* inside =
        Nearest(!node.other.empty() ? node.other : node.all_reduce, node.size, 1);
    const double within = inside != nullptr ? inside->bus_gbps : node.gbps_per_rank * kWireShare;
    // A ring passes through the GPUs of a node; what was measured across nodes has that in it.
    if (curve == nullptr && node.size > 1 && within > 0) rate = std::min(rate, within);
  }
  return rate * level.rate_factor;
}

// Bytes over that rate, in microseconds.
double LongUs(const CollectiveShape& shape, double bus_gbps) {
  const double us = shape.bytes * BusFactor(shape.kind, shape.ranks) / (bus_gbps * 1e3);
  return shape.kind == CollectiveKind::kAllToAll && shape.nodes == 1 ? us / kAllToAllShare : us;
}

// Between nodes a rank's all-to-all sends what leaves the node over its share of the NICs.
double AllToAllAcross(const FabricLevel& level, const CollectiveShape& shape, double bus_gbps) {
  const double per_node = static_cast<double>(shape.ranks) / shape.nodes;
  const double wire = Wire(level) > 0 ? Wire(level) : bus_gbps;
  const double leaving = shape.bytes * (1 - 1.0 / shape.nodes);
  const double share = LeafShare(level, shape.kind, shape.nodes) / std::max(1, shape.sharing);
  return leaving / (wire * level.rate_factor * share / per_node * 1e3);
}

// "all_reduce measured at 16 ranks on 2"
std::string MeasuredAt(CollectiveKind kind, const FabricCurve& curve) {
  return fmt::format("{} {} at {} ranks on {}", CollectiveName(kind),
                     curve.measured() ? "measured" : "stated (not measured)", curve.ranks,
                     curve.nodes);
}

std::string SizeText(double bytes) {
  std::string_view unit = "B";
  for (std::string_view larger : {"kB", "MB", "GB", "TB"}) {
    if (bytes < 1000) break;
    bytes /= 1000, unit = larger;
  }
  return fmt::format("{:.4g} {}", bytes, unit);
}

// " (only 268.4 MB to 2.147 GB)", where a size beyond those measured is asked for.
std::string Beyond(const FabricCurve& curve, double bytes) {
  if (curve.Covers(bytes)) return {};
  return fmt::format(" (only {} to {})", SizeText(curve.from_bytes), SizeText(curve.to_bytes));
}

CollectiveTime Derived(const Fabric& fabric, const FabricLevel& level, const FabricCurve* curve,
                       CollectiveKind measured, const CollectiveShape& shape) {
  CollectiveTime time;
  const double bus = BusRate(fabric, level, curve, shape);
  const double here = TunerLatency(shape.kind, shape.ranks, shape.nodes);
  double a = here, g = 0;
  if (curve != nullptr) {
    const double ratio = here / TunerLatency(measured, curve->ranks, curve->nodes);
    a = curve->time.a_us * ratio;
    g = curve->time.g_us * std::sqrt(ratio);
    time.source = TimeSource::kFabric;
    time.explained = fmt::format("{}, for {} at {} on {}", MeasuredAt(measured, *curve),
                                 CollectiveName(shape.kind), shape.ranks, shape.nodes);
    // Trees send each byte once each way, so that two nodes can exceed the wire.
    if (IsReduction(measured) && curve->nodes == 2 && shape.nodes > 2 && Wire(level) <= 0) {
      time.explained += ": too fast if two nodes went beyond the NICs, whose rate is not known";
    }
    time.beyond = Beyond(*curve, shape.bytes);
  } else {
    time.source = TimeSource::kWire;
    time.explained = fmt::format("rates of {}, nothing was measured", level.name);
  }
  const bool spread = shape.kind == CollectiveKind::kAllToAll && shape.nodes > 1;
  time.us = (a + g * std::sqrt(shape.bytes)) * level.latency_factor +
            (spread ? AllToAllAcross(level, shape, bus) : LongUs(shape, bus));
  return time;
}

// Of a level without a rate: a sweep of several nodes says nothing of what stays in one.
absl::Status NothingKnown(const Fabric& fabric, const FabricLevel& level,
                          const CollectiveShape& shape) {
  std::string known;
  for (const FabricLevel& l : fabric.levels) {
    for (const auto* curves : {&l.all_reduce, &l.other}) {
      for (const FabricCurve& c : *curves) {
        known += fmt::format("{}{} ranks on {} nodes", known.empty() ? "" : ", ", c.ranks, c.nodes);
      }
    }
  }
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0823",
       .what = fmt::format("{} does not say what {} ranks on {} {} take", fabric.Title(),
                           shape.ranks, shape.nodes, shape.nodes == 1 ? "node" : "nodes"),
       .why = fmt::format("its level '{}' has no rate, only {} were measured", level.name, known),
       .fix = "a sweep on that many, or `gbps_per_rank: 300` or `use: \"nvlink3\"` "
              "in that level of the file"});
}

// The measured curve itself; edits change its two parts.
CollectiveTime Measured(const FabricLevel& level, const FabricCurve& curve,
                        const CollectiveShape& shape) {
  CollectiveTime time{.source = TimeSource::kFabric};
  if (curve.measured() && curve.Covers(shape.bytes)) {
    time.source = TimeSource::kSweep;
    time.error = curve.error;
  }
  const SizeCurve& c = curve.time;
  const double at = c.At(shape.bytes), smooth = c.Smooth(shape.bytes);
  const double part = c.us_per_byte * shape.bytes / level.rate_factor +
                      (smooth - c.us_per_byte * shape.bytes) * level.latency_factor;
  time.us = smooth > 0 ? at * part / smooth : at;
  time.explained = MeasuredAt(shape.kind, curve);
  time.beyond = Beyond(curve, shape.bytes);
  return time;
}

}  // namespace

std::string_view TimeSourceName(TimeSource source) {
  switch (source) {
    case TimeSource::kNothing:
      return "nothing";
    case TimeSource::kSweep:
      return "sweep";
    case TimeSource::kFabric:
      return "fabric";
    case TimeSource::kWire:
      return "formula";
    case TimeSource::kTrace:
      return "trace";
  }
  return "nothing";
}

void TimesFrom::Add(const CollectiveTime& time) {
  std::string& beyond = beyond_[time.explained];
  if (beyond.empty()) beyond = time.beyond;
}

std::vector<std::string> TimesFrom::Lines() const {
  std::vector<std::string> lines;
  for (const auto& [text, beyond] : beyond_) lines.push_back(text + beyond);
  return lines;
}

double BusFactor(CollectiveKind kind, int ranks) {
  if (ranks < 2) return 0;
  const double n = ranks;
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return (n - 1) / n;
    default:
      return 1;
  }
}

absl::StatusOr<CollectiveTime> TimeOfCollective(const Fabric& fabric,
                                                const CollectiveShape& asked) {
  CollectiveShape shape = asked;
  if (shape.ranks < 2) return CollectiveTime{.explained = "one rank sends nothing"};
  const int node = fabric.NodeSize();
  if (shape.nodes < 1) shape.nodes = (shape.ranks + node - 1) / node;
  shape.nodes = std::min(shape.nodes, shape.ranks);
  const FabricLevel* level = nullptr;
  double room = 1;  // ranks that a level and those below it hold
  for (const FabricLevel& l : fabric.levels) {
    room *= l.size > 0 ? l.size : 1e9;
    const bool inside = &l == &fabric.levels[0];
    if (room < shape.ranks || (inside && shape.nodes > 1)) continue;
    level = &l;
    break;
  }
  if (level == nullptr || (fabric.nodes > 0 && shape.nodes > fabric.nodes)) {
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        {.code = "E0823",
         .what = fmt::format("{} has no level for {} ranks on {} nodes", fabric.Title(),
                             shape.ranks, shape.nodes),
         .why = fmt::format("its {} {:.0f} ranks, {} in a node",
                            fabric.levels.size() == 1
                                ? "only level holds"
                                : fmt::format("{} levels hold", fabric.levels.size()),
                            std::min(room, 1e9), node),
         .fix = "a fabric with a level of nodes (`daydream fabric list`), or fewer ranks"});
  }
  if (!level->HasRate()) return NothingKnown(fabric, *level, shape);
  const bool reduction = IsReduction(shape.kind);
  const std::vector<FabricCurve>& own = reduction ? level->all_reduce : level->other;
  const bool measured_kind = reduction || shape.kind == CollectiveKind::kAllGather;
  const FabricCurve* curve = Nearest(own, shape.ranks, shape.nodes);
  CollectiveTime time;
  const bool exact = curve != nullptr && curve->ranks == shape.ranks && curve->nodes == shape.nodes;
  const bool untouched = shape.sharing <= 1 && LeafShare(*level, shape.kind, shape.nodes) == 1;
  if (exact && measured_kind && untouched) {
    time = Measured(*level, *curve, shape);
  } else {
    CollectiveKind measured = reduction ? CollectiveKind::kAllReduce : CollectiveKind::kAllGather;
    if (curve == nullptr) {
      curve = Nearest(reduction ? level->other : level->all_reduce, shape.ranks, shape.nodes);
      measured = reduction ? CollectiveKind::kAllGather : CollectiveKind::kAllReduce;
    }
    time = Derived(fabric, *level, curve, measured, shape);
  }
  time.bus_gbps =
      time.us > 0 ? shape.bytes * BusFactor(shape.kind, shape.ranks) / (time.us * 1e3) : 0;
  return time;
}

}  // namespace daydream
