#include "simulator/rounds.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/release.h"
#include "graph/facts.h"
#include "graph/queue.h"
#include "graph/queue_places.h"
#include "simulator/lane_runs.h"

namespace daydream {
namespace {

constexpr Duration kLeast{std::numeric_limits<int64_t>::min()};

// An edge as it is in each round that has so many before it.
struct Wait {
  int64_t lag = 0;
  uint32_t from = 0;  // a place in the step; of an earlier round, one among those that are kept
  uint16_t back = 0;
  bool from_start = false, to_start = false;
};
static_assert(sizeof(Wait) == 16);

// The waits for room in the launch queue of one stream, which hang on its order alone.
struct Queue {
  std::vector<uint32_t> operations;  // that take a place, in order
  uint32_t depth = 0;
};

// The tasks of a step, by their places in it, and what each waits for.
class Round {
 public:
  Round(const StepRepeater& repeater, uint16_t step, size_t times)
      : repeater_(repeater),
        graph_(repeater.source()),
        step_(step),
        times_(static_cast<uint32_t>(times)),
        tasks_(repeater.TasksOf(step)),
        lanes_(repeater.LanesOf(step)) {}

  // False where only copies tell what waits.
  bool FindWaits(std::span<const Awaited> also) {
    for (const GraphLane& lane : graph_.lanes()) {
      if (lane.order != LaneOrder::kFixed) return false;
    }
    for (const auto& [from, to] : also) {
      also_.emplace_back(repeater_.PlaceOf(from, lanes_), repeater_.PlaceOf(to, lanes_));
    }
    if (!FindCalls() || !FindQueues()) return false;
    begin_.resize(tasks_.size() + 1);
    ForEachWait([&](uint32_t to, const Wait&) { ++begin_[to]; });
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    waits_.resize(begin_.back());
    ForEachWait([&](uint32_t to, const Wait& wait) { waits_[--begin_[to]] = wait; });
    Release(call_of_);
    Release(queues_);
    Keep();
    return true;
  }

  std::span<const TaskId> tasks() const { return tasks_; }
  std::span<const uint32_t> lane_begins() const { return lanes_; }

  // What LaneRuns asks.
  size_t size() const { return tasks_.size(); }
  size_t lanes() const { return lanes_.size() - 1; }
  uint32_t First(size_t lane) const {
    return lanes_[lane] < lanes_[lane + 1] ? lanes_[lane] : LaneRuns<Round>::kNoTask;
  }
  uint32_t Next(uint32_t t) const {
    const size_t lane = graph_.task(tasks_[t]).lane.index();
    return t + 1 < lanes_[lane + 1] ? t + 1 : LaneRuns<Round>::kNoTask;
  }
  LaneTask TaskAt(uint32_t t) const {
    const Task& task = graph_.task(tasks_[t]);
    const bool first = round_ == 0 && t == lanes_[task.lane.index()];
    return {.beside = task.overlaps && !first,
            .earliest = round_ == 0 ? task.earliest.ns : 0,
            .duration = task.removed ? 0 : task.duration.ns,
            .gap = task.removed ? 0 : task.gap.ns};
  }
  uint32_t EdgesBegin(uint32_t t) const { return begin_[t]; }
  LaneWait EdgeAt(uint32_t edge) const {
    const Wait& wait = waits_[edge];
    LaneWait at = {.from = wait.from,
                   .from_start = wait.from_start,
                   .to_start = wait.to_start,
                   .lag = wait.lag};
    if (wait.back == 0) return at;
    at.from = LaneWait::kKnown;
    at.lag = wait.back > round_ ? kNever : wait.lag + Kept(wait).ns;
    return at;
  }

  // The round that was played is done: its instants are about to become those of the next one.
  void NextRound(std::span<const Instant> start, std::span<const Instant> end) {
    for (size_t i = 0; i < kept_.size(); ++i) {
      kept_start_[round_ * kept_.size() + i] = start[kept_[i]];
      kept_end_[round_ * kept_.size() + i] = end[kept_[i]];
    }
    ++round_;
  }

 private:
  Instant Kept(const Wait& wait) const {
    const size_t i = (round_ - wait.back) * kept_.size() + wait.from;
    return (wait.from_start ? kept_start_ : kept_end_)[i];
  }

