#include "report/predict/self_check.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "base/release.h"
#include "graph/host_lead.h"
#include "graph/repeat.h"
#include "graph/step_windows.h"
#include "report/predict/step_places.h"
#include "report/windows.h"
#include "simulator/rounds.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

constexpr size_t kMostRepeated = 8;
constexpr double kAskRuns = 0.03;                   // off by what is warned of
constexpr size_t kRepeatedTasks = 4'000'000;        // of a graph times the steps that are asked
constexpr uint32_t kNoSlot = Id<void>::kNoneValue;  // of a step that does not count

double OffBy(Duration played, Duration measured) {
  return static_cast<double>(played.ns) / static_cast<double>(measured.ns) - 1;
}

// A delay that no rule explains (G7); those of rule G6 name the work that they wait for.
bool Unexplained(const Graph& graph, const Task& t) {
  return t.kind == TaskKind::kDelay && !t.removed && t.detail >= graph.size();
}

// Collects steps as played and as measured.
class TestedSteps {
 public:
  void Add(std::string_view label, Duration played, Duration measured) {
    if (measured <= Duration{}) return;
    played_.push_back(played);
    measured_.push_back(measured);
    const double error = OffBy(played, measured);
    if (test_.steps++ > 0 && std::fabs(error) <= std::fabs(test_.worst)) return;
    test_.worst = error;
    test_.worst_step = label;
  }
  std::optional<StepTest> Take() {
    if (test_.steps == 0) return std::nullopt;
    test_.error = OffBy(MeanOf(played_), MeanOf(measured_));
    return std::move(test_);
  }

 private:
  StepTest test_;
  std::vector<Duration> played_, measured_;
};

// What a thing of the recording takes in one of the counted steps.
struct TimeOfStep {
  uint32_t thing, slot;
  Duration time;
};

