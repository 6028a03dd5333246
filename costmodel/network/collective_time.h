// How long a collective takes on a fabric once all members have arrived, and where that is from.
//
// In this order: the curve that was measured for this collective at this number of ranks; one of
// another collective or number of ranks of the same level, with bytes by the bus-bandwidth factors
// of nccl-tests (doc/PERFORMANCE.md) and latency by the ratio of NCCL's own model (src/graph/
// tuning.cc), which ranks algorithms but is too fast below 64 MiB, so that only ratios of it are
// used; the wire, where no curve is given.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "costmodel/network/fabric.h"
#include "graph/ranks/collective_kind.h"

namespace daydream {

struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // As nccl-tests prints it: what an all-reduce reduces, what all ranks together have gathered or
  // scatter, what one rank exchanges, sends or broadcasts.
  double bytes = 0;
  int ranks = 1;
  int nodes = 0;    // 0: as few as they fit on
  int sharing = 1;  // groups that use a NIC at the same time
};

enum class TimeSource : uint8_t { kNothing, kSweep, kFabric, kWire, kTrace };
std::string_view TimeSourceName(TimeSource source);  // "sweep"

struct CollectiveTime {
  double us = 0;
  double bus_gbps = 0;  // that this is
  TimeSource source = TimeSource::kNothing;
  double error = 0;       // mean, relative; 0: not known
  std::string explained;  // "all_reduce measured at 16 ranks on 2, for all_reduce at 64 on 8"
  std::string beyond;     // " (only 268.4 MB to 2.147 GB)": those sizes only; empty: this one, too
};

// Where several times come from, each once.
class TimesFrom {
 public:
  void Add(const CollectiveTime& time);
  std::vector<std::string> Lines() const;

 private:
  std::map<std::string, std::string> beyond_;
};

// Bytes of bus bandwidth for each byte of `kind`: 2 (n - 1) / n and the like. 0 for one rank.
double BusFactor(CollectiveKind kind, int ranks);

// 0 us for one rank. E0823 when the fabric has no level that holds so many ranks.
absl::StatusOr<CollectiveTime> TimeOfCollective(const Fabric& fabric, const CollectiveShape& shape);

}  // namespace daydream
