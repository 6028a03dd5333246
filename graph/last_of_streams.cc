#include "graph/last_of_streams.h"

#include <algorithm>

#include "base/sort_runs.h"
#include "graph/search_near.h"

namespace daydream {
namespace {

// Chosen, as of recent ends: asking so many streams takes about as long as finding out which.
constexpr size_t kFewStreams = 64;

}  // namespace

LastOfStreams::LastOfStreams(const Builder& b) : b_(b), last_(b.stream_ops.size(), Builder::kNone) {
  for (size_t lane = 0; lane < b.stream_ops.size(); ++lane) {
    if (!b.stream_ops[lane].empty()) all_.emplace_back(lane);
  }
}

bool LastOfStreams::HasMany() const { return all_.size() > kFewStreams; }

std::span<const LaneId> LastOfStreams::Launched(Instant t) {
  if (!HasMany()) return all_;
  if (launches_.empty()) {
    launches_.reserve(b_.ops.size());
    for (const GpuOp& op : b_.ops) launches_.push_back({op.call_start, op.lane});
    SortRuns(launches_, [](const Launch& x, const Launch& y) { return x.at < y.at; });
  }
  const size_t from = behind_;
  behind_ =
      PartitionPointNear(launches_.size(), from, [&](size_t i) { return launches_[i].at < t; });
  const auto [first, last] = std::minmax(from, behind_);
  if (last - first >= all_.size()) return all_;
  launched_.clear();
  for (size_t i = first; i < last; ++i) launched_.push_back(launches_[i].lane);
  std::ranges::sort(launched_);
  launched_.erase(std::unique(launched_.begin(), launched_.end()), launched_.end());
  return launched_;
}

std::span<const LastOfStreams::Change> LastOfStreams::GoTo(Instant t) {
  changes_.clear();
  for (const LaneId lane : Launched(t)) {
    const uint32_t now = b_.LastLaunchedBefore(lane, t);
    uint32_t& last = last_[lane.index()];
    if (now == last) continue;
    if (last != Builder::kNone) by_end_.erase({b_.ops[last].end, lane});
    if (now != Builder::kNone) by_end_.emplace(b_.ops[now].end, lane);
    changes_.push_back({.lane = lane, .before = last, .now = now});
    last = now;
  }
  return changes_;
}

uint32_t LastOfStreams::LatestBy(Instant limit) const {
  auto latest = by_end_.upper_bound({limit, LaneId::None()});
  if (latest == by_end_.begin()) return Builder::kNone;
  latest = by_end_.lower_bound({std::prev(latest)->first, LaneId(0)});
  return Of(latest->second);
}

}  // namespace daydream
