// Rules L1, G2-G8 and E3: why did each GPU operation start when it did? Operations are taken in the
// order of their starts. For each, the launch, the stream and the awaited events give the instant
// at which it could have started; what is left (the rest) is explained or, as the last resort,
// kept as a delay and reported.
#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/sort_runs.h"
#include "graph/builder.h"
#include "graph/large_pages.h"
#include "graph/recent_ends.h"

namespace daydream {
namespace {

constexpr Duration kNoise = Duration::Us(10);            // rule G5: belongs to the binding edge
constexpr Duration kGraphWork = Duration::Us(20);        // rule G8
constexpr Duration kEndedJustBefore = Duration::Us(25);  // rule E3
constexpr Duration kLongRest = Duration::Us(100);        // rule G6
constexpr Duration kReadySlack = Duration::Us(5);        // rule G6
constexpr Duration kStartSlack = Duration::Us(3);        // rule G6
// Chosen: kernels that are looked at for one start, and the share of the time between them when
// nobody runs.
constexpr size_t kMostHolders = 4096;
constexpr double kIdleWhileHeld = 0.05;
// Programmatic launch lets a kernel begin in the tail of the one before it. Longer overlaps, or
// overlaps of most of the operation before, are independent branches.
constexpr Duration kLongestTail = Duration::Us(20);

struct Constraint {
  TaskId from;
  Instant instant;  // recorded start or end of `from`
  Duration lag;
  Rule rule = Rule::kLaunch;  // kLaneOrder: the gap of `from`
  Anchor anchor = Anchor::kEnd;
  Instant Ready() const { return instant + lag; }
};

class StartRule {
 public:
  explicit StartRule(Builder& b)
      : b_(b), latest_(b.stream_ops.size(), Builder::kNone), ends_(b), latest_ends_(b) {
    for (uint32_t i : b.special_calls) {
      const HostCall& call = b.calls[i];
      if (call.kind == CallKind::kStreamWait) stream_waits_.push_back(call.start);
      if (call.kind == CallKind::kGraphLaunch) graph_launches_.push_back(call.task);
    }
    for (const std::vector<uint32_t>& stream : b.stream_ops) {
      const auto launched = [&](uint32_t i) { return b.ops[i].call.valid(); };
      const auto first = std::find_if(stream.begin(), stream.end(), launched);
      // A stream without any recorded launch has no head: its launches are lost.
      head_.push_back(first == stream.end() ? 0 : static_cast<size_t>(first - stream.begin()));
    }
    SortRuns(stream_waits_, std::less<>());
    std::sort(graph_launches_.begin(), graph_launches_.end(),
              [&](TaskId x, TaskId y) { return b.Start(x) < b.Start(y); });
  }

  void Run() {
    size_t wait = 0;
    for (uint32_t i = 0; i < b_.ops.size(); ++i) {
      const GpuOp& op = b_.ops[i];
      FetchToWrite(&b_.graph.task(op.task), kTasksAhead);
      constraints_.clear();
      AddLane(op);
      AddLaunch(op);
      for (; wait < b_.event_waits.size() && b_.event_waits[wait].first == i; ++wait) {
        const GpuOp& from = b_.ops[b_.event_waits[wait].second];
        Constrain(op, from.task, from.end, b_.typical.event, Rule::kEventWait);
      }
      Settle(op);
      uint32_t& latest = latest_[op.lane.index()];
      if (latest == Builder::kNone || b_.ops[latest].end <= op.end) latest = i;
      latest_ends_.Add(op);
    }
  }

 private:
  // Adds a constraint whose lag is typical but never later than what was recorded.
  void Constrain(const GpuOp& op, TaskId from, Instant instant, Duration typical, Rule rule,
                 Anchor anchor = Anchor::kEnd) {
    Duration slack = op.start - instant;
    Duration lag = b_.typical_lags() ? typical : std::min(typical, slack);
    constraints_.push_back({from, instant, lag, rule, anchor});
  }

  const GpuOp* Previous(const GpuOp& op) const {
    if (op.position == 0) return nullptr;
    return &b_.ops[b_.stream_ops[op.lane.index()][op.position - 1]];
  }

