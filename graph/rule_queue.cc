// Rules Q1-Q4 (graph/queue.h): how deep the launch queue of each stream is, which calls were
// blocked by it, and the edges that would block others if the GPU were slower.
//
// Q1: the call in place p returns when the operation in place p - (depth - 1) starts. Q2: the depth
// is read from calls that took long while the queue was deep, if enough of them agree; runs of
// waits for other streams count as a place where more of them agree so. Q3: every call whose
// releasing operation starts inside of it was blocked, however short it is; what it does for a
// millisecond and more once there is room is work of its own. Q4: streams whose long
// calls no depth explains may share a queue.
#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/median.h"
#include "graph/builder.h"
#include "graph/large_pages.h"
#include "graph/queue.h"
#include "graph/queue_places.h"
#include "graph/quick_calls.h"
#include "graph/shared_queues.h"
#include "trace/rows/rows_of_kind.h"

namespace daydream {
namespace {

constexpr size_t kManyWaits = 8;                      // rule Q2, see graph/queue.h
constexpr uint32_t kDepthsAround = 16;                // rule Q2
constexpr Duration kReleaseSpread = Duration::Us(2);  // of kQueueReleaseLag, as measured
// A record of an event that found no room returns this long after there is some, at most. Launches
// do after 5 us (kQueueReleaseLag); the rest is left for the jitter of a host.
constexpr Duration kRecordReturns = Duration::Us(30);
// A launch that found room and returns so much later did something else. Of 25,700 calls that were
// blocked in recordings of a V100, an A100, H100s and an H200 none returned more than 0.33 ms late.
constexpr Duration kOwnWork = Duration::Ms(1);
constexpr Instant kNever{std::numeric_limits<int64_t>::max() / 4};

using Samples = std::vector<std::vector<Duration>>;  // durations of calls, by NameId

// Mean of the middle 80 %. O(n): nothing is sorted. What is cut off counts as the value that it
// stands next to, and is taken off again.
Duration TrimmedMean(const std::vector<Duration>& s) {
  const size_t cut = s.size() / 10;
  const Duration least = Ranked(s, cut), most = Ranked(s, s.size() - 1 - cut);
  int64_t sum = 0;
  for (Duration d : s) sum += std::clamp(d, least, most).ns;
  sum -= static_cast<int64_t>(cut) * (least.ns + most.ns);
  return Duration{sum / static_cast<int64_t>(s.size() - 2 * cut)};
}

// What waits in a launch queue. Launches at the end of a window count though their operation was
// not recorded: the queue was as full with them.
struct QueuePlace {
  uint32_t call;                  // of Builder::calls, kNone: not recorded
  TaskId operation;               // None: not recorded
  Instant start;                  // of the operation, or where it gives the place back
  Instant called;                 // when it was submitted, or what came before it
  Anchor frees = Anchor::kStart;  // of the operation
};

class QueueRule {
  // A call that took long while the queue was deep: its place, and when it returned.
  struct SlowCall {
    size_t place = 0;
    Instant end;
  };

  // How full the queue may be, and how long after the start of the releasing operation a blocked
  // call returns: kQueueReleaseLag, unless the clock of the GPU is off against the host's.
  struct Room {
    uint32_t depth = 0;
    bool measured = false;  // false: as such GPUs have it
    size_t agreeing = 0;    // calls that it is measured by
    Duration lag = kQueueReleaseLag;
    std::vector<SlowCall> slow;
    std::vector<LongCall> long_calls;  // for whatever reason
  };

  // What waits in it is in the order of the calls.
  struct Queue {
    std::vector<LaneId> streams;  // that share it
    std::vector<QueuePlace> places;
    Room room;
  };

 public:
  QueueRule(Builder& b, const QuickCalls& quick)
      : b_(b), quick_(quick), unblocked_(b.trace.names->size()), records_(RecordsOf(b)) {}

  void FindAll(const std::vector<std::vector<TaskId>>& unrecorded, bool nvidia) {
    std::vector<Queue> queues;
    const auto waits_of = WaitsForMany();
    for (size_t i = 0; i < b_.stream_ops.size(); ++i) {
      if (b_.stream_ops[i].empty()) continue;
      std::vector<QueuePlace> places = PlacesOf(LaneId(i), unrecorded[i], {});
      Room room = RoomOf(places, nvidia);
      if (const auto waits = waits_of.find(b_.trace.lanes[i].number); waits != waits_of.end()) {
        std::vector<QueuePlace> with = PlacesOf(LaneId(i), unrecorded[i], waits->second);
        Room counted = RoomOf(with, nvidia);
        if (counted.agreeing > room.agreeing) places = std::move(with), room = std::move(counted);
      }
      queues.push_back({{LaneId(i)}, std::move(places), std::move(room)});
    }
    if (nvidia) FindShared(queues);
    size_t places = 0;
    for (const Queue& queue : queues) places += queue.places.size();
    ReserveLarge(pairs_, places);
    for (const Queue& queue : queues) Find(queue);
  }

