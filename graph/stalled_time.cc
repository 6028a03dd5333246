#include "graph/stalled_time.h"

#include <algorithm>
#include <iterator>

namespace daydream {

StalledTime::Sums::Sums(std::vector<Interval> stretches) : stretches_(std::move(stretches)) {
  Duration before;
  for (const Interval& s : stretches_) {
    before_.push_back(before);
    before += s.end - s.begin;
  }
}

Duration StalledTime::Sums::Before(Instant instant) const {
  const auto next = std::ranges::lower_bound(stretches_, instant, {}, &Interval::begin);
  if (next == stretches_.begin()) return {};
  const auto last = std::prev(next);
  return before_[static_cast<size_t>(last - stretches_.begin())] +
         (std::min(instant, last->end) - last->begin);
}

StalledTime::StalledTime(std::vector<Interval> taken_out, std::vector<Interval> kept)
    : taken_out_(std::move(taken_out)), kept_(std::move(kept)) {}

Instant StalledTime::Steady(Instant recorded) const {
  return recorded - taken_out_.Before(recorded);
}

Duration StalledTime::HeldUp(Instant from, Instant until) const {
  return taken_out_.Before(until) - taken_out_.Before(from) + kept_.Before(until) -
         kept_.Before(from);
}

}  // namespace daydream
