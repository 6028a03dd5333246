// Which kernel is which call of NCCL: ranges of NCCL's own domain lie around the launches.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "trace/nsys/payload.h"
#include "trace/trace.h"

namespace daydream {

class NsysCollectives {
 public:
  // A range of the domain NCCL. `process` is its place (NsysLanes::Process). The number that comes
  // back is to be the detail of the range's event until Finish().
  uint32_t Add(uint32_t process, std::string_view name, const NsysPayload& payload);

  // Gives kernels of NCCL the name, bytes and group of their call. What is called in a group is
  // launched at its end: a group of one call is that call, larger ones are not told apart. O(rows).
  void Finish(Trace& trace);

 private:
  struct Call {
    uint32_t process = 0;
    bool ends_group = false;
    std::string name;  // "allreduce"
    NsysPayload payload;
  };
  void FinishLane(Trace& trace, size_t lane);
  uint32_t RowOf(Trace& trace, const Call& call);

  std::vector<Call> calls_;
  std::map<std::pair<uint32_t, uint64_t>, int64_t> group_sizes_;  // of a process's communicator
  std::map<std::tuple<NameId, NameId, int64_t, int32_t>, uint32_t> rows_;  // of collectives
  absl::flat_hash_map<uint32_t, uint32_t> of_launch_;  // correlation -> row of collectives
};

}  // namespace daydream
