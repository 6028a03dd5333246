#include "report/questions/dense_sweep.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

namespace daydream {
namespace {

// Chosen: docs/decisions/019-intervals-between-neighbours.md has what they give.
constexpr size_t kDense = 64, kLeastApart = 64, kMostParts = 16;
constexpr double kMostOffBetween = 0.001;

constexpr uint32_t kNone = 0xffffffff;

// The ends of both intervals, against the step.
using Ends = std::array<double, 4>;

// None where there is no interval to lie between.
std::optional<Ends> EndsOf(const PlayedRow& p) {
  const SweepRow& row = p.row;
  if (!row.code.empty() || row.bound || row.step <= Duration{} || !p.work) return {};
  if (!row.low || !row.high || !row.least_speedup || !row.most_speedup) return {};
  const double step = row.step.seconds();
  return Ends{row.low->seconds() / step, row.high->seconds() / step, *row.least_speedup * step,
              *row.most_speedup * step};
}

// Where `at` lies from `a`, 0, to `b`, 1; none: outside, or it is of another shape.
std::optional<double> PlaceOf(const PlayedRow& at, const PlayedRow& a, const PlayedRow& b) {
  if (!at.work || at.work->shape != a.work->shape || at.work->shape != b.work->shape) return {};
  const Duration all = b.work->time - a.work->time, part = at.work->time - a.work->time;
  // Values so near that rounded times are the same.
  if (part == Duration{}) return 0;
  if (all == Duration{}) return {};
  const double place = static_cast<double>(part.ns) / static_cast<double>(all.ns);
  return place > 0 && place <= 1 ? std::optional(place) : std::nullopt;
}

Ends Between(const Ends& a, const Ends& b, double place) {
  Ends ends;
  for (size_t i = 0; i < ends.size(); ++i) ends[i] = std::lerp(a[i], b[i], place);
  return ends;
}

bool SameWords(const SweepRow& a, const SweepRow& b) {
  return a.confidence == b.confidence && a.left_out == b.left_out && a.examples == b.examples;
}

// Whether the row in the middle lies between the others.
bool Straight(const PlayedRow& a, const PlayedRow& middle, const PlayedRow& b) {
  const std::optional<Ends> of_a = EndsOf(a), of_middle = EndsOf(middle), of_b = EndsOf(b);
  if (!of_a || !of_middle || !of_b) return false;
  if (!SameWords(a.row, middle.row) || !SameWords(a.row, b.row)) return false;
  const std::optional<double> place = PlaceOf(middle, a, b);
  if (!place) return false;
  const Ends expected = Between(*of_a, *of_b, *place);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!(std::fabs(expected[i] - (*of_middle)[i]) <= kMostOffBetween * (*of_middle)[i]))
      return false;
  }
  return true;
}

// "1.5", "25GB/s": a number, and what stands behind it.
struct Value {
  double number = 0;
  std::string_view unit;
};

std::optional<Value> ValueOf(std::string_view text) {
  Value value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value.number);
  if (error != std::errc()) return {};
  value.unit = text.substr(static_cast<size_t>(end - text.data()));
  return value;
}

// Whether `next` is one value further along the last axis, and the same in all others.
bool Continues(const SweepPoint& point, const SweepPoint& next) {
  if (point.sweep != next.sweep || point.values.empty()) return false;
  if (!std::equal(point.values.begin(), point.values.end() - 1, next.values.begin())) return false;
  const std::optional<Value> a = ValueOf(point.values.back()), b = ValueOf(next.values.back());
  return a && b && a->unit == b->unit && a->number < b->number;
}

}  // namespace

DenseSweep::DenseSweep(const SweepRunner& runner, std::span<const SweepPoint> points,
                       std::span<const std::vector<Application>> scenarios)
    : runner_(runner), scenarios_(scenarios), line_of_(points.size(), kNone) {
  FindLines(points);
  std::vector<size_t> all(points.size());
  std::iota(all.begin(), all.end(), size_t{0});
  MakeGroups(all);
}

