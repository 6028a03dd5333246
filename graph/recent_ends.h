// Which streams had work that ended just before an instant, and which have work that goes on. Rules
// that look for what was waited for ask that of every rest and of every call that waits, and a file
// may hold as many streams as it likes: most of them have nothing to do with the answer.
#pragma once

#include <set>
#include <span>
#include <utility>
#include <vector>

#include "graph/builder.h"

namespace daydream {

class RecentEnds {
 public:
  // REQUIRES: streams of `b` are in place (rule G).
  explicit RecentEnds(const Builder& b);

  // The streams of which an operation ended from `from` to `until`, both included, in the order of
  // their ids; others may be among them. Valid until the next question. O(log n + k log k) for k
  // operations that ended then, and no more than as many as there are streams; with few streams it
  // is all of them, and there is nothing to prepare.
  std::span<const LaneId> Streams(Instant from, Instant until);

 private:
  struct End {
    Instant at;
    LaneId lane;
  };

  std::vector<LaneId> all_;  // streams with work
  std::vector<End> ends_;    // in the order of time
  std::vector<LaneId> found_;
};

// The same for operations that are told in the order of their starts.
class LatestEnds {
 public:
  explicit LatestEnds(const Builder& b);

  // O(log streams); with few streams there is nothing to note.
  void Add(const GpuOp& op);

  // The streams of which an operation that was added ends at `from` or later, in the order of their
  // ids; others may be among them. Valid until the next question. O(k log k) for k streams.
  std::span<const LaneId> Streams(Instant from);

 private:
  std::vector<LaneId> all_;      // streams with work
  std::vector<Instant> latest_;  // by lane, where there are many
  std::set<std::pair<Instant, LaneId>> by_end_;
  std::vector<LaneId> found_;
};

}  // namespace daydream
