#include "trace/rows/far_events.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace daydream {
namespace {

constexpr size_t kBuckets = 4096;

// The whole in equal pieces, with the number of instants in each.
class Buckets {
 public:
  Buckets(Instant first, Instant last)
      : first_(first.ns),
        width_((static_cast<uint64_t>(last.ns) - static_cast<uint64_t>(first.ns)) / kBuckets + 1),
        count_(kBuckets) {}

  size_t Of(Instant t) const {
    return (static_cast<uint64_t>(t.ns) - static_cast<uint64_t>(first_)) / width_;
  }
  void Add(Instant t) { ++count_[Of(t)]; }

  // The stretch with most instants: half of them if any has, else that of the fullest piece.
  void FindMain() {
    const uint64_t all = std::accumulate(count_.begin(), count_.end(), uint64_t{0});
    uint64_t before = 0;
    size_t middle = 0;
    while ((before += count_[middle]) * 2 < all) ++middle;
    GrowFrom(middle);
    const auto begin = count_.begin() + static_cast<ptrdiff_t>(begin_);
    const auto end = count_.begin() + static_cast<ptrdiff_t>(end_);
    if (std::accumulate(begin, end, uint64_t{0}) * 2 >= all) return;
    GrowFrom(static_cast<size_t>(std::max_element(count_.begin(), count_.end()) - count_.begin()));
  }

  // Over all gaps that are not far.
  void GrowFrom(size_t piece) {
    begin_ = piece;
    end_ = begin_ + 1;
    for (;;) {
      const size_t left = GapLeft(), right = GapRight();
      const size_t gap = std::min(left, right);
      if (gap == kNone || IsFar(gap)) {
        gap_ = gap;
        return;
      }
      if (left <= right) begin_ -= left + 1;
      if (right < left) end_ += right + 1;
    }
  }
  bool all() const { return gap_ == kNone; }
  bool InMain(Instant t) const { return Of(t) >= begin_ && Of(t) < end_; }
  Duration gap() const { return Duration::Ns(static_cast<int64_t>(gap_ * width_)); }
  Instant main_begin() const { return {first_ + static_cast<int64_t>(begin_ * width_)}; }
  Instant main_end() const { return {first_ + static_cast<int64_t>(end_ * width_)}; }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  // Empty pieces up to the next one that is not; kNone when there is none.
  size_t GapLeft() const {
    for (size_t i = begin_; i-- > 0;) {
      if (count_[i] > 0) return begin_ - 1 - i;
    }
    return kNone;
  }
  size_t GapRight() const {
    for (size_t i = end_; i < kBuckets; ++i) {
      if (count_[i] > 0) return i - end_;
    }
    return kNone;
  }
  // The gap is at least `pieces` long, and what is in the middle at most end_ - begin_.
  bool IsFar(size_t pieces) const {
    return pieces * width_ >= static_cast<uint64_t>(kShortestFarGap.ns) &&
           pieces >= static_cast<size_t>(kFarGapFactor) * (end_ - begin_);
  }

  int64_t first_;
  uint64_t width_;
  std::vector<uint32_t> count_;
  size_t begin_ = 0, end_ = 0, gap_ = kNone;
};

}  // namespace

std::optional<FarEvents> FindFarEvents(const EachEvent& each) {
  uint64_t count = 0;
  Instant first{INT64_MAX}, last{INT64_MIN};
  each([&](Instant begin, Instant end) {
    ++count;
    first = std::min(first, begin);
    last = std::max(last, end);
  });
  const uint64_t whole = static_cast<uint64_t>(last.ns) - static_cast<uint64_t>(first.ns);
  if (count < 2 || whole < static_cast<uint64_t>(kShortestFarGap.ns)) return std::nullopt;
  Buckets buckets(first, last);
  each([&](Instant begin, Instant end) {
    buckets.Add(begin);
    buckets.Add(end);
  });
  buckets.FindMain();
  if (buckets.all()) return std::nullopt;
  FarEvents found{
      .begin = buckets.main_begin(), .end = buckets.main_end(), .gap = buckets.gap(), .all = count};
  each([&](Instant begin, Instant end) {
    found.far += !buckets.InMain(begin) || !buckets.InMain(end);
  });
  return found;
}

std::string RoughTime(Duration d) {
  const double s = d.seconds();
  constexpr double kHour = 3600, kDay = 24 * kHour, kYear = 365.25 * kDay;
  if (s < 2 * kHour) return fmt::format("{:.1f} s", s);
  if (s < 2 * kDay) return fmt::format("{:.1f} hours", s / kHour);
  if (s < kYear) return fmt::format("{:.1f} days", s / kDay);
  return fmt::format("{:.1f} years", s / kYear);
}

}  // namespace daydream