  // The calls that launch what takes a place in a queue. False where those differ by round.
  bool FindCalls() {
    bool any = false;
    for (const GraphLane& lane : graph_.lanes()) {
      if (lane.queue_depth < 2) continue;
      if (lane.shared_queue != 0) return false;
      any = true;
    }
    if (!any) return true;
    call_of_.assign(tasks_.size(), kNone);
    std::vector<bool> submitted(tasks_.size());
    bool alike = true;
    repeater_.ForEachEdge(step_, lanes_, [&](const RoundEdge& e) {
      const Edge& edge = graph_.edges()[e.edge];
      if (edge.rule == Rule::kQueue) alike = false;
      if (edge.rule != Rule::kLaunch || edge.from_anchor != Anchor::kEnd) return;
      if (e.back > 0 || call_of_[e.to] != kNone) alike = false;
      call_of_[e.to] = e.from;
      submitted[e.from] = true;
    });
    return alike && !AnyUnrecorded(graph_, tasks_, submitted);
  }

  bool FindQueues() {
    if (call_of_.empty()) return true;
    for (size_t l = 0; l < lanes(); ++l) {
      if (graph_.lane(LaneId(l)).queue_depth < 2) continue;
      Queue queue{.operations = {}, .depth = graph_.lane(LaneId(l)).queue_depth};
      for (uint32_t i = lanes_[l]; i < lanes_[l + 1]; ++i) {
        if (graph_.task(tasks_[i]).removed || !TakesPlace(graph_, tasks_[i])) continue;
        queue.operations.push_back(i);
      }
      if (!queue.operations.empty()) queues_.push_back(std::move(queue));
    }
    return true;
  }

  // Calls `each(to, wait)`; the same in the same order each time.
  template <class Each>
  void ForEachWait(Each each) const {
    repeater_.ForEachEdge(step_, lanes_, [&](const RoundEdge& e) {
      if (e.back >= times_) return;
      const Edge& edge = graph_.edges()[e.edge];
      each(e.to, Wait{.lag = edge.lag.ns,
                      .from = e.from,
                      .back = static_cast<uint16_t>(e.back),
                      .from_start = edge.from_anchor == Anchor::kStart,
                      .to_start = edge.to_anchor == Anchor::kStart});
    });
    for (const auto& [from, to] : also_) each(to, Wait{.from = from, .back = 1, .to_start = true});
    for (const Queue& queue : queues_) ForEachWait(queue, each);
  }

  // As RebuildQueueEdges() has them, of rounds behind one another.
  template <class Each>
  void ForEachWait(const Queue& queue, Each each) const {
    const std::vector<uint32_t>& places = queue.operations;
    uint32_t last_call = kNone;
    for (size_t i = 0; i < places.size(); ++i) {
      const uint32_t call = call_of_[places[i]];
      if (call == kNone || call == last_call) continue;
      last_call = call;
      const size_t before = queue.depth - 1;  // so many places
      const size_t back = i >= before ? 0 : (before - i - 1) / places.size() + 1;
      if (back >= times_) continue;
      const uint32_t release = places[i + back * places.size() - before];
      if (back == 0 && call_of_[release] == call) continue;
      each(call, Wait{.lag = kQueueReleaseLag.ns,
                      .from = release,
                      .back = static_cast<uint16_t>(back),
                      .from_start = true});
    }
  }

  // Notes which instants later rounds wait for.
  void Keep() {
    for (const Wait& wait : waits_) {
      if (wait.back > 0) kept_.push_back(wait.from);
    }
    std::ranges::sort(kept_);
    kept_.erase(std::unique(kept_.begin(), kept_.end()), kept_.end());
    for (Wait& wait : waits_) {
      if (wait.back == 0) continue;
      const auto at = std::ranges::lower_bound(kept_, wait.from);
      wait.from = static_cast<uint32_t>(at - kept_.begin());
    }
    kept_start_.resize(kept_.size() * times_);
    kept_end_.resize(kept_.size() * times_);
  }

  static constexpr uint32_t kNone = 0xffffffff;

