// Rules Q1-Q3 (graph/queue.h): how deep the launch queue of each stream is, which calls were
// blocked by it, and the edges that would block others if the GPU were slower.
//
// Q1: the call in place p returns when the operation in place p - (depth - 1) starts. Q2: the depth
// is read from calls that took long while the queue was deep, if enough of them agree. Q3: every
// call whose releasing operation starts inside of it was blocked, however short it is.
#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "base/median.h"
#include "graph/builder.h"
#include "graph/queue.h"

namespace daydream {
namespace {

constexpr uint32_t kDeepInFlight = 512;               // rule Q2
constexpr Duration kLongCall = Duration::Us(30);      // rule Q2
constexpr size_t kLeastBlockedCalls = 20;             // rule Q2
constexpr uint32_t kDepthsAround = 16;                // rule Q2
constexpr Duration kReleaseSpread = Duration::Us(2);  // of kQueueReleaseLag, as measured
constexpr uint32_t kMostLostPlaces = 64;              // operations of one stream, of its last 1000
constexpr Instant kNever{std::numeric_limits<int64_t>::max() / 4};

bool MayBlock(CallKind kind) {
  return kind == CallKind::kLaunch || kind == CallKind::kGraphLaunch ||
         kind == CallKind::kCopyAsync || kind == CallKind::kMemset;
}

using Samples = std::vector<std::vector<Duration>>;  // durations of calls, by NameId

// What a call of each API takes when nothing is in its way: the first quartile of its durations.
// Good enough to tell slow calls; the durations that stay are TrimmedMeans of unblocked calls.
std::vector<Duration> QuickCalls(const Builder& b) {
  Samples samples(b.trace.names->size());
  for (const HostThread& thread : b.threads) {
    for (TaskId t : thread.tasks) {
      if (MayBlock(b.KindOf(t))) {
        samples[b.graph.task(t).name.index()].push_back(b.RecordedDuration(t));
      }
    }
  }
  std::vector<Duration> quick(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!samples[i].empty()) quick[i] = Ranked(samples[i], samples[i].size() / 4);
  }
  return quick;
}

// Mean of the middle 80 %.
Duration TrimmedMean(std::vector<Duration>& s) {
  std::sort(s.begin(), s.end());
  size_t cut = s.size() / 10;
  int64_t sum = 0;
  for (size_t k = cut; k < s.size() - cut; ++k) sum += s[k].ns;
  return Duration{sum / static_cast<int64_t>(s.size() - 2 * cut)};
}

// What waits in a launch queue. Launches at the end of a window count though their operation was
// not recorded: the queue was as full with them.
struct QueuePlace {
  TaskId call;       // None: not recorded
  TaskId operation;  // None: not recorded
  Instant start;     // of the operation
};

// What became of a call that submits work.
struct Outcome {
  LaneId stream;       // None: no operation was recorded
  bool place = false;  // it took a place in the stream's queue
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// Copies often alternate between kinds; longer patterns are rare.
constexpr size_t kLongestPattern = 8, kPatternOver = 64;

// After how many calls outcomes repeat, in nine of ten of the last; 0: they do not.
size_t PeriodOf(std::span<const Outcome> past) {
  for (size_t period = 1; period <= kLongestPattern && period * 2 <= past.size(); ++period) {
    const size_t over = std::min(kPatternOver, past.size() - period);
    size_t same = 0;
    for (size_t i = past.size() - over; i < past.size(); ++i) same += past[i] == past[i - period];
    if (same * 10 >= over * 9) return period;
  }
  return 0;
}

// By stream: the calls of the end of the window whose operations were not recorded, but had a place
// in its queue, in order. What became of them is told by the calls of the same API on their thread
// before; a copy that no pattern tells goes between host and device.
std::vector<std::vector<TaskId>> UnrecordedLaunches(const Graph& graph,
                                                    std::span<const Outcome> outcome_of) {
  struct Calls {
    bool copies = false;
    std::vector<Outcome> past;  // up to the last whose operation was recorded
    std::vector<TaskId> after;
  };
  std::vector<Instant> last(graph.lanes().size(), Instant::Min());  // launch of a recorded one
  std::vector<std::vector<TaskId>> found(graph.lanes().size());
  absl::flat_hash_map<NameId, CallKind> kinds;
  for (const GraphLane& thread : graph.lanes()) {
    if (thread.lane.kind != LaneKind::kThread) continue;
    std::map<NameId, Calls> apis;
    NameId last_name;  // most calls are of the API of the call before
    Calls* last_api = nullptr;
    for (TaskId call = thread.first; call.valid(); call = graph.task(call).lane_next) {
      const Task& task = graph.task(call);
      if (task.kind != TaskKind::kCall || task.removed) continue;
      if (task.name != last_name) {
        auto [kind, first] = kinds.try_emplace(task.name, CallKind::kOther);
        if (first) kind->second = ClassifyCall(graph.Name(task.name));
        const bool counts = MayBlock(kind->second) && kind->second != CallKind::kGraphLaunch;
        last_name = task.name;
        last_api = counts ? &apis[task.name] : nullptr;
        if (counts) last_api->copies = kind->second == CallKind::kCopyAsync;
      }
      if (last_api == nullptr) continue;
      const Outcome& outcome = outcome_of[call.index()];
      if (outcome.stream.valid()) {
        Instant& latest = last[outcome.stream.index()];
        latest = std::max(latest, task.recorded_start);
      }
      Calls& api = *last_api;
      api.after.push_back(call);
      if (!outcome.stream.valid()) continue;
      for (TaskId t : api.after) api.past.push_back(outcome_of[t.index()]);
      api.after.clear();
    }
    for (const auto& [name, api] : apis) {
      if (api.past.empty()) continue;
      const size_t period = PeriodOf(api.past);
      if (period == 0 && api.copies) continue;
      for (size_t k = 0; k < api.after.size(); ++k) {
        const size_t back = period == 0 ? 1 : period - k % period;
        const Outcome& like = api.past[api.past.size() - back];
        if (like.stream.valid() && like.place) {
          found[like.stream.index()].push_back(api.after[k]);
        }
      }
    }
  }
  const auto start = [&](TaskId call) { return graph.task(call).recorded_start; };
  for (size_t stream = 0; stream < found.size(); ++stream) {
    std::vector<TaskId>& calls = found[stream];
    std::erase_if(calls, [&](TaskId call) { return start(call) <= last[stream]; });
    std::sort(calls.begin(), calls.end(),
              [&](TaskId x, TaskId y) { return std::pair(start(x), x) < std::pair(start(y), y); });
  }
  return found;
}

class QueueRule {
 public:
  explicit QueueRule(Builder& b)
      : b_(b), quick_(QuickCalls(b)), unblocked_(b.trace.names->size()) {}

