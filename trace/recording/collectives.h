// Sizes of collectives in recordings: NCCL tells the bytes in the NVTX range of each call, and the
// call that launches its kernel lies in that range. (Calls of one ncclGroup are launched together
// at its end, outside of their ranges: those have no size.)
#pragma once

#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "trace/recording/marks.h"

namespace daydream {

class CollectiveSizes {
 public:
  CollectiveSizes(const std::vector<MarkedSpan>& spans, StringPool& names);

  bool empty() const { return lanes_.empty(); }
  // Of what a call of `lane` at `t` launches. Elements are bytes. O(log spans).
  std::optional<CollectiveDetail> At(LaneId lane, Instant t) const;

 private:
  struct Sized {
    Instant begin, end;
    CollectiveDetail detail;
  };
  absl::flat_hash_map<uint32_t, std::vector<Sized>> lanes_;  // by begin
};

}  // namespace daydream
