#include "report/predict/self_check.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/repeat.h"
#include "graph/step_windows.h"
#include "report/predict/replays.h"
#include "report/windows.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

constexpr int kRepeats = 4;
constexpr size_t kMostRepeated = 8;
constexpr size_t kRepeatedTasks = 4'000'000;  // of a graph times the steps that are asked
constexpr uint32_t kNoSlot = Id<void>::kNoneValue;

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

// A time that the recording has in each counted step, or in some. Holds those alone: a range that
// is named after its step is in one, and a long recording has ten thousands of such names.
class TimesOfSteps {
 public:
  // The last one set for a step counts.
  void Set(uint32_t step, Duration time) {
    if (!times_.empty() && times_.back().first == step) {
      times_.back().second = time;
    } else {
      times_.emplace_back(step, time);
    }
  }
  // The lower median of what other steps than `own` have, which has one. All are sorted at the
  // first call, so that many steps cost little more than few.
  std::optional<Duration> OfOthers(uint32_t own) {
    if (sorted_.empty()) Sort();
    if (sorted_.size() < 2) return std::nullopt;
    const size_t middle = (sorted_.size() - 2) / 2;  // of those without `own`
    const auto mine = std::lower_bound(times_.begin(), times_.end(), own,
                                       [](const auto& t, uint32_t step) { return t.first < step; });
    const auto place = std::lower_bound(sorted_.begin(), sorted_.end(), mine->second);
    return sorted_[middle + (place - sorted_.begin() <= static_cast<ptrdiff_t>(middle) ? 1 : 0)];
  }

 private:
  void Sort() {
    std::stable_sort(times_.begin(), times_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    size_t kept = 0;
    for (size_t i = 0; i < times_.size(); ++i) {
      if (i + 1 < times_.size() && times_[i + 1].first == times_[i].first) continue;
      times_[kept++] = times_[i];
    }
    times_.resize(kept);
    sorted_.reserve(kept);
    for (const auto& [step, time] : times_) sorted_.push_back(time);
    std::sort(sorted_.begin(), sorted_.end());
  }

  std::vector<std::pair<uint32_t, Duration>> times_;  // by step, once sorted
  std::vector<Duration> sorted_;
};

// What one operation of a GPU lane carries over from the recording.
struct Place {
  TimesOfSteps gap, delay;
};

class Crossing {
 public:
  explicit Crossing(const Graph& graph)
      : source_(graph), graph_(graph), counted_(CountedSteps(graph)) {
    slot_.assign(graph.steps().size(), kNoSlot);
    for (size_t i = 0; i < counted_.size(); ++i) slot_[counted_[i]] = static_cast<uint32_t>(i);
  }

  std::optional<StepTest> Run() {
    if (counted_.size() < 2) return std::nullopt;
    FindPlaces();
    SwapDelays();
    SwapLags();
    auto timeline = Simulate(graph_);
    if (!timeline.ok()) return std::nullopt;
    const std::vector<Duration> played = CountedPeriods(graph_, *timeline);
    TestedSteps score;
    for (size_t i = 0; i < counted_.size(); ++i) {
      const GraphStep& step = source_.steps()[counted_[i]];
      score.Add(step.label, played[i], step.recorded_period);
    }
    return score.Take();
  }

 private:
  uint32_t SlotOf(const Task& t) const { return t.step < slot_.size() ? slot_[t.step] : kNoSlot; }

  // The place of every task but delays, and what stands there in each step.
  void FindPlaces() {
    place_of_.assign(source_.size(), kNoSlot);
    absl::flat_hash_map<std::pair<uint64_t, uint32_t>, uint32_t> places;  // lane and name, number
    absl::flat_hash_map<std::pair<uint64_t, uint16_t>, uint32_t> met;
    for (const GraphLane& lane : source_.lanes()) {
      Duration delay;
      for (TaskId t = lane.first; t.valid(); t = source_.task(t).lane_next) {
        const Task& task = source_.task(t);
        if (Unexplained(source_, task)) delay += task.duration;
        if (task.kind == TaskKind::kDelay) continue;
        const uint64_t name = uint64_t{task.lane.value} << 32 | task.name.value;
        const uint32_t number = met[{name, task.step}]++;
        auto [it, fresh] =
            places.try_emplace({name, number}, static_cast<uint32_t>(places_.size()));
        if (fresh) places_.emplace_back();
        place_of_[t.index()] = it->second;
        if (const uint32_t slot = SlotOf(task); slot != kNoSlot) {
          Place& place = places_[it->second];
          place.gap.Set(slot, task.gap);
          place.delay.Set(slot, delay);
        }
        delay = {};
      }
    }
  }

