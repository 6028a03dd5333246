#include "graph/event_guesses.h"

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "base/sort_runs.h"

namespace daydream {
namespace {

// The least of a stretch of instants. O(log stretch), in twice their memory.
class LeastOf {
 public:
  explicit LeastOf(const std::vector<Instant>& all) : size_(all.size()), tree_(2 * all.size()) {
    std::copy(all.begin(), all.end(), tree_.begin() + static_cast<std::ptrdiff_t>(size_));
    for (size_t i = size_; i-- > 1;) tree_[i] = std::min(tree_[2 * i], tree_[2 * i + 1]);
  }

  // REQUIRES: begin < end <= size.
  Instant Least(size_t begin, size_t end) const {
    Instant least = tree_[begin + size_];
    for (begin += size_, end += size_; begin < end; begin /= 2, end /= 2) {
      if (begin % 2 == 1) least = std::min(least, tree_[begin++]);
      if (end % 2 == 1) least = std::min(least, tree_[--end]);
    }
    return least;
  }

 private:
  size_t size_;
  std::vector<Instant> tree_;  // what is at i is the least of 2 i and 2 i + 1
};

// The waits of one scope and stream, in the order of time.
struct Alike {
  std::vector<Instant> at;      // when they were called
  std::vector<Instant> starts;  // of what waited
};

// Streams in the order of their latest launches as time goes on, that of the latest first. Those of
// one instant are in the order of their ids.
class LatestLaunches {
 public:
  explicit LatestLaunches(const Builder& b) : last_(b.stream_ops.size(), Builder::kNone) {
    launches_.reserve(b.ops.size());
    for (const std::vector<uint32_t>& stream : b.stream_ops) {
      for (const uint32_t op : stream) {
        launches_.push_back({.at = b.ops[op].call_start, .lane = b.ops[op].lane, .op = op});
      }
    }
    SortRuns(launches_, [](const Launch& x, const Launch& y) {
      return std::tie(x.at, y.lane) < std::tie(y.at, x.lane);
    });
    place_.resize(last_.size(), order_.end());
  }

  // All that was launched before `t`, which never goes back.
  void AdvanceTo(Instant t) {
    for (; next_ < launches_.size() && launches_[next_].at < t; ++next_) {
      const Launch& launch = launches_[next_];
      std::list<LaneId>::iterator& place = place_[launch.lane.index()];
      if (place == order_.end()) {
        place = order_.insert(order_.begin(), launch.lane);
      } else {
        order_.splice(order_.begin(), order_, place);
      }
      last_[launch.lane.index()] = launch.op;
    }
  }

  const std::list<LaneId>& streams() const { return order_; }
  // The operation that was launched last to it, kNone where none was.
  uint32_t Last(LaneId lane) const {
    return lane.valid() ? last_[lane.index()] : uint32_t{Builder::kNone};
  }

 private:
  struct Launch {
    Instant at;
    LaneId lane;
    uint32_t op;
  };

  std::vector<Launch> launches_;
  size_t next_ = 0;
  std::list<LaneId> order_;
  std::vector<std::list<LaneId>::iterator> place_;  // by lane, in order_
  std::vector<uint32_t> last_;                      // by lane
};

class Guesser {
 public:
  Guesser(const Builder& b, std::vector<UnknownWait> waits)
      : b_(b), waits_(std::move(waits)), latest_(b), asked_by_(b.stream_ops.size(), 0) {
    SortRuns(waits_, [](const UnknownWait& x, const UnknownWait& y) { return x.at < y.at; });
    FindAlike();
  }

  EventGuesses Run() {
    for (uint32_t i = 0; i < waits_.size(); ++i) {
      latest_.AdvanceTo(waits_[i].at);
      const uint32_t from = Awaited(i);
      if (from != Builder::kNone) guesses_.waits.emplace_back(waits_[i].op, from);
    }
    return std::move(guesses_);
  }

 private:
  void FindAlike() {
    std::map<std::pair<NameId, LaneId>, uint32_t> known;
    for (const UnknownWait& wait : waits_) {
      const GpuOp& op = b_.ops[wait.op];
      const auto next = static_cast<uint32_t>(alike_.size());
      const uint32_t kind = known.try_emplace({wait.scope, op.lane}, next).first->second;
      if (kind == next) alike_.emplace_back();
      alike_[kind].at.push_back(wait.at);
      alike_[kind].starts.push_back(op.start);
      kind_.push_back(kind);
    }
    for (const Alike& alike : alike_) least_.emplace_back(alike.starts);
  }