// By entry: the lower median of what other steps than its own have of the same thing; kOfNoOther
// where no other has it. The last entry of a thing and a step counts.
constexpr Duration kOfNoOther = Duration::Max();
std::vector<Duration> OfOthers(std::span<const TimeOfStep> entries, size_t things) {
  std::vector<uint32_t> begin(things + 1);
  for (const TimeOfStep& e : entries) ++begin[e.thing + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<uint32_t> by_thing(entries.size()), next(begin.begin(), begin.end() - 1);
  for (size_t i = 0; i < entries.size(); ++i) {
    by_thing[next[entries[i].thing]++] = static_cast<uint32_t>(i);
  }
  std::vector<Duration> found(entries.size(), kOfNoOther);
  std::vector<std::pair<uint32_t, Duration>> of_slot;
  std::vector<Duration> sorted;
  for (size_t thing = 0; thing < things; ++thing) {
    const std::span<uint32_t> all(by_thing.data() + begin[thing], begin[thing + 1] - begin[thing]);
    if (all.size() < 2) continue;
    std::ranges::stable_sort(all, {}, [&](uint32_t i) { return entries[i].slot; });
    of_slot.clear();
    for (uint32_t i : all) {
      if (of_slot.empty() || of_slot.back().first != entries[i].slot) of_slot.emplace_back();
      of_slot.back() = {entries[i].slot, entries[i].time};
    }
    if (of_slot.size() < 2) continue;
    sorted.clear();
    for (const auto& [slot, time] : of_slot) sorted.push_back(time);
    std::ranges::sort(sorted);
    const auto middle = static_cast<ptrdiff_t>((sorted.size() - 2) / 2);  // without the own one
    auto own = of_slot.begin();
    for (uint32_t i : all) {
      while (own->first != entries[i].slot) ++own;
      const auto place = std::ranges::lower_bound(sorted, own->second) - sorted.begin();
      found[i] = sorted[static_cast<size_t>(middle + (place <= middle ? 1 : 0))];
    }
  }
  return found;
}

class Crossing {
 public:
  explicit Crossing(const Graph& graph) : graph_(graph), counted_(CountedSteps(graph)) {
    slot_.assign(graph.steps().size(), kNoSlot);
    for (size_t i = 0; i < counted_.size(); ++i) slot_[counted_[i]] = static_cast<uint32_t>(i);
  }

  std::optional<StepTest> Run() {
    if (counted_.size() < 2) return std::nullopt;
    places_ =
        FindStepPlaces(graph_, [](const Task& task) { return task.kind != TaskKind::kDelay; });
    SwapLags();
    durations_.resize(graph_.size());
    gaps_.resize(graph_.size());
    for (size_t i = 0; i < graph_.size(); ++i) {
      durations_[i] = graph_.tasks()[i].duration;
      gaps_[i] = graph_.tasks()[i].gap;
    }
    SwapDelays();
    Release(places_.of_task);
    const auto timeline = PlayOnceWith(graph_, durations_, gaps_, edges_);
    if (!timeline.has_value()) return std::nullopt;
    Release(durations_);
    Release(gaps_);
    Release(edges_);
    const std::vector<Duration> played = CountedPeriods(graph_, *timeline);
    TestedSteps score;
    for (size_t i = 0; i < counted_.size(); ++i) {
      const GraphStep& step = graph_.steps()[counted_[i]];
      score.Add(step.label, played[i], step.recorded_period);
    }
    return score.Take();
  }

 private:
  uint32_t SlotOf(const Task& t) const { return t.step < slot_.size() ? slot_[t.step] : kNoSlot; }
  uint32_t PlaceOf(TaskId t) const { return places_.of_task[t.index()]; }

  // Calls `each(operation, the one before it on its stream, delays between both)`.
  void ForEachOperation(
      absl::FunctionRef<void(TaskId, TaskId, const std::vector<TaskId>&)> each) const {
    std::vector<TaskId> delays;
    for (const GraphLane& lane : graph_.lanes()) {
      if (lane.lane.kind != LaneKind::kStream) continue;
      delays.clear();
      TaskId before;
      for (TaskId t = lane.first; t.valid(); t = graph_.task(t).lane_next) {
        const Task& task = graph_.task(t);
        if (Unexplained(graph_, task)) delays.push_back(t);
        if (task.kind == TaskKind::kDelay) continue;
        each(t, before, delays);
        delays.clear();
        before = t;
      }
    }
  }

  // Gaps between GPU work, and the delays before it.
  void SwapDelays() {
    std::vector<TimeOfStep> gaps, delays;
    ForEachOperation([&](TaskId t, TaskId, const std::vector<TaskId>& before) {
      const uint32_t slot = SlotOf(graph_.task(t));
      if (slot == kNoSlot) return;
      Duration delay;
      for (TaskId d : before) delay += graph_.task(d).duration;
      gaps.push_back({PlaceOf(t), slot, graph_.task(t).gap});
      delays.push_back({PlaceOf(t), slot, delay});
    });
    const auto gap = OfOthers(gaps, places_.count), delay = OfOthers(delays, places_.count);
    size_t entry = 0;
    ForEachOperation([&](TaskId t, TaskId last, const std::vector<TaskId>& before) {
      if (SlotOf(graph_.task(t)) == kNoSlot) return;
      const size_t i = entry++;
      const bool follows = graph_.task(t).gap >= Duration{};
      if (gap[i] != kOfNoOther && follows) gaps_[t.index()] = std::max(gap[i], {});
      if (delay[i] != kOfNoOther) SetDelay(before, last, delay[i]);
    });
  }

  // A delay that this step lacks goes to the gap before the operation.
  void SetDelay(const std::vector<TaskId>& delays, TaskId before, Duration total) {
    for (TaskId d : delays) durations_[d.index()] = std::exchange(total, Duration{});
    if (total <= Duration{} || !before.valid()) return;
    Duration& gap = gaps_[before.index()];
    if (gap >= Duration{}) gap += total;
  }

  // Edges between the same places, as many steps apart, by the same rule.
  void SwapLags() {
    using Key = std::tuple<uint32_t, uint32_t, int, uint8_t>;
    edges_.assign(graph_.edges().begin(), graph_.edges().end());
    absl::flat_hash_map<Key, uint32_t> things;
    std::vector<TimeOfStep> lags;
    std::vector<uint32_t> edge_of;
    for (size_t i = 0; i < edges_.size(); ++i) {
      const Edge& e = edges_[i];
      const uint32_t slot = SlotOf(graph_.task(e.to));
      const uint32_t from = PlaceOf(e.from), to = PlaceOf(e.to);
      if (slot == kNoSlot || from == StepPlaces::kNone || to == StepPlaces::kNone) continue;
      const int apart = graph_.task(e.to).step - graph_.task(e.from).step;
      const auto how =
          static_cast<uint8_t>(static_cast<int>(e.rule) * 4 + static_cast<int>(e.from_anchor) * 2 +
                               static_cast<int>(e.to_anchor));
      const uint32_t thing =
          things.try_emplace({from, to, apart, how}, static_cast<uint32_t>(things.size()))
              .first->second;
      lags.push_back({thing, slot, e.lag});
      edge_of.push_back(static_cast<uint32_t>(i));
    }
    const auto lag = OfOthers(lags, things.size());
    for (size_t i = 0; i < lag.size(); ++i) {
      if (lag[i] != kOfNoOther) edges_[edge_of[i]].lag = lag[i];
    }
  }

  const Graph& graph_;
  std::vector<size_t> counted_;
  std::vector<uint32_t> slot_;  // by step: its place among those that count
  StepPlaces places_;
  std::vector<Duration> durations_, gaps_;  // with what others have
  std::vector<Edge> edges_;
};

// Of a graph, made once it is needed.
class Repeater {
 public:
  explicit Repeater(const Graph& graph) : graph_(graph) {}
  const Graph& graph() const { return graph_; }
  const StepRepeater& operator()() { return made_ ? *made_ : made_.emplace(graph_); }

 private:
  const Graph& graph_;
  std::optional<StepRepeater> made_;
};

// How long the steps of the run take, the last time that it is played.
std::optional<Duration> PlayedOver(Repeater& repeater, StepRun run) {
  if (run.steps == 1) {
    const auto played =
        RoundsOf(repeater.graph(), static_cast<uint16_t>(run.first), std::ref(repeater));
    if (played->has_value()) return StepWindows((*played)->extents).back().length();
  }
  const Graph repeated = repeater().Repeat(run, kRounds);
  const auto timeline = Simulate(repeated);
  if (!timeline.ok()) return std::nullopt;
  const std::vector<Duration> periods = StepPeriods(repeated, *timeline);
  Duration sum;
  for (size_t i = periods.size() - run.steps; i < periods.size(); ++i) sum += periods[i];
  return sum;
}

// How far the host is ahead of its GPU where each step ends, as the graph plays.
std::vector<Duration> LeadsOf(const Graph& graph, const Timeline& timeline) {
  std::vector<Duration> leads;
  for (const StepExtent& e : StepExtents(graph, timeline.start, timeline.end)) {
    leads.push_back(e.last - Instant{});
  }
  std::vector<Instant> host(leads.size());
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (t.step >= host.size() || !IsHost(t.kind)) continue;
    if (graph.lane(t.lane).lane.kind != LaneKind::kThread) continue;
    host[t.step] = std::max(host[t.step], timeline.end[i]);
  }
  for (size_t s = 0; s < leads.size(); ++s) leads[s] -= host[s] - Instant{};
  return leads;
}