  void Find(LaneId lane, const std::vector<TaskId>& unrecorded, bool nvidia) {
    std::vector<QueuePlace> places;
    for (uint32_t i : b_.stream_ops[lane.index()]) {
      const GpuOp& op = b_.ops[i];
      if (TakesPlace(b_.graph, op.task)) places.push_back({op.call, op.task, op.start});
    }
    for (TaskId call : unrecorded) places.push_back({call, TaskId::None(), kNever});
    const Room room = RoomOf(places, nvidia);
    b_.graph.mutable_lane(lane).queue_depth = room.depth;
    const Duration clock = room.lag - kQueueReleaseLag;
    std::vector<uint32_t> depths = DepthsOf(places, room);
    TaskId last_call;
    for (size_t i = 0; i < places.size(); ++i) {
      const TaskId call = places[i].call;
      if (call == last_call || !MayWait(call)) continue;
      last_call = call;
      const uint32_t depth = depths[i];
      const QueuePlace* release = depth > 1 && i + 1 >= depth ? &places[i + 1 - depth] : nullptr;
      if (release != nullptr && !release->operation.valid()) break;  // 1021 and more unrecorded
      if (release == nullptr || release->start + clock <= b_.Start(call)) {
        unblocked_[b_.graph.task(call).name.index()].push_back(b_.RecordedDuration(call));
      }
      if (release != nullptr) pairs_.push_back({*release, call, room.lag});
    }
  }

  // Rule Q3.
  void Couple() {
    std::vector<Duration> own = quick_;
    for (size_t i = 0; i < own.size(); ++i) {
      if (!unblocked_[i].empty()) own[i] = TrimmedMean(unblocked_[i]);
    }
    for (const auto& [release, call, usual] : pairs_) {
      const Duration slack = b_.End(call) - release.start;
      const Duration clock = usual - kQueueReleaseLag;
      if (slack < clock) continue;  // refuted: it returned while the queue was this full
      Duration lag = std::min(usual, slack);
      if (release.start + clock > b_.Start(call)) {
        ++b_.report.queue_blocked;
        Task& task = b_.graph.mutable_task(call);
        task.duration = std::min(task.duration, own[task.name.index()]);
        lag = b_.typical_lags() ? usual : slack;
        b_.waits[call.index()] = true;
      }
      b_.AddEdge(release.operation, call, lag, Rule::kQueue, Anchor::kStart, Anchor::kEnd);
    }
  }

 private:
  bool MayWait(TaskId call) const {
    return call.valid() && !b_.waits[call.index()] && MayBlock(b_.KindOf(call));
  }

