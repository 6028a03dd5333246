#include "graph/recent_ends.h"

#include <algorithm>

#include "base/sort_runs.h"

namespace daydream {
namespace {

// Chosen: searching so many streams takes about as long as finding out which need not be.
constexpr size_t kFewStreams = 64;

std::vector<LaneId> StreamsWithWork(const Builder& b) {
  std::vector<LaneId> streams;
  for (size_t lane = 0; lane < b.stream_ops.size(); ++lane) {
    if (!b.stream_ops[lane].empty()) streams.emplace_back(lane);
  }
  return streams;
}

}  // namespace

RecentEnds::RecentEnds(const Builder& b) : b_(b), all_(StreamsWithWork(b)) {
  if (all_.size() <= kFewStreams) return;
  ends_.reserve(b.ops.size());
  for (const GpuOp& op : b.ops) {
    ends_.push_back({op.end, op.lane, static_cast<uint32_t>(ends_.size())});
  }
  SortRuns(ends_, [](const End& x, const End& y) { return x.at < y.at; });
}

uint32_t RecentEnds::LastOf(LaneId lane, Instant until) const {
  const std::vector<uint32_t>& stream = b_.stream_ops[lane.index()];
  const auto it = std::partition_point(stream.begin(), stream.end(),
                                       [&](uint32_t op) { return b_.ops[op].end <= until; });
  return it == stream.begin() ? Builder::kNone : *(it - 1);
}

std::span<const LaneId> RecentEnds::Streams(Instant from, Instant until) {
  if (ends_.empty()) return all_;
  const auto first = std::ranges::lower_bound(ends_, from, {}, &End::at);
  const auto last = std::ranges::upper_bound(ends_, until, {}, &End::at);
  if (last <= first) return {};
  if (static_cast<size_t>(last - first) >= all_.size()) return all_;
  found_.clear();
  for (auto it = first; it != last; ++it) found_.push_back(it->lane);
  std::ranges::sort(found_);
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  return found_;
}

LatestEnds::LatestEnds(const Builder& b) : all_(StreamsWithWork(b)) {
  if (all_.size() > kFewStreams) latest_.resize(b.stream_ops.size(), Instant::Min());
}

void LatestEnds::Add(const GpuOp& op) {
  if (latest_.empty()) return;
  Instant& latest = latest_[op.lane.index()];
  if (op.end <= latest) return;
  by_end_.erase({latest, op.lane});
  by_end_.emplace(op.end, op.lane);
  latest = op.end;
}

std::span<const LaneId> LatestEnds::Streams(Instant from) {
  if (latest_.empty()) return all_;
  found_.clear();
  for (auto it = by_end_.lower_bound({from, LaneId(0)}); it != by_end_.end(); ++it) {
    found_.push_back(it->second);
  }
  std::ranges::sort(found_);
  return found_;
}

}  // namespace daydream