  // The operation that this wait was for, kNone: not known.
  uint32_t Awaited(uint32_t wait) {
    const UnknownWait& w = waits_[wait];
    const uint32_t serial = wait + 1;
    asked_by_[b_.ops[w.op].lane.index()] = serial;  // a stream does not wait for itself
    std::vector<LaneId> first;
    for (const LaneId lane : w.makers) {
      if (latest_.Last(lane) != Builder::kNone) first.push_back(lane);
    }
    std::ranges::sort(first, std::greater<>(), [&](LaneId lane) {
      const Instant launched = b_.ops[latest_.Last(lane)].call_start;
      return std::tuple(lane == w.current, launched, ~lane.value);
    });
    first.push_back(w.current);
    for (const LaneId lane : first) {
      if (MayAsk(lane, serial) && !Contradicted(wait, lane)) return latest_.Last(lane);
    }
    size_t asked = 0;
    for (const LaneId lane : latest_.streams()) {
      if (!MayAsk(lane, serial)) continue;
      if (asked++ == kMostAsked) {
        ++guesses_.unanswered;
        return Builder::kNone;
      }
      if (!Contradicted(wait, lane)) return latest_.Last(lane);
    }
    return Builder::kNone;
  }

  // Once each.
  bool MayAsk(LaneId lane, uint32_t serial) {
    if (latest_.Last(lane) == Builder::kNone) return false;
    return std::exchange(asked_by_[lane.index()], serial) != serial;
  }

  // Whether this wait, or another of its kind, cannot have been for this stream.
  bool Contradicted(uint32_t wait, LaneId lane) {
    ++guesses_.looks;
    // Where many streams are busy, this tells most of them, and there is nothing to remember.
    if (Refutes(b_.ops[latest_.Last(lane)].end, b_.ops[waits_[wait].op].start)) return true;
    const uint32_t kind = kind_[wait];
    const auto [it, is_new] = contradicted_.try_emplace({kind, lane}, false);
    if (!is_new) return it->second;
    const bool few_ops = b_.stream_ops[lane.index()].size() < alike_[kind].at.size();
    return it->second = few_ops ? ByOperations(kind, lane) : ByWaits(alike_[kind], lane);
  }

  static bool Refutes(Instant end, Instant start) { return end > start + kGranularity; }

  bool ByWaits(const Alike& alike, LaneId lane) {
    for (size_t i = 0; i < alike.at.size(); ++i) {
      ++guesses_.looks;
      const uint32_t from = b_.LastLaunchedBefore(lane, alike.at[i]);
      if (from != Builder::kNone && Refutes(b_.ops[from].end, alike.starts[i])) return true;
    }
    return false;
  }

  // The same by what waits between the launch of each operation and the next one can have begun.
  bool ByOperations(uint32_t kind, LaneId lane) {
    const std::vector<Instant>& at = alike_[kind].at;
    const std::vector<uint32_t>& stream = b_.stream_ops[lane.index()];
    const auto first_behind = [&](uint32_t op) {
      return static_cast<size_t>(std::ranges::upper_bound(at, b_.ops[op].call_start) - at.begin());
    };
    for (size_t i = 0, begin = first_behind(stream[0]); i < stream.size(); ++i) {
      ++guesses_.looks;
      const size_t end = i + 1 < stream.size() ? first_behind(stream[i + 1]) : at.size();
      if (begin < end && Refutes(b_.ops[stream[i]].end, least_[kind].Least(begin, end))) {
        return true;
      }
      begin = end;
    }
    return false;
  }

  const Builder& b_;
  std::vector<UnknownWait> waits_;  // in the order of time
  std::vector<uint32_t> kind_;      // of each: which of alike_
  std::vector<Alike> alike_;
  std::vector<LeastOf> least_;  // of the starts of each of alike_
  LatestLaunches latest_;
  std::vector<uint32_t> asked_by_;  // by lane: the last wait that asked it, counted from 1
  absl::flat_hash_map<std::pair<uint32_t, LaneId>, bool> contradicted_;  // by kind and stream
  EventGuesses guesses_;
};

}  // namespace

EventGuesses GuessEvents(const Builder& b, std::vector<UnknownWait> waits) {
  if (waits.empty()) return {};
  return Guesser(b, std::move(waits)).Run();
}

}  // namespace daydream