  // Gaps between GPU work, and the delays before it.
  void SwapDelays() {
    for (const GraphLane& lane : source_.lanes()) {
      if (lane.lane.kind != LaneKind::kStream) continue;
      std::vector<TaskId> delays;  // before the next operation
      TaskId before;
      for (TaskId t = lane.first; t.valid(); t = source_.task(t).lane_next) {
        const Task& task = source_.task(t);
        if (Unexplained(source_, task)) delays.push_back(t);
        if (task.kind == TaskKind::kDelay) continue;
        if (const uint32_t slot = SlotOf(task); slot != kNoSlot) {
          Place& place = places_[place_of_[t.index()]];
          if (auto gap = place.gap.OfOthers(slot); gap && task.gap >= Duration{}) {
            graph_.mutable_task(t).gap = std::max(*gap, Duration{});
          }
          if (auto delay = place.delay.OfOthers(slot)) SetDelay(delays, before, *delay);
        }
        delays.clear();
        before = t;
      }
    }
  }

  // A delay that this step lacks goes to the gap before the operation.
  void SetDelay(const std::vector<TaskId>& delays, TaskId before, Duration total) {
    for (TaskId d : delays) {
      graph_.mutable_task(d).duration = std::exchange(total, Duration{});
    }
    if (total <= Duration{} || !before.valid()) return;
    Task& task = graph_.mutable_task(before);
    if (task.gap >= Duration{}) task.gap += total;
  }

  // Edges between the same places, as many steps apart, by the same rule.
  void SwapLags() {
    using Key = std::tuple<uint32_t, uint32_t, int, uint8_t>;
    auto key_of = [&](const Edge& e) {
      const int apart = source_.task(e.to).step - source_.task(e.from).step;
      const auto how =
          static_cast<uint8_t>(static_cast<int>(e.rule) * 4 + static_cast<int>(e.from_anchor) * 2 +
                               static_cast<int>(e.to_anchor));
      return Key{place_of_[e.from.index()], place_of_[e.to.index()], apart, how};
    };
    auto takes_part = [&](const Edge& e) {
      return SlotOf(source_.task(e.to)) != kNoSlot && place_of_[e.from.index()] != kNoSlot &&
             place_of_[e.to.index()] != kNoSlot;
    };
    absl::flat_hash_map<Key, TimesOfSteps> lags;
    for (const Edge& e : source_.edges()) {
      if (takes_part(e)) lags[key_of(e)].Set(SlotOf(source_.task(e.to)), e.lag);
    }
    for (Edge& e : graph_.mutable_edges()) {
      if (!takes_part(e)) continue;
      if (auto lag = lags[key_of(e)].OfOthers(SlotOf(source_.task(e.to)))) e.lag = *lag;
    }
  }

  const Graph& source_;
  Graph graph_;  // with what others have
  std::vector<size_t> counted_;
  std::vector<uint32_t> slot_;      // by step: its place among those that count
  std::vector<uint32_t> place_of_;  // by task
  std::vector<Place> places_;
};

}  // namespace

std::optional<double> UnexplainedShare(const Graph& graph) {
  std::vector<TaskId> unexplained;
  Duration delays;
  for (size_t i = 0; i < graph.size(); ++i) {
    if (!Unexplained(graph, graph.tasks()[i])) continue;
    delays += graph.tasks()[i].duration;
    unexplained.push_back(TaskId(i));
  }
  if (delays <= Duration{}) return 0;
  Graph without = graph;
  for (TaskId t : unexplained) without.mutable_task(t).duration = {};
  Replays replays(graph);
  auto all = replays.Replay(graph, graph, {}), rest = replays.Replay(without, graph, {});
  if (!all.ok() || !rest.ok()) return std::nullopt;
  const Duration step = StepTime(graph, *all);
  if (step <= Duration{}) return std::nullopt;
  return std::max(-OffBy(StepTime(graph, *rest), step), 0.0);
}

std::optional<StepTest> RepeatTest(const Graph& graph) {
  std::vector<size_t> counted = CountedSteps(graph);
  // What follows the last step is not recorded, so its own time is no full round.
  if (counted.size() > 1 &&
      !StepMarks(graph).HasGpu(std::min(counted.back() + 1, graph.steps().size() - 1)))
    counted.pop_back();
  const size_t most =
      std::clamp<size_t>(kRepeatedTasks / std::max<size_t>(graph.size(), 1), 1, kMostRepeated);
  const size_t asked = std::min(counted.size(), most);
  TestedSteps score;
  for (size_t i = 0; i < asked; ++i) {
    const size_t step = counted[i * counted.size() / asked];
    auto repeated = RepeatStep(graph, static_cast<uint16_t>(step), kRepeats);
    if (!repeated.ok()) continue;
    auto timeline = Simulate(*repeated);
    if (!timeline.ok()) continue;
    score.Add(graph.steps()[step].label, StepPeriods(*repeated, *timeline).back(),
              graph.steps()[step].recorded_period);
  }
  return score.Take();
}

std::optional<StepTest> CrossTest(const Graph& graph) { return Crossing(graph).Run(); }

}  // namespace daydream