  const StepRepeater& repeater_;
  const Graph& graph_;
  const uint16_t step_;
  const uint32_t times_;
  const std::span<const TaskId> tasks_;
  const std::vector<uint32_t> lanes_;  // where those of each begin
  std::vector<std::pair<uint32_t, uint32_t>> also_;
  std::vector<uint32_t> call_of_;  // empty: no stream has a queue
  std::vector<Queue> queues_;
  std::vector<uint32_t> begin_;  // by place: of its waits
  std::vector<Wait> waits_;
  std::vector<uint32_t> kept_;                  // places, sorted
  std::vector<Instant> kept_start_, kept_end_;  // by round, of each of these
  uint32_t round_ = 0;
};

// The last call of each lane that launches GPU work, and where the last of that arrives.
class LastLaunches {
 public:
  LastLaunches(const StepRepeater& repeater, uint16_t step, size_t times,
               std::span<const uint32_t> lane_begins)
      : graph_(repeater.source()), times_(times), launches_(times * (lane_begins.size() - 1)) {
    const size_t lanes = lane_begins.size() - 1;
    const std::span<const TaskId> tasks = repeater.TasksOf(step);
    const auto launches = [&](auto each) {
      repeater.ForEachEdge(step, lane_begins, [&](const RoundEdge& e) {
        if (graph_.edges()[e.edge].rule != Rule::kLaunch) return;
        // The last rounds lack what they would launch in the next ones.
        for (size_t k = 0; k + e.back < times_; ++k) {
          each(e, launches_[k * lanes + graph_.task(tasks[e.from]).lane.index()]);
        }
      });
    };
    launches([](const RoundEdge& e, Launch& of) {
      if (!of.any || of.call < e.from) of = {.any = true, .call = e.from};
    });
    uint32_t most = 0;
    launches([&](const RoundEdge& e, Launch& of) {
      if (of.call == e.from) most = std::max(most, e.back);
    });
    for (uint32_t back = 0; back <= most; ++back) {  // in the order of edges of copies
      launches([&](const RoundEdge& e, Launch& of) {
        const Edge& edge = graph_.edges()[e.edge];
        if (of.call != e.from || e.back != back || of.lag >= edge.lag) return;
        of.lag = edge.lag;
        of.from_start = edge.from_anchor == Anchor::kStart;
      });
    }
  }

  std::optional<Instant> Of(size_t round, std::span<const Instant> start,
                            std::span<const Instant> end) const {
    std::optional<Instant> latest;
    const size_t lanes = launches_.size() / times_;
    for (const Launch& of : std::span(launches_).subspan(round * lanes, lanes)) {
      if (!of.any) continue;
      const Instant arrives = (of.from_start ? start : end)[of.call] + of.lag;
      latest = std::max(latest.value_or(arrives), arrives);
    }
    return latest;
  }

 private:
  struct Launch {
    bool any = false;
    bool from_start = false;
    uint32_t call = 0;  // a place
    Duration lag = kLeast;
  };
  const Graph& graph_;
  const size_t times_;
  std::vector<Launch> launches_;  // by round and lane
};

// Extents of one round, without its launches.
StepExtent ExtentOf(const Graph& graph, std::span<const TaskId> tasks,
                    std::span<const Instant> start, std::span<const Instant> end,
                    std::optional<Instant>& host_end) {
  constexpr Instant kEarly{std::numeric_limits<int64_t>::min()};
  constexpr Instant kLate{std::numeric_limits<int64_t>::max()};
  StepExtent extent;
  StepWindow gpu = {kLate, kEarly}, others = {kLate, kEarly};
  for (size_t i = 0; i < tasks.size(); ++i) {
    const TaskKind kind = graph.task(tasks[i]).kind;
    extent.any = true;
    extent.gpu |= IsGpu(kind);
    StepWindow& window = IsGpu(kind) ? gpu : others;
    window.begin = std::min(window.begin, start[i]);
    window.end = std::max(window.end, end[i]);
    if (IsHost(kind)) host_end = std::max(host_end.value_or(end[i]), end[i]);
  }
  const StepWindow& work = extent.gpu ? gpu : others;
  extent.first = work.begin;
  extent.last = work.end;
  extent.all = {std::min(gpu.begin, others.begin), std::max(gpu.end, others.end)};
  return extent;
}

}  // namespace

std::optional<PlayedRounds> PlayRounds(const StepRepeater& repeater, uint16_t step, size_t times,
                                       std::span<const Awaited> also) {
  const Graph& graph = repeater.source();
  Round round(repeater, step, times);
  if (!round.FindWaits(also)) return std::nullopt;
  const LastLaunches launches(repeater, step, times, round.lane_begins());
  std::vector<Instant> start(round.size()), end(round.size());
  LaneRuns<Round> runs(round, start.data(), end.data());
  PlayedRounds played{.extents = {}, .host_ends = std::vector<std::optional<Instant>>(times)};
  for (size_t k = 0; k < times; ++k) {
    if (!runs.Run()) return std::nullopt;
    StepExtent extent = ExtentOf(graph, round.tasks(), start, end, played.host_ends[k]);
    extent.counts = k > 0;
    extent.recorded = graph.steps()[step].recorded_period;
    if (extent.gpu) extent.launched = launches.Of(k, start, end);
    played.extents.push_back(extent);
    round.NextRound(start, end);
  }
  return played;
}

std::shared_ptr<const std::optional<PlayedRounds>> RoundsOf(
    const Graph& graph, uint16_t step, absl::FunctionRef<const StepRepeater&()> repeater) {
  const auto play = [&] { return PlayRounds(repeater(), step, kRounds); };
  return FactOf<std::optional<PlayedRounds>>(graph, play, step);
}

}  // namespace daydream
