#include "graph/clock_offset.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "graph/last_of_streams.h"

namespace daydream {
namespace {

// Chosen. One alone may be matched with the call of another: so many are out by about as much.
constexpr size_t kAlike = 3;
constexpr Duration kAbout = Duration::Us(10);
constexpr size_t kFewEarly = 10;
constexpr double kEarlyShare = 0.01;             // of operations with a call
constexpr double kLateShare = 0.05;              // of copies that were waited for
constexpr Duration kNoOffset = Duration::Us(2);  // times may be written in whole microseconds

// By how much each is out; the most of it that others come near.
std::optional<Duration> MostAlike(std::vector<Duration> out) {
  std::ranges::sort(out, std::greater<>());
  for (size_t i = 0; i + kAlike <= out.size(); ++i) {
    if (out[i] - out[i + kAlike - 1] <= kAbout) return out[i];
  }
  return std::nullopt;
}

using Gpu = std::pair<int32_t, int32_t>;  // rank and device

class Compared {
 public:
  explicit Compared(const Builder& b) : b_(b), last_(b) {
    for (const HostThread& thread : b.threads) CompareWaits(b.CallsOf(thread));
    for (const GpuOp& op : b.ops) CompareLaunch(op);
  }

  std::vector<ClockOffset> Offsets() {
    std::vector<ClockOffset> all;
    for (auto& [gpu, found] : found_) {
      auto late = Late(found), early = Early(found);
      if (late && !MayBeLate(gpu, *late)) late.reset();
      if (early && !MayBeEarly(found, *early)) early.reset();
      if (late.has_value() == early.has_value()) continue;
      ClockOffset offset{.rank = gpu.first, .device = gpu.second};
      if (late) {
        offset.late = *late;
        offset.impossible = Positive(found.behind).size() + Positive(found.whole).size();
        offset.seen = found.behind.size() + found.whole.size();
      } else {
        offset.late = -*early;
        offset.impossible = found.early.size();
        offset.seen = found.launched;
      }
      if (std::abs(offset.late.ns) < kNoOffset.ns) continue;
      all.push_back(offset);
    }
    return all;
  }

 private:
  struct Found {
    std::vector<Duration> behind;  // of copies: from the return of their wait to their end
    std::vector<Duration> whole;   // of all that was launched, from a return of its wait to its end
    std::vector<Duration> early;   // of operations before their calls
    size_t launched = 0;
  };

  static std::vector<Duration> Positive(const std::vector<Duration>& all) {
    std::vector<Duration> positive;
    std::ranges::copy_if(all, std::back_inserter(positive),
                         [](Duration d) { return d > Duration{}; });
    return positive;
  }

  static std::optional<Duration> Late(const Found& found) {
    const std::vector<Duration> late = Positive(found.behind);
    const double least = kLateShare * static_cast<double>(found.behind.size());
    std::optional<Duration> most;
    if (static_cast<double>(late.size()) >= least) most = MostAlike(late);
    // No copy of another stream is mistaken for one that was waited for here: where all are out.
    const Duration whole = found.whole.empty() ? Duration{} : std::ranges::min(found.whole);
    if (whole > Duration{}) most = std::max(most.value_or(Duration{}), whole);
    return most;
  }

  // Correlated with the calls of others, say: then times that would be set would be impossible,
  // too.
  bool MayBeLate(Gpu gpu, Duration late) {
    size_t impossible = 0;
    for (const GpuOp& op : b_.ops) {
      const Lane& lane = b_.trace.lanes[op.lane.index()];
      if (Gpu(lane.rank, lane.device) != gpu || op.call_index == Builder::kNone) continue;
      impossible += op.start - late < b_.calls[op.call_index].start;
    }
    const auto launched = static_cast<double>(found_[gpu].launched);
    return static_cast<double>(impossible) <= kEarlyShare * launched;
  }

  static bool MayBeEarly(const Found& found, Duration early) {
    const auto still_may = [&](Duration d) { return d + early <= Duration{}; };
    return std::ranges::all_of(found.behind, still_may) &&
           std::ranges::all_of(found.whole, still_may);
  }