  void Find(const Queue& queue) {
    const std::vector<QueuePlace>& places = queue.places;
    const Room& room = queue.room;
    for (LaneId stream : queue.streams) b_.graph.mutable_lane(stream).queue_depth = room.depth;
    const Duration clock = room.lag - kQueueReleaseLag;
    const std::vector<uint32_t> depths = DepthsOf(places, room);
    uint32_t last_call = Builder::kNone;
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i].call == last_call || !MayWait(places[i].call)) continue;
      last_call = places[i].call;
      const HostCall& call = b_.calls[last_call];
      const uint32_t depth = depths[i];
      const QueuePlace* release = depth > 1 && i + 1 >= depth ? &places[i + 1 - depth] : nullptr;
      if (release != nullptr && !release->operation.valid()) break;  // 1021 and more unrecorded
      if (release == nullptr || release->start + clock <= call.start) {
        unblocked_[call.name.index()].push_back(call.duration());
      }
      if (release != nullptr)
        pairs_.push_back({release->start, room.lag, release->operation, last_call, release->frees});
    }
    FindRecords(queue, depths);
  }

  // Records of events find no room either, though they take none for long: those that took long and
  // return when the operation does that would let the next launch return.
  void FindRecords(const Queue& queue, const std::vector<uint32_t>& depths) {
    const Room& room = queue.room;
    if (!room.measured) return;
    const Duration clock = room.lag - kQueueReleaseLag;
    for (LaneId stream : queue.streams) {
      for (uint32_t record : records_[stream.index()]) {
        const HostCall& call = b_.calls[record];
        if (b_.waits[call.task.index()] || !quick_.IsLong(call) || !quick_.IsSlow(call)) continue;
        const auto next =
            std::ranges::upper_bound(queue.places, call.start, {}, &QueuePlace::called);
        const auto i = static_cast<size_t>(next - queue.places.begin());
        const uint32_t depth = i < depths.size() ? depths[i] : room.depth;
        if (i + 1 < depth) continue;
        const QueuePlace& release = queue.places[i + 1 - depth];
        const Instant freed = release.start + clock;
        if (!release.operation.valid() || freed <= call.start) continue;
        if (freed > call.end || call.end - freed > kRecordReturns) continue;
        pairs_.push_back({release.start, room.lag, release.operation, record, release.frees});
      }
    }
  }

  // Rule Q3.
  void Couple() {
    std::vector<Duration> own = quick_.by_name();
    for (size_t i = 0; i < own.size(); ++i) {
      if (!unblocked_[i].empty()) own[i] = TrimmedMean(unblocked_[i]);
    }
    for (const auto& [started, usual, operation, index, frees] : pairs_) {
      const HostCall& call = b_.calls[index];
      const Duration slack = call.end - started;
      const Duration clock = usual - kQueueReleaseLag;
      if (slack < clock) continue;  // refuted: it returned while the queue was this full
      Duration lag = std::min(usual, slack);
      if (started + clock > call.start) {
        ++b_.report.queue_blocked;
        if (slack > usual + kOwnWork) {
          SplitOff(call, operation, started + usual, usual, frees);
          continue;
        }
        Task& task = b_.graph.mutable_task(call.task);
        task.duration = std::min(task.duration, own[task.name.index()]);
        lag = b_.typical_lags() ? usual : slack;
        b_.waits[call.task.index()] = true;
      }
      b_.AddEdge(operation, call.task, lag, Rule::kQueue, frees, Anchor::kEnd);
    }
  }

 private:
  bool MayWait(uint32_t index) const {
    if (index == Builder::kNone) return false;
    const HostCall& call = b_.calls[index];
    return MayBlock(call.kind) && !b_.waits[call.task.index()];
  }

  struct Pair {
    Instant started;  // the operation that makes room
    Duration lag;     // usual, from then to the return of the call
    TaskId operation;
    uint32_t call;  // of Builder::calls
    Anchor frees;
  };

  // A blocked call that returns long after it found room becomes a waiting part and a working part.
  void SplitOff(const HostCall& call, TaskId operation, Instant room, Duration lag, Anchor frees) {
    Task& work = b_.graph.mutable_task(call.task);
    const Task wait{.earliest = std::exchange(work.earliest, Instant{}),
                    .name = work.name,
                    .lane = work.lane,
                    .scope = work.scope,
                    .kind = TaskKind::kWait};
    work.duration = call.end - room;
    b_.SetStart(call.task, room);
    const TaskId waits = b_.InsertBefore(call.task, wait, call.start, room);
    b_.waits.resize(b_.graph.size(), false);
    b_.waits[waits.index()] = true;
    b_.AddEdge(operation, waits, lag, Rule::kQueue, frees, Anchor::kEnd);
  }

  // By the number of the stream: when it was told to wait for kManyWaits others and more, without
  // work of any stream between, in order.
  absl::flat_hash_map<int64_t, std::vector<Instant>> WaitsForMany() const {
    if (b_.trace.syncs.empty()) return {};
    struct Run {
      size_t waits = 0;
      Instant first;
    };
    absl::flat_hash_map<int64_t, std::vector<Instant>> found;
    absl::flat_hash_map<int64_t, Run> runs;  // since the last call that takes a place
    for (const HostThread& thread : b_.threads) {
      runs.clear();
      for (const HostCall& call : b_.CallsOf(thread)) {
        if (call.kind == CallKind::kStreamWait) {
          const SyncDetail* sync = SyncOf(call.task);
          if (sync == nullptr) continue;
          Run& run = runs[sync->stream];
          if (run.waits++ == 0) run.first = call.start;
        } else if (MayBlock(call.kind) && !runs.empty()) {
          for (const auto& [stream, run] : runs) {
            if (run.waits >= kManyWaits) found[stream].push_back(run.first);
          }
          runs.clear();
        }
      }
    }
    for (auto& [stream, waits] : found) std::ranges::sort(waits);
    return found;
  }

  // The record of the call, which says who waits.
  const SyncDetail* SyncOf(TaskId call) const {
    const uint32_t row = b_.graph.task(call).event;
    return row == Builder::kNone ? nullptr : b_.SyncOf(b_.trace.correlation[row]);
  }

  // By stream: the calls that record events on it which others wait for, by their start.
  static std::vector<std::vector<uint32_t>> RecordsOf(const Builder& b) {
    std::vector<std::vector<uint32_t>> records(b.stream_ops.size());
    absl::flat_hash_map<std::pair<int32_t, int64_t>, size_t> streams;  // by device and number
    for (size_t i = 0; i < records.size(); ++i) {
      const Lane& lane = b.trace.lanes[i];
      if (lane.kind == LaneKind::kStream) streams[{lane.device, lane.number}] = i;
    }
    for (size_t row : RowsOf(b.trace, EventKind::kSync)) {
      if (b.trace.detail[row] == Builder::kNone) continue;
      const SyncDetail& sync = b.trace.syncs[b.trace.detail[row]];
      const uint32_t call = b.CallIndex(sync.record_correlation);
      if (call == Builder::kNone || b.calls[call].kind != CallKind::kEventRecord) continue;
      const int32_t device = b.trace.lanes[b.trace.lane[row].index()].device;
      const auto stream = streams.find({device, sync.wait_on_stream});
      if (stream != streams.end()) records[stream->second].push_back(call);
    }
    for (std::vector<uint32_t>& calls : records) {
      std::ranges::sort(calls, {}, [&](uint32_t i) { return std::pair(b.calls[i].start, i); });
      calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
    }
    return records;
  }

  // Each of `waits` stands before the operation that is submitted next, and gives its place back
  // when the one before is over.
  std::vector<QueuePlace> PlacesOf(LaneId stream, const std::vector<TaskId>& unrecorded,
                                   const std::vector<Instant>& waits) const {
    std::vector<QueuePlace> places;
    Instant called = Instant::Min();
    auto wait = waits.begin();
    ReserveLarge(places, b_.stream_ops[stream.index()].size() + unrecorded.size());
    const auto add = [&](uint32_t call, TaskId operation, Instant start, Anchor frees) {
      if (call != Builder::kNone) called = std::max(called, b_.calls[call].start);
      places.push_back({call, operation, start, called, frees});
    };
    const auto called_at = [&](const GpuOp& op) { return b_.calls[op.call_index].start; };
    const GpuOp* before = nullptr;
    for (uint32_t i : b_.stream_ops[stream.index()]) {
      const GpuOp& op = b_.ops[i];
      const GpuOp* last = std::exchange(before, &op);
      if (!op.takes_place) continue;
      for (; op.call.valid() && wait != waits.end() && *wait < called_at(op); ++wait) {
        called = std::max(called, *wait);
        if (last == nullptr) {
          add(Builder::kNone, op.task, op.start, Anchor::kStart);
        } else {
          add(Builder::kNone, last->task, last->end, Anchor::kEnd);
        }
      }
      add(op.call_index, op.task, op.start, Anchor::kStart);
    }
    for (TaskId call : unrecorded) add(b_.IndexOf(call), TaskId::None(), kNever, Anchor::kStart);
    return places;
  }

  // Rule Q4, for each GPU: streams whose long calls no depth of their own explains.
  void FindShared(std::vector<Queue>& queues) {
    std::map<std::pair<int32_t, int32_t>, std::vector<size_t>> by_gpu;
    for (size_t i = 0; i < queues.size(); ++i) {
      if (queues[i].room.measured) continue;
      const Lane& lane = b_.graph.lane(queues[i].streams.front()).lane;
      by_gpu[{lane.rank, lane.device}].push_back(i);
    }
    uint32_t number = 0;
    for (const auto& [gpu, members] : by_gpu) {
      if (members.size() < 2 || members.size() > kMostStreams) continue;
      std::vector<size_t> blocked;
      std::vector<LongCall> calls;
      for (size_t m = 0; m < members.size(); ++m) {
        const std::vector<LongCall>& own = queues[members[m]].room.long_calls;
        if (own.size() < kLeastBlockedCalls) continue;
        blocked.push_back(m);
        calls.insert(calls.end(), own.begin(), own.end());
      }
      if (calls.empty()) continue;
      std::vector<StreamPlaces> streams(members.size());
      for (size_t m = 0; m < members.size(); ++m) {
        ReserveLarge(streams[m].submitted, queues[members[m]].places.size());
        ReserveLarge(streams[m].started, queues[members[m]].places.size());
        for (const QueuePlace& place : queues[members[m]].places) {
          streams[m].submitted.push_back(place.called);
          streams[m].started.push_back(place.start);
        }
      }
      const std::vector<size_t> found =
          StreamsOfOneQueue(streams, blocked, calls, kDefaultQueueDepth);
      if (found.size() < 2) continue;
      Queue together;
      for (size_t m : found) {
        const Queue& own = queues[members[m]];
        together.streams.push_back(own.streams.front());
        together.places.insert(together.places.end(), own.places.begin(), own.places.end());
      }
      std::ranges::stable_sort(together.places, {}, &QueuePlace::called);
      together.room = RoomOf(together.places, true);
      if (!together.room.measured) continue;
      ++number;
      for (LaneId stream : together.streams) b_.graph.mutable_lane(stream).shared_queue = number;
      for (size_t m : found) queues[members[m]] = {};
      queues.push_back(std::move(together));
    }
  }

  static Duration Off(Duration lag) {
    return std::max(lag - kQueueReleaseLag, kQueueReleaseLag - lag);
  }

  static Duration LagAt(const std::vector<QueuePlace>& places, const SlowCall& call,
                        uint32_t depth) {
    return call.end - places[call.place + 1 - depth].start;
  }

  // The calls that would return equally long after what releases them, at this depth.
  struct Agreeing {
    uint32_t depth = 0;
    size_t calls = 0;
    Duration lag;
  };
  static Agreeing AgreeingAt(const std::vector<QueuePlace>& places,
                             const std::vector<SlowCall>& slow, uint32_t depth) {
    std::vector<Duration> lags;
    lags.reserve(slow.size());
    for (const SlowCall& call : slow) {
      if (call.place + 1 >= depth) lags.push_back(LagAt(places, call, depth));
    }
    std::sort(lags.begin(), lags.end());
    Agreeing best{.depth = depth, .calls = 0, .lag = {}};
    for (size_t first = 0, last = 0; first < lags.size(); ++first) {
      while (last < lags.size() && lags[last] - lags[first] <= kReleaseSpread * 2) ++last;
      if (last - first <= best.calls) continue;
      best.calls = last - first;
      best.lag = lags[first + best.calls / 2];
    }
    return best;
  }

  // Rule Q2: at the right depth blocked calls return equally long after what releases them; one
  // place off, they differ by what operations take.
  Room RoomOf(const std::vector<QueuePlace>& places, bool nvidia) const {
    Room room;
    std::vector<uint32_t> in_flight;
    uint32_t unblocked = 0, last_call = Builder::kNone;
    size_t started = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i].call == Builder::kNone) continue;
      const HostCall& call = b_.calls[places[i].call];
      if (!MayBlock(call.kind)) continue;
      while (started < i && places[started].start <= call.end) ++started;
      const auto now = static_cast<uint32_t>(i - started + 1);
      const bool is_long = quick_.IsLong(call), is_slow = quick_.IsSlow(call);
      const bool slow = is_long || is_slow;
      if (!slow) unblocked = std::max(unblocked, now);
      const bool long_by_itself = call.kind == CallKind::kGraphLaunch;
      if (places[i].call != last_call && !b_.waits[call.task.index()]) {
        last_call = places[i].call;
        if (is_long && is_slow && !long_by_itself)
          room.long_calls.push_back({call.start, call.end});
      }
      if (!slow || now < kDeepInFlight || long_by_itself) continue;
      room.slow.push_back({i, call.end});
      in_flight.push_back(now);
    }
    room.depth = nvidia ? std::max(kDefaultQueueDepth, unblocked + 1) : 0;
    if (in_flight.size() < kLeastBlockedCalls) return room;
    const size_t enough = std::max(kLeastBlockedCalls, room.slow.size() / 4);
    const uint32_t middle = Median(in_flight);
    std::vector<Agreeing> candidates;
    size_t most = 0;
    for (uint32_t depth = middle - kDepthsAround; depth <= middle + kDepthsAround; ++depth) {
      const Agreeing agreeing = AgreeingAt(places, room.slow, depth);
      if (agreeing.calls < enough || Off(agreeing.lag) > kClockSkew) continue;
      candidates.push_back(agreeing);
      most = std::max(most, agreeing.calls);
    }
    // Where all operations take equally long, any depth will do: the clock is off least, then.
    Duration off = Duration::Max();
    for (const Agreeing& c : candidates) {
      if (c.calls * 10 < most * 9 || Off(c.lag) >= off) continue;
      off = Off(c.lag);
      room.depth = c.depth;
      room.measured = true;
      room.agreeing = c.calls;
      room.lag = off > kReleaseSpread ? c.lag : kQueueReleaseLag;
    }
    return room;
  }

  static bool Fits(const std::vector<QueuePlace>& places, const SlowCall& call, uint32_t depth,
                   Duration lag) {
    if (depth < 2 || call.place + 1 < depth) return false;
    const Duration off = LagAt(places, call, depth) - lag;
    return std::max(off, -off) <= kReleaseSpread;
  }

  // The depth at each place, of what was recorded: where operations were lost, fewer fill the
  // queue. Three blocked calls in a row that return after an operation so many places off tell.
  static std::vector<uint32_t> DepthsOf(const std::vector<QueuePlace>& places, const Room& room) {
    std::vector<uint32_t> depths = LargeVector(places.size(), room.depth);
    const std::vector<SlowCall>& slow = room.slow;
    uint32_t here = room.depth;
    for (size_t i = 0; room.measured && i + 2 < slow.size(); ++i) {
      const auto fits = [&](uint32_t depth) {
        return Fits(places, slow[i], depth, room.lag) &&
               Fits(places, slow[i + 1], depth, room.lag) &&
               Fits(places, slow[i + 2], depth, room.lag);
      };
      if (Fits(places, slow[i], here, room.lag)) continue;
      for (uint32_t off = 1; off <= std::min(kMostLostPlaces, here); ++off) {
        if (!fits(here - off) && !fits(here + off)) continue;
        here = fits(here - off) ? here - off : here + off;
        std::fill(depths.begin() + static_cast<std::ptrdiff_t>(slow[i].place), depths.end(), here);
        break;
      }
    }
    return depths;
  }

  Builder& b_;
  const QuickCalls& quick_;
  Samples unblocked_;
  std::vector<std::vector<uint32_t>> records_;  // of events, by stream
  std::vector<Pair> pairs_;
};

}  // namespace

void AddQueueLimits(Builder& b) {
  const bool nvidia = !b.hip;
  const QuickCalls quick(b);
  if (nvidia) AddBacklog(b, quick);
  QueueRule rule(b, quick);
  rule.FindAll(UnrecordedLaunches(b), nvidia);
  rule.Couple();
}

}  // namespace daydream
