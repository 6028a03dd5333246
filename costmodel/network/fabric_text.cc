#include "costmodel/network/fabric_text.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "costmodel/network/collective_time.h"
#include "costmodel/network/fabric_texts.h"
#include "proto/fabric.pb.h"

namespace daydream {
namespace {

namespace gp = google::protobuf;
namespace pbf = fabric::v1;

constexpr int kMostRanks = 1 << 20;
constexpr double kMostRate = 1e9;

absl::Status Refuse(std::string_view where, std::string what, std::string why = {}) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0821",
                     .what = std::move(what),
                     .where = std::string(where),
                     .why = std::move(why),
                     .fix = "`daydream fabric show nvlink4 --text` prints one to begin from"});
}

class FirstMistake : public gp::io::ErrorCollector {
 public:
  void AddError(int line, gp::io::ColumnNumber column, const std::string& message) override {
    if (!text.empty()) return;
    text = fmt::format("line {}, column {}: {}", line + 1, static_cast<int>(column) + 1, message);
  }
  std::string text;
};

absl::StatusOr<pbf::Fabric> Parse(std::string_view text, std::string_view where) {
  pbf::FabricFile file;
  gp::TextFormat::Parser parser;
  FirstMistake mistake;
  parser.RecordErrorsTo(&mistake);
  parser.SetRecursionLimit(6);
  if (!parser.ParseFromString(std::string(text), &file)) {
    return Refuse(where, "this is no description of a fabric", mistake.text);
  }
  if (!file.has_fabric()) return Refuse(where, "this text has no `fabric { ... }`");
  return file.fabric();
}

bool InRange(double value, double most) { return value >= 0 && value <= most; }

// The slope of long messages; `factor` is that of the collective which was measured.
double UsPerByte(double bus_gbps, double factor) { return factor / (bus_gbps * 1e3); }

absl::StatusOr<FabricCurve> CurveOf(const pbf::Curve& given, CollectiveKind kind,
                                    const FabricLevel& level, int node_size, bool of_nodes,
                                    std::string_view where) {
  FabricCurve curve;
  const int usual_nodes = of_nodes ? 2 : 1;
  curve.nodes = given.nodes() > 0 ? given.nodes() : usual_nodes;
  const int usual = of_nodes ? curve.nodes * node_size : std::max(2, level.size);
  curve.ranks = given.ranks() > 0 ? given.ranks() : usual;
  const bool good = InRange(given.a_us(), kMostRate) && InRange(given.g_us(), kMostRate) &&
                    InRange(given.bus_gbps(), kMostRate) && given.ranks() <= kMostRanks &&
                    given.nodes() <= kMostRanks && curve.ranks >= 2 && curve.nodes <= curve.ranks;
  if (!good) return Refuse(where, fmt::format("level {}: a number is out of range", level.name));
  curve.bus_gbps = given.bus_gbps();
  if (curve.bus_gbps <= 0) {
    return Refuse(where, fmt::format("level {}: bus_GBps has to be above 0", level.name));
  }
  curve.time.a_us = given.a_us();
  curve.time.g_us = given.g_us();
  curve.time.us_per_byte = UsPerByte(curve.bus_gbps, BusFactor(kind, curve.ranks));
  for (const pbf::Point& p : given.point()) {
    const bool point = p.bytes() > 0 && p.us() > 0 && std::isfinite(p.bytes()) &&
                       std::isfinite(p.us()) && p.bytes() < 1e18 && p.us() < 1e15;
    if (!point) return Refuse(where, fmt::format("level {}: a point is no size", level.name));
    curve.time.points.push_back({p.bytes(), p.us()});
  }
  auto& points = curve.time.points;
  std::sort(points.begin(), points.end(),
            [](const SizePoint& a, const SizePoint& b) { return a.bytes < b.bytes; });
  for (size_t i = 1; i < points.size(); ++i) {
    if (points[i].bytes == points[i - 1].bytes) {
      return Refuse(where, fmt::format("level {}: a point is given twice", level.name));
    }
  }
  curve.from_bytes = given.from_bytes();
  curve.to_bytes = given.to_bytes();
  if (!InRange(curve.from_bytes, 1e18) || !InRange(curve.to_bytes, 1e18)) {
    return Refuse(where, fmt::format("level {}: a size is out of range", level.name));
  }
  if (!points.empty()) {
    if (curve.from_bytes <= 0) curve.from_bytes = points.front().bytes;
    if (curve.to_bytes <= 0) curve.to_bytes = points.back().bytes;
  }
  curve.error = given.error_pct() / 100;
  curve.error_p95 = given.error_p95_pct() / 100;
  curve.source = given.source();
  return curve;
}

