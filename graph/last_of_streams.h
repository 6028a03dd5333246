// The last work of each stream that was launched before an instant. A wait for the whole device
// awaits that of every stream, and a file may hold as many streams and as many such waits as it
// likes: from one wait to the next only a few streams have other work.
#pragma once

#include <set>
#include <span>
#include <utility>
#include <vector>

#include "graph/builder.h"

namespace daydream {

class LastOfStreams {
 public:
  // Indices into Builder::ops, kNone where nothing was launched.
  struct Change {
    LaneId lane;
    uint32_t before = Builder::kNone, now = Builder::kNone;
  };

  // REQUIRES: streams of `b` are in place (rule G); they outlive this. At first before all
  // launches.
  explicit LastOfStreams(const Builder& b);

  // Goes to `t`, forward or back, and tells the streams whose last work is another there, in the
  // order of their ids. Valid until the next one. O(k log streams) for k launches in between, and
  // no more than as many as there are streams; with many streams the first one costs O(n log n).
  std::span<const Change> GoTo(Instant t);

  // Index into Builder::ops, or kNone.
  uint32_t Of(LaneId lane) const { return last_[lane.index()]; }

  // The one that ends last of those that end at `limit` or before, and of several the one on the
  // first stream; kNone where there is none. O(log streams).
  uint32_t LatestBy(Instant limit) const;
  uint32_t Latest() const {
    return by_end_.empty() ? Builder::kNone : LatestBy(by_end_.rbegin()->first);
  }
  bool AllEndBy(Instant limit) const { return by_end_.empty() || by_end_.rbegin()->first <= limit; }

 private:
  struct Launch {
    Instant at;
    LaneId lane;
  };

  bool HasMany() const;
  std::span<const LaneId> Launched(Instant t);  // on the way to `t`; others may be among them

  const Builder& b_;
  std::vector<LaneId> all_;       // streams with work
  std::vector<Launch> launches_;  // in the order of time, where there are many streams
  size_t behind_ = 0;             // of launches_: the first that is not before the instant
  std::vector<uint32_t> last_;    // by lane
  std::set<std::pair<Instant, LaneId>> by_end_;  // of last_
  std::vector<LaneId> launched_;
  std::vector<Change> changes_;
};

}  // namespace daydream