  // Rules G2, G3.
  void AddLane(const GpuOp& op) {
    uint32_t latest = latest_[op.lane.index()];
    if (latest == Builder::kNone) {  // behind the backlog of the window, where one was found (Q5)
      const TaskId backlog = b_.graph.task(op.task).lane_prev;
      if (backlog.valid()) constraints_.push_back({backlog, op.start, {}, Rule::kLaneOrder});
      return;
    }
    const GpuOp& before = b_.ops[latest];
    Duration overlap = before.end - op.start;
    if (overlap > Duration{}) {
      const GpuOp* previous = Previous(op);
      bool tail = &before == previous && overlap <= kLongestTail &&
                  overlap * 2 <= before.end - before.start && !op.many;
      if (tail) {
        constraints_.push_back({before.task, before.end, -overlap, Rule::kLaneOrder});
      } else {
        b_.graph.mutable_task(op.task).overlaps = true;
        AddBranch(op, *previous);
      }
      return;
    }
    int from = static_cast<int>(CategoryOf(before.kind));
    int to = static_cast<int>(CategoryOf(op.kind));
    Duration typical = b_.typical.stream_gap[from][to];
    Duration slack = op.start - before.end;
    bool measured = GraphOrUnlaunched(op) && slack <= kGraphWork;
    Duration gap = measured ? slack : b_.typical_lags() ? typical : std::min(typical, slack);
    constraints_.push_back({before.task, before.end, gap, Rule::kLaneOrder});
  }

  // A branch of a CUDA graph starts after the operation of its graph that ended just before, or
  // else a fixed time after its predecessor's start.
  void AddBranch(const GpuOp& op, const GpuOp& previous) {
    const GpuOp* fork = nullptr;
    const bool may_fork = op.call.valid() && op.many;
    const auto streams =
        may_fork ? ends_.Streams(op.start - kEndedJustBefore, op.start) : std::span<const LaneId>();
    for (const LaneId lane : streams) {
      const std::vector<uint32_t>& stream = b_.stream_ops[lane.index()];
      auto it = std::partition_point(stream.begin(), stream.end(),
                                     [&](uint32_t k) { return b_.ops[k].end <= op.start; });
      if (it == stream.begin()) continue;
      const GpuOp& candidate = b_.ops[*(it - 1)];
      if (&candidate < &op && candidate.call == op.call &&
          candidate.end + kEndedJustBefore >= op.start &&
          (fork == nullptr || candidate.end > fork->end)) {
        fork = &candidate;
      }
    }
    if (fork != nullptr) {
      constraints_.push_back({fork->task, fork->end, op.start - fork->end, Rule::kEventWait});
    } else if (!op.call.valid() || op.many) {
      constraints_.push_back({previous.task, previous.start, op.start - previous.start,
                              Rule::kEventWait, Anchor::kStart});
    } else {
      constraints_.push_back(
          {previous.task, previous.start, Duration{}, Rule::kLaneOrder, Anchor::kStart});
    }
  }

  // Rules L1, L2.
  void AddLaunch(const GpuOp& op) {
    if (!op.call.valid()) return;
    Duration typical = op.own_copy ? Duration{} : b_.typical.launch;
    Constrain(op, op.call, op.call_end, typical, Rule::kLaunch);
    if (constraints_.back().lag < Duration{}) {
      // Started while the call was still returning, but never before it was made.
      const Instant called = b_.calls[op.call_index].start;
      constraints_.push_back({op.call, called, std::min(Duration{}, op.start - called),
                              Rule::kLaunch, Anchor::kStart});
    }
  }

  void Settle(const GpuOp& op) {
    AwaitHead(op);
    if (constraints_.empty()) {
      b_.graph.mutable_task(op.task).earliest = op.start;
      return;
    }
    auto binding = [&] {
      return std::max_element(
          constraints_.begin(), constraints_.end(),
          [](const Constraint& x, const Constraint& y) { return x.Ready() < y.Ready(); });
    };
    auto latest = binding();
    Duration rest = op.start - latest->Ready();
    std::optional<Task> delay;
    bool keep = !op.call.valid() || (GraphOrUnlaunched(op) && rest <= kGraphWork);
    if (rest > Duration{} && (keep || (rest <= kNoise && !b_.typical_lags()))) {
      latest->lag += rest;
    } else if (rest > kNoise) {
      delay = Explain(op, latest->Ready(), rest);
      if (b_.typical_lags() && delay && delay->detail == Builder::kNone &&
          delay->kind == TaskKind::kDelay) {
        delay.reset();  // the typical replay has no unexplained delays
      }
    }
    Emit(op, delay, rest);
  }

