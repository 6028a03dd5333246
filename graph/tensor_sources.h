// Which streams made what a GPU operation reads: by the data dependencies of a trace between the
// ops that launched them (`--et`, or NVTX ranges with their producers).
#pragma once

#include <utility>
#include <vector>

#include "graph/builder.h"

namespace daydream {

class TensorSources {
 public:
  // O(operations log operations); nothing without dependencies.
  explicit TensorSources(const Builder& b);

  // Streams of other work that was launched by the ops whose results the op around the launch of
  // `op` reads, each once. Empty: not known. Looks at a bounded part of odd traces: O(log rows).
  std::vector<LaneId> StreamsThatMade(const GpuOp& op) const;

 private:
  void AddStreamsOf(uint32_t producer, std::vector<LaneId>& to) const;

  struct Launch {
    LaneId thread;
    Instant at;
    LaneId stream;
  };

  const Builder& b_;
  std::vector<Launch> launches_;  // by thread, by time; only where there are dependencies
};

}  // namespace daydream
