// Rules Q1-Q3 (graph/queue.h): how deep the launch queue of each stream is, which calls were
// blocked by it, and the edges that would block others if the GPU were slower.
#include <algorithm>
#include <optional>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "base/median.h"
#include "graph/builder.h"
#include "graph/queue.h"

namespace daydream {
namespace {

constexpr uint32_t kDeepInFlight = 512;                // rule Q2
constexpr Duration kLongCall = Duration::Us(30);       // rule Q2
constexpr Duration kReleaseWindow = Duration::Us(15);  // rule Q2
constexpr size_t kLeastBlockedCalls = 20;              // rule Q2

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

class QueueRule {
 public:
  explicit QueueRule(Builder& b)
      : b_(b), quick_(QuickCalls(b)), unblocked_(b.trace.names->size()) {}

  void Find(LaneId lane, bool nvidia) {
    const std::vector<uint32_t>& stream = b_.stream_ops[lane.index()];
    uint32_t depth = DepthOf(stream, nvidia);
    b_.graph.mutable_lane(lane).queue_depth = depth;
    TaskId last_call;
    for (size_t i = 0; i < stream.size(); ++i) {
      const GpuOp& op = b_.ops[stream[i]];
      if (!op.call.valid() || op.call == last_call || b_.waits[op.call.index()] ||
          !MayBlock(b_.KindOf(op.call))) {
        continue;
      }
      last_call = op.call;
      const GpuOp* release = depth > 0 && i >= depth ? &b_.ops[stream[i - depth]] : nullptr;
      if (release == nullptr || release->end <= b_.Start(op.call)) {
        unblocked_[b_.graph.task(op.call).name.index()].push_back(b_.RecordedDuration(op.call));
      }
      if (release != nullptr) pairs_.push_back({release, op.call});
    }
  }

  // Rule Q3.
  void Couple() {
    std::vector<Duration> own = quick_;
    for (size_t i = 0; i < own.size(); ++i) {
      if (!unblocked_[i].empty()) own[i] = TrimmedMean(unblocked_[i]);
    }
    for (const auto& [release, call] : pairs_) {
      Duration slack = b_.End(call) - release->end;
      if (slack < Duration{}) continue;  // refuted: it returned while the queue was this full
      Duration lag = std::min(kQueueReleaseLag, slack);
      if (release->end > b_.Start(call)) {
        ++b_.report.queue_blocked;
        Task& task = b_.graph.mutable_task(call);
        task.duration = std::min(task.duration, own[task.name.index()]);
        lag = b_.typical_lags() ? kQueueReleaseLag : slack;
        b_.waits[call.index()] = true;
      }
      b_.AddEdge(release->task, call, lag, Rule::kQueue, Anchor::kEnd, Anchor::kEnd);
    }
  }

 private:
  // Rule Q2.
  uint32_t DepthOf(const std::vector<uint32_t>& stream, bool nvidia) const {
    std::vector<uint32_t> depths;
    uint32_t unblocked = 0;
    size_t done = 0;
    for (size_t i = 0; i < stream.size(); ++i) {
      const GpuOp& op = b_.ops[stream[i]];
      if (!op.call.valid() || !MayBlock(b_.KindOf(op.call))) continue;
      while (done < i && b_.ops[stream[done]].end <= b_.End(op.call)) ++done;
      uint32_t in_flight = static_cast<uint32_t>(i - done);
      Duration own = quick_[b_.graph.task(op.call).name.index()];
      Duration duration = b_.RecordedDuration(op.call);
      bool slow = duration > kLongCall || duration > own * 4;
      if (!slow || in_flight < kDeepInFlight) {
        if (!slow) unblocked = std::max(unblocked, in_flight);
        continue;
      }
      if (std::optional<size_t> release = ReleaseBefore(stream, done, b_.End(op.call))) {
        depths.push_back(static_cast<uint32_t>(i - *release));
      }
    }
    if (depths.size() >= kLeastBlockedCalls) {
      std::sort(depths.begin(), depths.end());
      uint32_t middle = depths[depths.size() / 2];
      auto near = std::count_if(depths.begin(), depths.end(),
                                [&](uint32_t d) { return d + 2 >= middle && d <= middle + 2; });
      if (static_cast<size_t>(near) * 10 >= depths.size() * 6) return middle;
    }
    return nvidia ? std::max(kDefaultQueueDepth, unblocked + 1) : 0;
  }

  // Position of the operation that ended about kQueueReleaseLag before `end`, if one ended within
  // the window; `done` is the first operation that ended later.
  std::optional<size_t> ReleaseBefore(const std::vector<uint32_t>& stream, size_t done,
                                      Instant end) const {
    std::optional<size_t> best;
    for (size_t k = done; k-- > 0;) {
      Duration back = end - b_.ops[stream[k]].end;
      if (back > kReleaseWindow) break;
      auto off = [&](size_t j) {
        return std::abs((end - b_.ops[stream[j]].end - kQueueReleaseLag).ns);
      };
      if (!best || off(k) < off(*best)) best = k;
    }
    return best;
  }

  Builder& b_;
  std::vector<Duration> quick_;  // by NameId
  Samples unblocked_;
  std::vector<std::pair<const GpuOp*, TaskId>> pairs_;  // releasing operation, call
};

}  // namespace

void AddQueueLimits(Builder& b) {
  bool nvidia = true;
  for (size_t row = 0; row < b.trace.rows() && nvidia; ++row) {
    if (b.trace.kind[row] == EventKind::kCall) nvidia = !b.trace.EventName(row).starts_with("hip");
  }
  QueueRule rule(b);
  for (size_t lane = 0; lane < b.stream_ops.size(); ++lane) {
    if (!b.stream_ops[lane].empty()) rule.Find(LaneId(lane), nvidia);
  }
  rule.Couple();
}

void RebuildQueueEdges(Graph& graph, LaneId lane) {
  const uint32_t depth = graph.lane(lane).queue_depth;
  if (depth == 0) return;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, Duration> known;
  std::vector<Edge>& edges = graph.mutable_edges();
  std::vector<TaskId> call_of(graph.size());
  for (const Edge& e : edges) {
    if (e.rule == Rule::kLaunch && e.from_anchor == Anchor::kEnd && graph.task(e.to).lane == lane) {
      call_of[e.to.index()] = e.from;
    } else if (e.rule == Rule::kQueue && graph.task(e.from).lane == lane) {
      known[{e.from.value, e.to.value}] = e.lag;
    }
  }
  std::erase_if(edges, [&](const Edge& e) {
    return e.rule == Rule::kQueue && graph.task(e.from).lane == lane;
  });
  std::vector<TaskId> live;
  TaskId last_call;
  for (TaskId t = graph.lane(lane).first; t.valid(); t = graph.task(t).lane_next) {
    const Task& task = graph.task(t);
    if (task.removed || !IsGpu(task.kind)) continue;
    live.push_back(t);
    TaskId call = call_of[t.index()];
    if (live.size() <= depth || !call.valid() || call == last_call) continue;
    last_call = call;
    TaskId release = live[live.size() - 1 - depth];
    if (call_of[release.index()] == call) continue;  // a graph launch deeper than the queue
    auto it = known.find({release.value, call.value});
    graph.AddEdge({.from = release,
                   .to = call,
                   .lag = it == known.end() ? kQueueReleaseLag : it->second,
                   .rule = Rule::kQueue,
                   .to_anchor = Anchor::kEnd});
  }
}

}  // namespace daydream