  // Rule G4: what was launched before the window, and found its stream at rest, can have waited for
  // other streams only. That of the stream whose last operation, launched before the window, too,
  // ended just before.
  void AwaitHead(const GpuOp& op) {
    if (!InHead(op)) return;
    const bool explained = std::ranges::any_of(
        constraints_, [&](const Constraint& c) { return op.start - c.Ready() <= kNoise; });
    if (explained) return;
    const GpuOp* source = LatestEnd(op, [&](const GpuOp& candidate) { return InHead(candidate); });
    if (source == nullptr) return;
    constraints_.push_back({source->task, source->end, op.start - source->end, Rule::kEventWait});
    ++b_.report.event_waits;
  }

  // Launched before the window: nothing before it on its stream has a recorded launch.
  bool InHead(const GpuOp& op) const { return op.position < head_[op.lane.index()]; }

  // Rule G4: boundary conditions of the window, and order inside a CUDA graph.
  bool GraphOrUnlaunched(const GpuOp& op) const {
    return !op.call.valid() || (op.many && !op.first_of_call);
  }

  // Rules E3, G6, G7, G8. Returns the task that takes the rest, if an edge does not.
  std::optional<Task> Explain(const GpuOp& op, Instant ready, Duration rest) {
    if (const GpuOp* source = EndedJustBefore(op)) {  // E3
      Duration lag = b_.typical_lags() ? b_.typical.event : op.start - source->end;
      constraints_.push_back({source->task, source->end, lag, Rule::kEventWait});
      ++b_.report.event_waits;
      return std::nullopt;
    }
    Task delay{.duration = rest,
               .lane = op.lane,
               .scope = b_.graph.task(op.task).scope,
               .kind = TaskKind::kDelay};
    if (TaskId launch = UnrecordedGraph(op); launch.valid() && rest > kGraphWork) {  // G8
      delay.name = b_.graph.AddName("(unrecorded)");
      delay.kind = TaskKind::kKernel;
      ++b_.report.unrecorded;
      b_.report.unrecorded_time += rest;
      return delay;
    }
    if (const GpuOp* holder = Holder(op, ready, rest)) {  // G6
      delay.name = b_.graph.AddName("(waits for SMs)");
      delay.detail = holder->task.value;
      ++b_.report.contended;
      return delay;
    }
    if (op.position == 0 && b_.ops.front().start >= op.call_end) {
      // The head of the window: work from before it may have held the stream.
      b_.graph.mutable_task(op.task).earliest = op.start;
      return std::nullopt;
    }
    delay.name = b_.graph.AddName("(unexplained)");  // G7
    ++b_.report.unexplained;
    b_.report.unexplained_time += rest;
    return delay;
  }

  // Rule E3: after a wait call since the last launch on this stream, an operation of another stream
  // that was launched earlier and ended just before.
  const GpuOp* EndedJustBefore(const GpuOp& op) {
    const GpuOp* previous = Previous(op);
    Instant since = previous == nullptr ? Instant::Min() : previous->call_start;
    auto wait = std::upper_bound(stream_waits_.begin(), stream_waits_.end(), since);
    if (wait == stream_waits_.end() || *wait >= op.call_start) return nullptr;
    return LatestEnd(op, [&](const GpuOp& candidate) {
      return candidate.call_start < op.call_start && &candidate <= &op;
    });
  }

  // Of the last operation of each other stream that ended just before `op` starts, the latest that
  // `may` have been waited for.
  template <class May>
  const GpuOp* LatestEnd(const GpuOp& op, May may) {
    const GpuOp* best = nullptr;
    for (const LaneId lane : ends_.Streams(op.start - kEndedJustBefore, op.start)) {
      if (lane == op.lane) continue;
      const std::vector<uint32_t>& stream = b_.stream_ops[lane.index()];
      auto it = std::partition_point(stream.begin(), stream.end(),
                                     [&](uint32_t k) { return b_.ops[k].end <= op.start; });
      if (it == stream.begin()) continue;
      const GpuOp& candidate = b_.ops[*(it - 1)];
      if (candidate.end + kEndedJustBefore < op.start || !may(candidate)) continue;
      if (best == nullptr || candidate.end > best->end) best = &candidate;
    }
    return best;
  }