Duration MeasuredOf(const Graph& graph, StepRun run) {
  Duration measured;
  for (size_t i = 0; i < run.steps; ++i) measured += graph.steps()[run.first + i].recorded_period;
  return measured;
}

// Runs of these steps, each as long and behind one another, that leave as much lead as they found:
// the shortest that are half of the steps together.
std::vector<StepRun> RunsInBalance(const Graph& graph, std::span<const size_t> steps) {
  const auto timeline = Simulate(graph);
  if (!timeline.ok() || steps.front() == 0) return {};
  const std::vector<Duration> leads = LeadsOf(graph, *timeline);
  const auto balanced = [&](StepRun run) {
    const Duration gained = leads[run.first + run.steps - 1] - leads[run.first - 1];
    return Duration::Ns(std::llabs(gained.ns)) * kPartsThatDiffer <= MeasuredOf(graph, run);
  };
  for (size_t length = 2; length <= steps.size(); ++length) {
    std::vector<StepRun> runs;
    for (size_t i = 0; i + length <= steps.size();) {
      const StepRun run = {.first = steps[i], .steps = length};
      const bool in_a_row = steps[i + length - 1] == run.first + length - 1;
      const bool takes = in_a_row && balanced(run);
      if (takes) runs.push_back(run);
      i += takes ? length : 1;
    }
    if (2 * length * runs.size() >= steps.size()) return runs;
  }
  return {};
}

