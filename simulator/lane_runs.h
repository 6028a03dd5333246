// Plays tasks lane by lane, each lane as far as nothing that it waits for is missing: for what is
// played once, so that an order of evaluation would take longer to find than to use. For
// simulator/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/time.h"

namespace daydream {

// Earlier than every instant of a replay, far from the limits of int64 (graph/validate.cc).
inline constexpr int64_t kNever = Instant::Min().ns;

// What the tasks of a lane so far mean for the next one: it may begin at `clock`, or at `start`
// when it overlaps. Selected without a branch.
struct LaneState {
  int64_t bound[2] = {kNever, kNever};
};

// What the runs below need to know of a task.
struct LaneTask {
  bool beside = false;            // it overlaps the task before it on its lane
  int64_t earliest = 0;           // no later than 0: no bound
  int64_t duration = 0, gap = 0;  // 0 of removed tasks
};

// An edge that waits for another task of these, or for an instant that is known.
struct LaneWait {
  static constexpr uint32_t kKnown = 0xffffffff;
  uint32_t from = kKnown;
  bool from_start = false, to_start = false;
  int64_t lag = 0;  // of kKnown: the instant itself
};

// `View` tells of tasks that are numbered from 0 on:
//   size(), lanes()           how many there are
//   First(lane), Next(task)   their order on a lane; kNoTask behind the last
//   TaskAt(task)              LaneTask
//   EdgesBegin(task)          of its edges into it, up to those of the next number
//   EdgeAt(edge)              LaneWait
template <class View>
class LaneRuns {
 public:
  static constexpr uint32_t kNoTask = 0xffffffff;

  // `start` and `end` hold an entry for each task.
  LaneRuns(const View& view, Instant* start, Instant* end)
      : view_(view), start_(start), end_(end), at_(view.lanes()), waiting_(view.size()) {}

  // False where some tasks wait for themselves. Another time, lanes go on from where they were.
  bool Run() {
    return Run([](uint32_t) {});
  }
  // `played(task)`: of each, once its start and end are known.
  template <class Played>
  bool Run(const Played& played) {
    done_ = 0;
    std::fill(waiting_.begin(), waiting_.end(), kNoLane);
    std::fill_n(end_, view_.size(), Instant::AtNs(kMissing));
    for (size_t l = at_.size(); l-- > 0;) {
      at_[l].task = view_.First(l);
      if (at_[l].task == kNoTask) continue;
      Arrive(at_[l]);
      open_.push_back(static_cast<uint32_t>(l));
    }
    while (!open_.empty()) {
      const uint32_t lane = open_.back();
      open_.pop_back();
      Follow(lane, played);
    }
    return done_ == view_.size();
  }

 private:
  static constexpr uint32_t kNoLane = 0xffffffff;
  static constexpr int64_t kMissing = std::numeric_limits<int64_t>::min();

  // Where a lane stands: at a task whose edges up to `edge` were looked at.
  struct At {
    uint32_t task = kNoTask;
    uint32_t edge = 0;
    int64_t begin = 0, until = kNever;
    LaneTask work;
    LaneState lane;
    uint32_t next_waiting = kNoLane;  // lane for the same task
  };

  void Arrive(At& at) {
    at.work = view_.TaskAt(at.task);
    at.edge = view_.EdgesBegin(at.task);
    at.begin = std::max({at.lane.bound[at.work.beside ? 1 : 0], at.work.earliest, int64_t{0}});
    at.until = kNever;
  }

  template <class Played>
  void Follow(uint32_t lane, const Played& played) {
    At& at = at_[lane];
    while (true) {
      const uint32_t i = at.task;
      for (const uint32_t last = view_.EdgesBegin(i + 1); at.edge < last; ++at.edge) {
        const LaneWait e = view_.EdgeAt(at.edge);
        int64_t arrives = e.lag;
        if (e.from != LaneWait::kKnown) {
          if (end_[e.from].ns == kMissing) {
            at.next_waiting = std::exchange(waiting_[e.from], lane);
            return;
          }
          arrives += (e.from_start ? start_ : end_)[e.from].ns;
        }
        int64_t& bound = e.to_start ? at.begin : at.until;
        bound = std::max(bound, arrives);
      }
      at.until = std::max(at.until, at.begin + at.work.duration);
      start_[i].ns = at.begin;
      end_[i].ns = at.until;
      at.lane.bound[0] = std::max(at.lane.bound[0], at.until + at.work.gap);
      at.lane.bound[1] = at.begin;
      played(i);
      ++done_;
      for (uint32_t other = waiting_[i]; other != kNoLane; other = at_[other].next_waiting) {
        open_.push_back(other);
      }
      at.task = view_.Next(i);
      if (at.task == kNoTask) return;
      Arrive(at);
    }
  }

  const View& view_;
  Instant* const start_;
  Instant* const end_;
  std::vector<At> at_;             // by lane
  std::vector<uint32_t> waiting_;  // by task: the last lane that waits for it
  std::vector<uint32_t> open_;     // lanes to be followed
  size_t done_ = 0;
};

}  // namespace daydream