void DenseSweep::FindLines(std::span<const SweepPoint> points) {
  if (!runner_.intervals()) return;
  for (size_t first = 0, end = 0; first < points.size(); first = end) {
    end = first + 1;
    while (end < points.size() && Continues(points[end - 1], points[end])) ++end;
    if (end - first < kDense) continue;
    std::fill(line_of_.begin() + static_cast<std::ptrdiff_t>(first),
              line_of_.begin() + static_cast<std::ptrdiff_t>(end),
              static_cast<uint32_t>(lines_.size()));
    const size_t size = end - first;
    lines_.push_back({first, size, std::max(kLeastApart, size / kMostParts)});
  }
  if (!lines_.empty()) known_ = std::make_unique<Known[]>(points.size());
}

// Those that are played without an interval: all, or what may lie between others. And those that
// are played whatever their neighbours say, which have others to go with.
void DenseSweep::MakeGroups(std::span<const size_t> rows) {
  groups_.clear();
  group_of_.assign(scenarios_.size(), kNone), nth_of_.assign(scenarios_.size(), kNone);
  std::vector<size_t> apart, between;
  for (size_t index : rows) {
    if (runner_.intervals() && line_of_[index] == kNone) continue;
    const bool is_apart = runner_.intervals() && IsApart(index);
    if (!is_apart || TellsIntervals(index)) (is_apart ? apart : between).push_back(index);
  }
  MakeGroupsOf(apart);
  MakeGroupsOf(between);
}

void DenseSweep::MakeGroupsOf(std::span<const size_t> rows) {
  std::vector<size_t> group;
  std::optional<size_t> place;  // where those of the group differ
  for (size_t index : rows) {
    const auto next =
        group.empty() ? std::nullopt : PlaceOfTimes(scenarios_[group.front()], scenarios_[index]);
    const bool fits = next && (!place || place == next) &&
                      group.size() < runner_.most_told(scenarios_[group.front()]);
    if (!fits) AddGroup(std::exchange(group, {}));
    place = fits ? next : std::nullopt;
    group.push_back(index);
  }
  AddGroup(std::move(group));
}

void DenseSweep::AddGroup(std::vector<size_t> rows) {
  constexpr size_t kFew = 3;  // to apply them together takes longer than one by itself
  if (rows.size() < kFew) return;
  for (size_t n = 0; n < rows.size(); ++n) {
    group_of_[rows[n]] = static_cast<uint32_t>(groups_.size());
    nth_of_[rows[n]] = static_cast<uint32_t>(n);
  }
  const size_t left = rows.size();
  groups_.emplace_back(new Group{std::move(rows), left, {}, false, nullptr});
}

std::shared_ptr<ToldRows> DenseSweep::ToldOf(size_t number) {
  Group& group = *groups_[number];
  std::unique_lock lock(group.mutex, std::try_to_lock);
  if (!lock.owns_lock()) {
    // Another thread is making it: one of the next is made meanwhile.
    const size_t end = std::min(number + kMostKept, groups_.size());
    for (size_t next = number + 1; next < end; ++next) {
      std::unique_lock ahead(groups_[next]->mutex, std::try_to_lock);
      if (!ahead.owns_lock() || groups_[next]->made) continue;
      Make(*groups_[next], std::move(ahead));
      break;
    }
    lock.lock();
  }
  if (!group.made) return Make(group, std::move(lock));
  return group.told;
}

std::shared_ptr<ToldRows> DenseSweep::Make(Group& group, std::unique_lock<std::mutex> lock) {
  std::vector<const std::vector<Application>*> rows;
  for (size_t row : group.rows) rows.push_back(&scenarios_[row]);
  std::shared_ptr<ToldRows> told = group.told = runner_.Tell(rows);
  group.made = true;
  lock.unlock();
  if (told == nullptr) return nullptr;
  Group* oldest = nullptr;
  {
    std::lock_guard keeping(keeping_);
    kept_.push_back(&group);
    if (kept_.size() > kMostKept) oldest = kept_.front(), kept_.pop_front();
  }
  if (oldest != nullptr) {
    std::lock_guard dropping(oldest->mutex);
    oldest->told.reset();
    oldest->made = false;  // once more, where somebody asks
  }
  return told;
}

bool DenseSweep::TellsIntervals(size_t index) const { return scenarios_[index].size() == 1; }