// Of the runs in balance, or else of the first half of these steps and of the second.
std::optional<RunsOff> ErrorOfRuns(Repeater& repeater, std::span<const size_t> steps) {
  const Graph& graph = repeater.graph();
  std::vector<StepRun> runs = RunsInBalance(graph, steps);
  if (runs.empty()) {
    const size_t each = steps.size() < 4 ? steps.size() : steps.size() / 2;
    for (size_t begin = 0; begin + each <= steps.size(); begin += each) {
      if (each < 2 || steps[begin + each - 1] - steps[begin] + 1 != each) return std::nullopt;
      runs.push_back({.first = steps[begin], .steps = each});
    }
  }
  Duration played, measured;
  for (const StepRun run : runs) {
    const auto all = PlayedOver(repeater, run);
    if (!all.has_value()) return std::nullopt;
    played += *all;
    measured += MeasuredOf(graph, run);
  }
  if (measured <= Duration{}) return std::nullopt;
  return RunsOff{.error = OffBy(played, measured), .steps = runs.front().steps};
}

}  // namespace

std::optional<double> UnexplainedShare(const Graph& graph, Duration step) {
  Duration delays;
  for (const Task& task : graph.tasks()) {
    if (Unexplained(graph, task)) delays += task.duration;
  }
  if (delays <= Duration{}) return 0;
  if (step <= Duration{}) return std::nullopt;
  std::vector<Duration> durations(graph.size()), gaps(graph.size());
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.tasks()[i];
    durations[i] = Unexplained(graph, task) ? Duration{} : task.duration;
    gaps[i] = task.gap;
  }
  const auto timeline = PlayOnceWith(graph, durations, gaps, graph.edges());
  if (!timeline.has_value()) return std::nullopt;
  return std::max(-OffBy(StepTime(graph, *timeline), step), 0.0);
}

std::optional<StepTest> RepeatTest(const Graph& graph) {
  std::vector<size_t> counted = CountedSteps(graph);
  // What the host does at the end of a recording, such as to end loader workers, is no part of a
  // round.
  if (counted.size() > 1 &&
      !StepMarks(graph).HasGpu(std::min(counted.back() + 1, graph.steps().size() - 1)))
    counted.pop_back();
  const size_t most =
      std::clamp<size_t>(kRepeatedTasks / std::max<size_t>(graph.size(), 1), 1, kMostRepeated);
  const size_t asked = std::min(counted.size(), most);
  if (asked == 0) return std::nullopt;
  TestedSteps score;
  Repeater repeater(graph);
  for (size_t i = 0; i < asked; ++i) {
    const size_t step = counted[i * counted.size() / asked];
    const auto played = PlayedOver(repeater, {.first = step});
    if (!played.has_value()) continue;
    score.Add(graph.steps()[step].label, *played, graph.steps()[step].recorded_period);
  }
  std::optional<StepTest> test = score.Take();
  if (test.has_value() && std::fabs(test->error) > kAskRuns) {
    test->runs = ErrorOfRuns(repeater, counted);
  }
  return test;
}

std::optional<StepTest> CrossTest(const Graph& graph) { return Crossing(graph).Run(); }

}  // namespace daydream