// The first level of a built-in fabric with one level of its own: no text names another that uses.
absl::StatusOr<FabricLevel> LevelUsed(const std::string& name, std::string_view where) {
  for (const FabricText& file : FabricTexts()) {
    if (file.file != name + ".textproto") continue;
    DD_ASSIGN_OR_RETURN(const pbf::Fabric given, Parse(file.text, file.file));
    if (given.level_size() > 0 && given.level(0).use().empty()) {
      DD_ASSIGN_OR_RETURN(Fabric fabric, FabricOfText(file.text, file.file));
      return fabric.levels[0];
    }
  }
  return Refuse(where, fmt::format("no built-in level is called '{}'", name),
                "`use` takes the GPUs of a node of nvlink2, nvlink3, nvlink4, pcie4, ...");
}

absl::StatusOr<FabricLevel> LevelOf(const pbf::Level& given, int node_size, bool of_nodes,
                                    std::string_view where) {
  if (!given.use().empty()) return LevelUsed(given.use(), where);
  FabricLevel level;
  level.name = given.name();
  level.size = given.size();
  level.topology = given.kind() == pbf::FAT_TREE ? Topology::kFatTree
                   : given.kind() == pbf::RING   ? Topology::kRing
                                                 : Topology::kSwitch;
  level.gbps_per_rank = given.gbps_per_rank();
  level.nic_gbits = given.nic_gbps();
  level.nics_per_node = given.nics_per_node();
  level.oversubscription = given.oversubscription() > 0 ? given.oversubscription() : 1;
  level.nodes_per_leaf = given.nodes_per_leaf();
  const bool good = given.size() >= 0 && given.size() <= kMostRanks &&
                    InRange(given.gbps_per_rank(), kMostRate) &&
                    InRange(given.nic_gbps(), kMostRate) && given.nics_per_node() >= 0 &&
                    given.nics_per_node() <= kMostRanks && given.nodes_per_leaf() >= 0 &&
                    InRange(given.oversubscription(), 1e3);
  if (!good) return Refuse(where, fmt::format("level {}: a number is out of range", level.name));
  for (const pbf::Curve& c : given.all_reduce()) {
    DD_ASSIGN_OR_RETURN(FabricCurve curve,
                        CurveOf(c, CollectiveKind::kAllReduce, level, node_size, of_nodes, where));
    level.all_reduce.push_back(std::move(curve));
  }
  for (const pbf::Curve& c : given.other()) {
    DD_ASSIGN_OR_RETURN(FabricCurve curve,
                        CurveOf(c, CollectiveKind::kAllGather, level, node_size, of_nodes, where));
    level.other.push_back(std::move(curve));
  }
  return level;
}

// A level may say nothing where a sweep across the levels around it has in it what it takes there:
// `fabric fit` of several nodes knows no more. Collectives that stay on it are refused when asked.
absl::Status CheckRates(const Fabric& fabric, std::string_view where) {
  bool measured_around = false;
  for (size_t i = fabric.levels.size(); i-- > 0;) {
    const FabricLevel& level = fabric.levels[i];
    if (!level.HasRate() && !measured_around) {
      return Refuse(where, fmt::format("level {} says nothing of its rate", level.name),
                    "gbps_per_rank, nic_gbps with nics_per_node, or a curve is needed");
    }
    measured_around |= level.HasCurve();
  }
  return absl::OkStatus();
}