PlayedRow DenseSweep::PlayOne(size_t index, bool interval) {
  const std::vector<Application>& scenario = scenarios_[index];
  const bool grouped = group_of_[index] != kNone && (!interval || TellsIntervals(index));
  const std::shared_ptr<ToldRows> told = grouped ? ToldOf(group_of_[index]) : nullptr;
  if (told == nullptr) return runner_.Play(index, scenario, interval);
  return runner_.PlayTold(index, scenario, interval, *told, nth_of_[index]);
}

bool DenseSweep::IsApart(size_t index) const {
  const Line& line = lines_[line_of_[index]];
  const size_t at = index - line.first;
  return at % line.apart % (line.apart / 4) == 0 || at == line.size - 1;
}

const PlayedRow& DenseSweep::Play(size_t index) {
  Known& known = known_[index];
  std::lock_guard lock(known.mutex);
  if (known.played == nullptr) {
    known.played = std::make_unique<PlayedRow>(PlayOne(index, true));
  }
  return *known.played;
}

SweepRow DenseSweep::Between(size_t index, const PlayedRow& before, const PlayedRow& behind) {
  PlayedRow own = PlayOne(index, false);
  SweepRow& row = own.row;
  const std::optional<double> place = PlaceOf(own, before, behind);
  const bool lower = row.confidence == Confidence::kLow && before.row.confidence != row.confidence;
  const bool other = lower || !row.code.empty() || row.bound || row.step <= Duration{} ||
                     row.left_out != before.row.left_out || row.examples != before.row.examples ||
                     row.confidence == Confidence::kMeasured ||
                     row.confidence == Confidence::kGiven;
  if (other || !place) return Play(index).row;
  const auto [low, high, least, most] = daydream::Between(*EndsOf(before), *EndsOf(behind), *place);
  row.low = row.step.Scaled(low), row.high = row.step.Scaled(high);
  row.least_speedup = least / row.step.seconds(), row.most_speedup = most / row.step.seconds();
  row.confidence = before.row.confidence;
  row.between = true;
  return row;
}

bool DenseSweep::IsStraight(const Line& line, const Places& at) {
  const auto straight = [&](size_t a, size_t middle, size_t b) {
    if (a == middle) return true;  // nothing lies between
    return Straight(Play(line.first + a), Play(line.first + middle), Play(line.first + b));
  };
  return straight(at[0], at[2], at[4]) && straight(at[0], at[1], at[2]) &&
         straight(at[2], at[3], at[4]);
}

// What rows have in common goes with the last of them.
void DenseSweep::Done(size_t index) {
  if (group_of_[index] == kNone) return;
  Group& group = *groups_[group_of_[index]];
  std::lock_guard lock(group.mutex);
  if (group.left > 0 && --group.left == 0) group.told.reset();
}

SweepRow DenseSweep::Run(size_t index) {
  SweepRow row = RowOf(index);
  Done(index);
  return row;
}

SweepRow DenseSweep::RowOf(size_t index) {
  if (!runner_.intervals()) return PlayOne(index, false).row;
  if (line_of_[index] == kNone) return runner_.Run(index, scenarios_[index]);
  const Line& line = lines_[line_of_[index]];
  const size_t at = index - line.first;
  size_t before = at / line.apart * line.apart;
  size_t behind = std::min(before + line.apart, line.size - 1);
  while (true) {
    const size_t middle = (before + behind) / 2;
    const Places places = {before, (before + middle) / 2, middle, (middle + behind) / 2, behind};
    if (std::ranges::find(places, at) != places.end()) return Play(index).row;
    if (IsStraight(line, places)) {
      const auto* const next = std::ranges::upper_bound(places, at);
      return Between(index, Play(line.first + *(next - 1)), Play(line.first + *next));
    }
    (at < middle ? behind : before) = middle;
  }
}

void DenseSweep::PutInTurn(std::vector<size_t>& rows) {
  std::vector<size_t> ascending = rows;
  std::ranges::sort(ascending);
  MakeGroups(ascending);
  // No std::ranges: clang 14 takes no subrange of libstdc++.
  std::stable_partition(rows.begin(), rows.end(),
                        [&](size_t index) { return line_of_[index] == kNone || IsApart(index); });
}

}  // namespace daydream
