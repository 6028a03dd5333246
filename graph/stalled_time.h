// Where something held up the recorded program that is not a part of its steps: for whoever
// compares recorded times.
#pragma once

#include <utility>
#include <vector>

#include "base/time.h"

namespace daydream {

class StalledTime {
 public:
  StalledTime() : StalledTime({}, {}) {}
  // What was taken out of the graph, and what stays in it though no step does that every time.
  // REQUIRES: each in order, and none of its stretches overlap.
  StalledTime(std::vector<Interval> taken_out, std::vector<Interval> kept);

  // When this would have been recorded without what was taken out. O(log stretches).
  Instant Steady(Instant recorded) const;
  // How much of the time in between either kind takes, each by itself. O(log stretches).
  Duration HeldUp(Instant from, Instant until) const;

 private:
  // Stretches in order, with a sum of all before each.
  class Sums {
   public:
    explicit Sums(std::vector<Interval> stretches);
    Duration Before(Instant instant) const;

   private:
    std::vector<Interval> stretches_;
    std::vector<Duration> before_;
  };

  Sums taken_out_, kept_;
};

}  // namespace daydream