  struct Pair {
    QueuePlace release;
    TaskId call;
    Duration lag;  // usual, from the start of the one to the return of the other
  };

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
    Duration lag = kQueueReleaseLag;
    std::vector<SlowCall> slow;
  };

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
    uint32_t unblocked = 0;
    size_t started = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      const TaskId call = places[i].call;
      if (!call.valid() || !MayBlock(b_.KindOf(call))) continue;
      while (started < i && places[started].start <= b_.End(call)) ++started;
      const auto now = static_cast<uint32_t>(i - started + 1);
      Duration own = quick_[b_.graph.task(call).name.index()];
      Duration duration = b_.RecordedDuration(call);
      bool slow = duration > kLongCall || duration > own * 4;
      if (!slow) unblocked = std::max(unblocked, now);
      const bool long_by_itself = b_.KindOf(call) == CallKind::kGraphLaunch;
      if (!slow || now < kDeepInFlight || long_by_itself) continue;
      room.slow.push_back({i, b_.End(call)});
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
    std::vector<uint32_t> depths(places.size(), room.depth);
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
  std::vector<Duration> quick_;  // by NameId
  Samples unblocked_;
  std::vector<Pair> pairs_;
};

bool IsDeviceMemory(Memory m) { return m == Memory::kDevice || m == Memory::kArray; }

}  // namespace

bool TakesPlace(const Graph& graph, TaskId gpu_task) {
  if (graph.task(gpu_task).kind != TaskKind::kMemcpy) return IsGpu(graph.task(gpu_task).kind);
  const CopyDetail* copy = graph.Copy(gpu_task);
  return copy != nullptr && IsDeviceMemory(copy->from) && IsDeviceMemory(copy->to);
}

void AddQueueLimits(Builder& b) {
  bool nvidia = true;
  for (size_t row = 0; row < b.trace.rows() && nvidia; ++row) {
    if (b.trace.kind[row] == EventKind::kCall) nvidia = !b.trace.EventName(row).starts_with("hip");
  }
  std::vector<Outcome> outcomes(b.graph.size());
  for (const GpuOp& op : b.ops) {
    if (op.call.valid()) outcomes[op.call.index()] = {op.lane, TakesPlace(b.graph, op.task)};
  }
  QueueRule rule(b);
  const std::vector<std::vector<TaskId>> unrecorded = UnrecordedLaunches(b.graph, outcomes);
  for (size_t i = 0; i < b.stream_ops.size(); ++i) {
    if (!b.stream_ops[i].empty()) rule.Find(LaneId(i), unrecorded[i], nvidia);
  }
  rule.Couple();
}

void RebuildQueueEdges(Graph& graph, const std::vector<bool>& lanes) {
  std::vector<LaneId> rebuilt;
  std::vector<bool> is_rebuilt(graph.lanes().size());
  for (size_t i = 0; i < std::min(lanes.size(), graph.lanes().size()); ++i) {
    if (!lanes[i] || graph.lane(LaneId(i)).queue_depth < 2) continue;
    rebuilt.push_back(LaneId(i));
    is_rebuilt[i] = true;
  }
  if (rebuilt.empty()) return;
  const auto is_queue = [&](const Edge& e) {
    return e.rule == Rule::kQueue && is_rebuilt[graph.task(e.from).lane.index()];
  };
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, Duration> known;
  std::vector<Edge>& edges = graph.mutable_edges();
  known.reserve(static_cast<size_t>(std::ranges::count_if(edges, is_queue)));
  std::vector<TaskId> call_of(graph.size());
  std::vector<Outcome> outcomes(graph.size());
  for (const Edge& e : edges) {
    if (e.rule == Rule::kLaunch && e.from_anchor == Anchor::kEnd) {
      call_of[e.to.index()] = e.from;
      outcomes[e.from.index()] = {graph.task(e.to).lane, TakesPlace(graph, e.to)};
    } else if (is_queue(e)) {
      known[{e.from.value, e.to.value}] = e.lag;
    }
  }
  std::erase_if(edges, is_queue);
  const std::vector<std::vector<TaskId>> unrecorded = UnrecordedLaunches(graph, outcomes);
  std::vector<TaskId> places;
  TaskId last_call;
  uint32_t depth = 0;
  auto take_place = [&](TaskId operation, TaskId call) {
    places.push_back(operation);
    if (!call.valid() || call == last_call) return;
    last_call = call;
    if (places.size() < depth) return;
    const TaskId release = places[places.size() - depth];
    if (!release.valid() || call_of[release.index()] == call) return;
    auto it = known.find({release.value, call.value});
    graph.AddEdge({.from = release,
                   .to = call,
                   .lag = it == known.end() ? kQueueReleaseLag : it->second,
                   .rule = Rule::kQueue,
                   .from_anchor = Anchor::kStart,
                   .to_anchor = Anchor::kEnd});
  };
  for (LaneId lane : rebuilt) {
    depth = graph.lane(lane).queue_depth;
    places.clear();
    last_call = TaskId::None();
    for (TaskId t = graph.lane(lane).first; t.valid(); t = graph.task(t).lane_next) {
      if (!graph.task(t).removed && TakesPlace(graph, t)) take_place(t, call_of[t.index()]);
    }
    for (TaskId call : unrecorded[lane.index()]) take_place(TaskId::None(), call);
  }
}

}  // namespace daydream