  static std::optional<Duration> Early(const Found& found) {
    const double least = kEarlyShare * static_cast<double>(found.launched);
    if (found.early.size() < kFewEarly || static_cast<double>(found.early.size()) < least) {
      return std::nullopt;
    }
    return MostAlike(found.early);
  }

  Found& Of(const GpuOp& op) {
    const Lane& lane = b_.trace.lanes[op.lane.index()];
    return found_[{lane.rank, lane.device}];
  }

  bool ReadsToHost(const GpuOp& op) const {
    const uint32_t row = b_.trace.detail[op.row];
    if (b_.trace.kind[op.row] != EventKind::kMemcpy || row == Builder::kNone) return false;
    const CopyDetail& copy = b_.trace.copies[row];
    return copy.from == Memory::kDevice &&
           (copy.to == Memory::kPageable || copy.to == Memory::kPinned);
  }

  // A value is read by a copy, and by waiting for its stream right behind it.
  void CompareWaits(std::span<const HostCall> calls) {
    const GpuOp* read = nullptr;  // by the call before
    for (const HostCall& call : calls) {
      if (call.kind == CallKind::kQuery || call.kind == CallKind::kOther) continue;
      const bool waits = call.kind == CallKind::kStreamSync || call.kind == CallKind::kEventSync ||
                         call.kind == CallKind::kDeviceSync;
      if (waits && read != nullptr && read->end > call.start) {
        Of(*read).behind.push_back(read->end - call.end);
      }
      if (call.kind == CallKind::kDeviceSync) CompareAll(call);
      const uint32_t op = b_.ops_of_call[static_cast<size_t>(&call - b_.calls.data())].last;
      const bool copies = call.kind == CallKind::kCopyAsync || call.kind == CallKind::kCopy;
      read = copies && op != Builder::kNone && ReadsToHost(b_.ops[op]) ? &b_.ops[op] : nullptr;
      if (call.kind == CallKind::kCopy && read != nullptr && read->end > call.start) {
        Of(*read).behind.push_back(read->end - call.end);
      }
    }
  }

  // Of a process that works on one GPU: what others do is awaited by nobody here.
  void CompareAll(const HostCall& call) {
    for (const LastOfStreams::Change& change : last_.GoTo(call.start)) {
      const int32_t device = b_.trace.lanes[change.lane.index()].device;
      if (change.before == Builder::kNone) ++streams_of_[device];
      if (change.now == Builder::kNone && --streams_of_[device] == 0) streams_of_.erase(device);
    }
    if (streams_of_.size() != 1) return;
    const GpuOp& last = b_.ops[last_.Latest()];
    if (last.end > call.start) Of(last).whole.push_back(last.end - call.end);
  }

  void CompareLaunch(const GpuOp& op) {
    if (op.call_index == Builder::kNone) return;
    Found& found = Of(op);
    ++found.launched;
    const Instant called = b_.calls[op.call_index].start;
    if (op.start < called) found.early.push_back(called - op.start);
  }

  const Builder& b_;
  LastOfStreams last_;
  std::map<int32_t, size_t> streams_of_;  // by device: on which something was launched
  std::map<Gpu, Found> found_;
};

}  // namespace

std::vector<ClockOffset> FindClockOffsets(const Builder& b) { return Compared(b).Offsets(); }

std::shared_ptr<const Trace> WithClocksSet(const Trace& trace,
                                           const std::vector<ClockOffset>& offsets) {
  auto set = std::make_shared<Trace>(trace);
  for (size_t lane = 0; lane < trace.lanes.size(); ++lane) {
    const Lane& stream = trace.lanes[lane];
    if (stream.kind != LaneKind::kStream) continue;
    const auto of = std::ranges::find_if(offsets, [&](const ClockOffset& o) {
      return o.rank == stream.rank && o.device == stream.device;
    });
    if (of == offsets.end()) continue;
    for (size_t row = trace.lane_begin[lane]; row < trace.lane_begin[lane + 1]; ++row) {
      set->start[row] = std::max(set->start[row] - of->late, Instant{});
    }
  }
  return set;
}

}  // namespace daydream
