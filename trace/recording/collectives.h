// What NCCL tells of collectives in recordings: the range of each call has the bytes and says on
// which communicator it is and the how many-th. The call that launches its kernel lies in that
// range; what is called in a group is launched at the end of the group, in the range of
// ncclGroupEnd: a group of one call is that call, larger ones are not told apart.
#pragma once

#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "trace/recording/marks.h"

namespace daydream {

class CollectiveCalls {
 public:
  struct Called {
    Instant begin, end;
    CollectiveDetail detail;
  };

  CollectiveCalls(const std::vector<MarkedSpan>& spans, StringPool& names);

  bool empty() const { return lanes_.empty(); }
  // Of what a call of `lane` at `t` launches. Elements are bytes. O(log spans).
  std::optional<CollectiveDetail> At(LaneId lane, Instant t) const;

 private:
  absl::flat_hash_map<uint32_t, std::vector<Called>> lanes_;  // by begin
};

}  // namespace daydream
