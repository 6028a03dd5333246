// Which streams had work that ended just before an instant, and which have work that goes on. Rules
// that look for what was waited for ask that of every rest and of every call that waits, and a file
// may hold as many streams as it likes: most of them have nothing to do with the answer.
#pragma once

#include <algorithm>
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

  // Each stream has one operation that ended last until then. Of those that ended from `from` on
  // and of which `fits` holds the one that ended last, and of several the first stream's: an index
  // into Builder::ops, or kNone. O((k + 1) log n) for k operations that ended later than it and
  // until `until`; with few streams O(streams log n).
  template <class Fits>
  uint32_t Latest(Instant from, Instant until, const Fits& fits);

 private:
  struct End {
    Instant at;
    LaneId lane;
    uint32_t op;
  };

  // The last operation of a stream that ended until then, or kNone.
  uint32_t LastOf(LaneId lane, Instant until) const;

  const Builder& b_;

  std::vector<LaneId> all_;  // streams with work
  std::vector<End> ends_;    // in the order of time
  std::vector<LaneId> found_;
};

template <class Fits>
uint32_t RecentEnds::Latest(Instant from, Instant until, const Fits& fits) {
  uint32_t latest = Builder::kNone;
  if (ends_.empty()) {
    for (const LaneId lane : all_) {
      const uint32_t op = LastOf(lane, until);
      if (op == Builder::kNone || b_.ops[op].end < from || !fits(b_.ops[op])) continue;
      if (latest == Builder::kNone || b_.ops[op].end > b_.ops[latest].end) latest = op;
    }
    return latest;
  }
  for (auto it = std::ranges::upper_bound(ends_, until, {}, &End::at); it != ends_.begin();) {
    const End& end = *--it;
    if (end.at < from || (latest != Builder::kNone && end.at < b_.ops[latest].end)) break;
    if (latest != Builder::kNone && b_.ops[latest].lane < end.lane) continue;
    if (fits(b_.ops[end.op]) && LastOf(end.lane, until) == end.op) latest = end.op;
  }
  return latest;
}

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