void PrintCurve(std::string& out, std::string_view name, const FabricCurve& c) {
  out += fmt::format(
      "    {} {{\n      ranks: {} nodes: {} a_us: {:.6g} g_us: {:.6g} bus_GBps: {:.6g}\n", name,
      c.ranks, c.nodes, c.time.a_us, c.time.g_us, c.bus_gbps);
  if (c.error > 0) {
    out += fmt::format("      error_pct: {:.3g} error_p95_pct: {:.3g}\n", 100 * c.error,
                       100 * c.error_p95);
  }
  if (c.to_bytes > 0 && c.time.points.empty()) {
    out += fmt::format("      from_bytes: {:.17g} to_bytes: {:.17g}\n", c.from_bytes, c.to_bytes);
  }
  for (const SizePoint& p : c.time.points) {
    out += fmt::format("      point {{ bytes: {:.17g} us: {:.17g} }}\n", p.bytes, p.us);
  }
  if (!c.source.empty()) out += fmt::format("      source: \"{}\"\n", gp::CEscape(c.source));
  out += "    }\n";
}

}  // namespace

absl::StatusOr<Fabric> FabricOfText(std::string_view text, std::string_view where) {
  DD_ASSIGN_OR_RETURN(const pbf::Fabric given, Parse(text, where));
  Fabric fabric;
  fabric.name = given.name();
  fabric.aliases.assign(given.alias().begin(), given.alias().end());
  fabric.nodes = given.nodes();
  fabric.overlap = given.overlap();
  fabric.sms_per_collective = given.sms_per_collective();
  fabric.source = given.source();
  const bool good = !fabric.name.empty() && given.level_size() > 0 && given.level_size() <= 8 &&
                    fabric.nodes >= 0 && fabric.nodes <= kMostRanks && InRange(fabric.overlap, 1) &&
                    fabric.sms_per_collective >= 0;
  if (!good) {
    return Refuse(where, "a fabric needs a name and one to eight levels",
                  "overlap is from 0 to 1, nodes and sms_per_collective are not below 0");
  }
  for (int i = 0; i < given.level_size(); ++i) {
    DD_ASSIGN_OR_RETURN(FabricLevel level,
                        LevelOf(given.level(i), fabric.NodeSize(), i > 0, where));
    fabric.levels.push_back(std::move(level));
  }
  DD_RETURN_IF_ERROR(CheckRates(fabric, where));
  return fabric;
}

std::string TextOfFabric(const Fabric& fabric) {
  std::string out = fmt::format("fabric {{\n  name: \"{}\"\n", gp::CEscape(fabric.name));
  for (const std::string& alias : fabric.aliases) {
    out += fmt::format("  alias: \"{}\"\n", gp::CEscape(alias));
  }
  if (fabric.nodes > 0) out += fmt::format("  nodes: {}\n", fabric.nodes);
  for (const FabricLevel& level : fabric.levels) {
    out += fmt::format("  level {{\n    name: \"{}\" size: {} kind: {}\n", gp::CEscape(level.name),
                       level.size,
                       level.topology == Topology::kFatTree ? "FAT_TREE"
                       : level.topology == Topology::kRing  ? "RING"
                                                            : "SWITCH");
    if (level.gbps_per_rank > 0) out += fmt::format("    gbps_per_rank: {}\n", level.gbps_per_rank);
    if (level.nic_gbits > 0) {
      out +=
          fmt::format("    nic_gbps: {} nics_per_node: {}\n", level.nic_gbits, level.nics_per_node);
    }
    if (level.oversubscription > 1) {
      out += fmt::format("    oversubscription: {}\n", level.oversubscription);
    }
    if (level.nodes_per_leaf > 0)
      out += fmt::format("    nodes_per_leaf: {}\n", level.nodes_per_leaf);
    for (const FabricCurve& c : level.all_reduce) PrintCurve(out, "all_reduce", c);
    for (const FabricCurve& c : level.other) PrintCurve(out, "other", c);
    out += "  }\n";
  }
  if (fabric.overlap > 0) out += fmt::format("  overlap: {}\n", fabric.overlap);
  if (fabric.sms_per_collective > 0) {
    out += fmt::format("  sms_per_collective: {}\n", fabric.sms_per_collective);
  }
  if (!fabric.source.empty()) out += fmt::format("  source: \"{}\"\n", gp::CEscape(fabric.source));
  return out + "}\n";
}

}  // namespace daydream
