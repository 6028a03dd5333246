// The collectives of one rank, described from whatever its trace has: arguments of the kernels
// (2024 on), of record_param_comms (2023 on), or names and shapes of the launch alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/ranks/collective_kind.h"

namespace daydream {

struct RankCollective {
  TaskId task;
  CollectiveKind kind = CollectiveKind::kUnknown;
  uint64_t bytes = 0;  // as nccl-tests counts them (costmodel/network); 0 = not recorded
  uint32_t grid = 0;   // blocks of the kernel: tells sizes apart where they are not recorded
  uint32_t communicator = 0;
  int64_t sequence = -1;       // -1 = not recorded
  int32_t from = -1, to = -1;  // point to point; -1 = not recorded
  Instant start, end;          // as recorded, on the clock of the rank
};

// A process group as one rank names it: the name may be a pointer, which means nothing elsewhere.
struct RankCommunicator {
  std::string name;
  std::vector<int32_t> members;  // ascending; empty = not recorded
  int32_t size = 0;              // 0 = not recorded
  std::vector<uint32_t> order;   // rows of RankCollectives::all, in the order of launches
};

struct RankCollectives {
  Rank rank;
  std::vector<RankCommunicator> communicators;  // in order of first use
  std::vector<RankCollective> all;              // in the order of launches
  size_t alone = 0;  // collectives of groups of one rank, which wait for nobody: not in `all`
};

// `rank` is that of the trace. O(tasks + edges), and a walk of the scopes around each collective.
RankCollectives DescribeCollectives(const Graph& graph, const Rank& rank);

// Bytes of an element, from "Half", "c10::BFloat16", "Float8_e4m3fn", "long int"; 0: not known.
uint64_t ElementBytes(std::string_view type);

// "all_reduce of 67.1 MB #337", for messages.
std::string Called(const RankCollective& c);

}  // namespace daydream
