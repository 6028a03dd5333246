#include "graph/order_by_place.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <utility>

namespace daydream {
namespace {

// Steps before times, from one in the middle.
constexpr int kTimeBits = 48;
constexpr int64_t kFarthest = int64_t{1} << (kTimeBits - 1);
constexpr uint64_t kCame = UINT64_MAX;  // instead of a place
// How often all edges are looked at, and how many a place may have for its tasks to be looked at
// one by one (chosen).
constexpr int kMostRounds = 8;
constexpr size_t kMostEdgesOfPlace = 64;

class PlaceMerge {
 public:
  PlaceMerge(const Graph& g, absl::FunctionRef<bool(const Task&)> wanted)
      : g_(g), wanted_(wanted), place_(g.size()), lanes_(g.lanes().size()) {}

  std::optional<std::vector<TaskId>> Run() {
    const auto fixed = [](const GraphLane& lane) { return lane.order == LaneOrder::kFixed; };
    if (!std::ranges::all_of(g_.lanes(), fixed) || !FindOwn() || !FollowEdges() || !Merge())
      return std::nullopt;
    return std::move(order_);
  }

 private:
  struct LaneOfWanted {
    std::vector<TaskId> tasks;
    size_t next = 0;
  };
  struct Head {
    uint64_t place;
    uint32_t lane;
    bool operator>(const Head& other) const { return place > other.place; }
  };
  // An edge between tasks of one place.
  struct Equal {
    uint64_t place;
    TaskId from, to;
  };

  bool FindOwn() {
    const Instant middle = g_.size() > 0 ? g_.tasks()[0].recorded_start : Instant();
    size_t all = 0;
    for (size_t l = 0; l < lanes_.size(); ++l) {
      uint64_t latest = 0;
      for (TaskId t = g_.lanes()[l].first; t.valid(); t = g_.task(t).lane_next) {
        const Task& task = g_.task(t);
        int64_t time = 0;
        if (__builtin_sub_overflow(task.recorded_start.ns, middle.ns, &time)) return false;
        if (time <= -kFarthest || time >= kFarthest - 1) return false;
        const uint64_t own =
            (uint64_t{task.step} << kTimeBits) + static_cast<uint64_t>(time + kFarthest);
        place_[t.index()] = latest = std::max(latest, own);
        if (wanted_(task)) lanes_[l].tasks.push_back(t);
      }
      all += lanes_[l].tasks.size();
    }
    order_.reserve(all);
    return true;
  }

  // To where no edge tells a later place.
  bool FollowEdges() {
    size_t left = g_.size() * kMostRounds;
    for (int round = 0; round < kMostRounds; ++round) {
      bool later = false;
      equal_.clear();
      for (const Edge& e : g_.edges()) {
        const uint64_t least = place_[e.from.index()];
        for (TaskId t = e.to; t.valid() && place_[t.index()] < least; t = g_.task(t).lane_next) {
          if (left-- == 0) return false;
          place_[t.index()] = least;
          later = true;
        }
        if (place_[e.to.index()] == least) equal_.push_back({least, e.from, e.to});
      }
      if (later) continue;
      std::ranges::sort(equal_, {}, &Equal::place);
      return true;
    }
    return false;
  }

  void PushNext(uint32_t l) {
    const LaneOfWanted& lane = lanes_[l];
    if (lane.next < lane.tasks.size()) heads_.push({place_[lane.tasks[lane.next].index()], l});
  }

  bool Merge() {
    for (uint32_t l = 0; l < lanes_.size(); ++l) PushNext(l);
    while (next_equal_ < equal_.size() || !heads_.empty()) {
      const uint64_t with_edges = next_equal_ < equal_.size() ? equal_[next_equal_].place : kCame;
      if (heads_.empty() || with_edges <= heads_.top().place) {
        if (!TakeAll(with_edges)) return false;
        continue;
      }
      const Head head = heads_.top();
      heads_.pop();
      const uint64_t of_others = heads_.empty() ? kCame : heads_.top().place;
      if (of_others == head.place) {
        heads_.push(head);
        if (!TakeAll(head.place)) return false;
        continue;
      }
      // Along the lane until something else comes first.
      LaneOfWanted& lane = lanes_[head.lane];
      const uint64_t end = std::min(of_others, with_edges);
      do {
        order_.push_back(lane.tasks[lane.next++]);
      } while (lane.next < lane.tasks.size() && place_[lane.tasks[lane.next].index()] < end);
      PushNext(head.lane);
    }
    return true;
  }

  // Where the tasks of this place begin on the lane of one of them.
  TaskId FirstOf(uint64_t place, TaskId t) const {
    while (true) {
      const TaskId before = g_.task(t).lane_prev;
      if (!before.valid() || place_[before.index()] != place) return t;
      t = before;
    }
  }

  // All tasks of a place: of those that wait for no other one of them, the first by id. False of a
  // cycle, of which all are of one place.
  bool TakeAll(uint64_t place) {
    std::vector<uint32_t> lanes;  // with wanted ones
    std::vector<TaskId> at;       // by lane with any that matter
    while (!heads_.empty() && heads_.top().place == place) {
      const uint32_t l = heads_.top().lane;
      heads_.pop();
      lanes.push_back(l);
      at.push_back(FirstOf(place, lanes_[l].tasks[lanes_[l].next]));
    }
    const size_t begin = next_equal_;
    while (next_equal_ < equal_.size() && equal_[next_equal_].place == place) ++next_equal_;
    const auto edges = std::span(equal_).subspan(begin, next_equal_ - begin);
    if (edges.size() > kMostEdgesOfPlace || lanes.size() > kMostEdgesOfPlace) return false;
    for (const Equal& e : edges) {
      at.push_back(FirstOf(place, e.from));
      at.push_back(FirstOf(place, e.to));
    }
    std::ranges::sort(at);
    at.erase(std::unique(at.begin(), at.end()), at.end());
    while (!at.empty()) {
      const auto next = std::ranges::find_if(at, [&](TaskId t) {
        return std::ranges::none_of(
            edges, [&](const Equal& e) { return e.to == t && place_[e.from.index()] != kCame; });
      });
      if (next == at.end()) return false;
      Take(place, next - at.begin(), at);
    }
    for (uint32_t l : lanes) PushNext(l);
    return true;
  }

  // `at[i]`, behind which its lane goes on; `at` is by id.
  void Take(uint64_t place, std::ptrdiff_t i, std::vector<TaskId>& at) {
    const TaskId t = at[static_cast<size_t>(i)];
    const Task& task = g_.task(t);
    if (wanted_(task)) {
      order_.push_back(t);
      ++lanes_[task.lane.index()].next;
    }
    place_[t.index()] = kCame;
    at.erase(at.begin() + i);
    const TaskId next = task.lane_next;
    if (!next.valid() || place_[next.index()] != place) return;
    at.insert(std::ranges::lower_bound(at, next), next);
  }

  const Graph& g_;
  const absl::FunctionRef<bool(const Task&)> wanted_;
  std::vector<uint64_t> place_;                                         // by task
  std::vector<LaneOfWanted> lanes_;                                     // by lane
  std::vector<Equal> equal_;                                            // by place
  size_t next_equal_ = 0;                                               // of those not taken yet
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads_;  // of lanes
  std::vector<TaskId> order_;
};

}  // namespace

std::optional<std::vector<TaskId>> OrderByPlace(const Graph& g,
                                                absl::FunctionRef<bool(const Task&)> wanted) {
  return PlaceMerge(g, wanted).Run();
}

}  // namespace daydream