  // Rule G6: the longest operation of another stream (collectives hold few SMs) that ran while
  // this one was ready.
  const GpuOp* Holder(const GpuOp& op, Instant ready, Duration rest) {
    const GpuOp* best = nullptr;
    size_t looked = 0;
    for (const LaneId lane : latest_ends_.Streams(op.start - kStartSlack)) {
      const std::vector<uint32_t>& stream = b_.stream_ops[lane.index()];
      if (lane == op.lane) continue;
      auto it = std::partition_point(stream.begin(), stream.end(), [&](uint32_t k) {
        return b_.ops[k].end < op.start - kStartSlack;
      });
      for (; it != stream.end() && b_.ops[*it].start < op.start; ++it) {
        if (++looked > kMostHolders) return best;
        const GpuOp& y = b_.ops[*it];
        if (y.kind == TaskKind::kCollective) continue;
        bool running = y.start <= ready + kReadySlack;
        bool ends_here = rest > kLongRest && std::abs((y.end - op.start).ns) <= kStartSlack.ns;
        if (!running && !ends_here) continue;
        if (best == nullptr || y.end - y.start > best->end - best->start) best = &y;
      }
    }
    return best == nullptr && rest > kLongRest ? LastOfHolders(op, ready) : best;
  }

  // The same where kernels of other streams held the processors in turn: they ran all the while,
  // and this one starts amid the last of them, once all blocks of that have begun. None ended just
  // then, so that it waited for no end.
  const GpuOp* LastOfHolders(const GpuOp& op, Instant ready) {
    std::vector<std::pair<Instant, Instant>> others;
    const GpuOp* last = nullptr;
    const int32_t device = b_.graph.lane(op.lane).lane.device;
    for (const LaneId lane : latest_ends_.Streams(ready)) {
      const std::vector<uint32_t>& stream = b_.stream_ops[lane.index()];
      if (lane == op.lane || b_.graph.lane(lane).lane.device != device) continue;
      auto it = std::partition_point(stream.begin(), stream.end(),
                                     [&](uint32_t k) { return b_.ops[k].end <= ready; });
      for (; it != stream.end() && b_.ops[*it].start < op.start; ++it) {
        const GpuOp& y = b_.ops[*it];
        if (y.kind != TaskKind::kKernel) continue;
        if (others.size() == kMostHolders) return nullptr;
        if (std::abs((y.end - op.start).ns) <= kStartSlack.ns) return nullptr;
        others.emplace_back(y.start, y.end);
        if (y.end > op.start && (last == nullptr || y.start > last->start)) last = &y;
      }
    }
    std::sort(others.begin(), others.end());
    Duration idle;
    Instant busy_until = ready;
    for (const auto& [start, end] : others) {
      if (start > busy_until) idle += start - busy_until;
      busy_until = std::max(busy_until, end);
    }
    return idle.Scaled(1 / kIdleWhileHeld) <= op.start - ready ? last : nullptr;
  }

  // Rule G8: a graph launch from the call of the operation before this one up to its own call. Part
  // of that graph was not recorded.
  TaskId UnrecordedGraph(const GpuOp& op) const {
    const GpuOp* previous = Previous(op);
    if (previous == nullptr || !op.call.valid()) return TaskId::None();
    auto it = std::partition_point(graph_launches_.begin(), graph_launches_.end(),
                                   [&](TaskId t) { return b_.Start(t) < previous->call_start; });
    return it != graph_launches_.end() && b_.Start(*it) <= op.call_start ? *it : TaskId::None();
  }

  void Emit(const GpuOp& op, const std::optional<Task>& delay, Duration rest) {
    TaskId before;
    if (delay) before = b_.InsertBefore(op.task, *delay, op.start - rest, op.start);
    for (Constraint& c : constraints_) {
      if (c.rule == Rule::kLaneOrder) {
        // Overlapping tasks follow their predecessor's start by the meaning of a graph.
        if (c.anchor == Anchor::kStart) continue;
        Duration& gap = b_.graph.mutable_task(c.from).gap;
        const bool taken = gap < Duration{};  // by a kernel that ran within its tail
        if (!taken) gap = c.lag;
        if (!taken) continue;
        c.rule = Rule::kEventWait;
      }
      b_.AddEdge(c.from, op.task, c.lag, c.rule, c.anchor);
      if (before.valid()) b_.AddEdge(c.from, before, c.lag, c.rule, c.anchor);
    }
  }

  Builder& b_;
  std::vector<uint32_t> latest_;  // by lane: the operation with the latest end so far
  RecentEnds ends_;
  LatestEnds latest_ends_;  // of the operations so far
  std::vector<Constraint> constraints_;
  std::vector<size_t> head_;  // by lane: how many operations come before one with a launch
  std::vector<Instant> stream_waits_;
  std::vector<TaskId> graph_launches_;
};

}  // namespace

void SettleStarts(Builder& b) { StartRule(b).Run(); }

}  // namespace daydream
