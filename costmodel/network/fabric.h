// How GPUs are wired: levels (the GPUs of a node, then nodes), with what was measured on each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/network/size_curve.h"

namespace daydream {

enum class Topology : uint8_t { kSwitch, kRing, kFatTree };

// A size curve of one collective at one number of ranks.
struct FabricCurve {
  int ranks = 0, nodes = 1;  // where it was measured
  double bus_gbps = 0;       // 10^9 bytes a second of bus bandwidth (nccl-tests) for long messages
  SizeCurve time;            // of the sizes that nccl-tests prints
  double error = 0, error_p95 = 0;      // of the smooth curve; 0: not known
  double from_bytes = 0, to_bytes = 0;  // the sizes measured; 0: not known
  std::string source;

  // Else somebody stated it.
  bool measured() const { return error > 0 || !time.points.empty(); }
  // No size beyond those measured, as far as these are known.
  bool Covers(double bytes) const {
    return bytes >= from_bytes && (to_bytes <= 0 || bytes <= to_bytes);
  }
};

struct FabricLevel {
  std::string name;
  int size = 0;  // members: GPUs of a node, then nodes; 0 = any number
  Topology topology = Topology::kSwitch;
  double gbps_per_rank = 0;  // 10^9 bytes a second of a GPU's links, one direction; 0 = not known
  double nic_gbits = 0;      // 10^9 bits a second of one NIC; 0 = not known
  int nics_per_node = 0;
  double oversubscription = 1;
  int nodes_per_leaf = 0;               // of a fat tree; 0 = not known
  std::vector<FabricCurve> all_reduce;  // by ranks
  std::vector<FabricCurve> other;       // of all-gathers
  // Both times of an edit: bandwidth(x2, level=...) and latency(x2).
  double rate_factor = 1, latency_factor = 1;

  // 10^9 bytes a second that a node's NICs carry, one direction; 0 = not known.
  double NodeWire() const { return nic_gbits / 8 * nics_per_node; }
  bool HasCurve() const { return !all_reduce.empty() || !other.empty(); }
  // Else nobody can tell what a collective takes on it; a level of one member has none.
  bool HasRate() const { return HasCurve() || gbps_per_rank > 0 || NodeWire() > 0 || size == 1; }
};

struct Fabric {
  std::string name;
  std::vector<std::string> aliases;
  std::vector<FabricLevel> levels;  // at least one
  int nodes = 0;                    // 0 = as many as asked for
  double overlap = 0;               // 0 = 1 - channels / SMs
  int sms_per_collective = 0;       // 0 = not known
  std::string source;
  std::string asked;  // the alias by which it was asked for; empty: its name

  // "efa3200", "ib-ndr (roce-8x400)"
  std::string Title() const;
  // GPUs of a node; at least 1.
  int NodeSize() const;
};

// The built-in ones, by name.
std::span<const Fabric> Fabrics();
// By name or alias; letter case, '-' and '_' do not matter. nullptr when not known.
const Fabric* FindFabric(std::string_view name);
// The same with how it was asked for.
std::optional<Fabric> FabricAsked(std::string_view name);

}  // namespace daydream
