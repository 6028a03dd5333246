#include "report/questions/longer_than_elsewhere.h"

#include <algorithm>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/median.h"
#include "report/questions/far_longer.h"
#include "report/windows.h"
#include "transforms/analysis/loader.h"

namespace daydream {
namespace {

constexpr Duration kNoise = Duration::Ms(1);  // of the host, as of stalls

class Search {
 public:
  explicit Search(const Graph& graph) : graph_(graph), loader_(graph) {
    const std::vector<size_t> counted = CountedSteps(graph);
    place_.assign(graph.steps().size(), kNotCounted);
    for (size_t s : counted) place_[s] = steps_++;
  }

  std::vector<Stall> Run() {
    if (steps_ < 2) return {};
    const std::vector<Fetch> fetches = FindFetches(graph_, loader_);
    const bool rarely_waits =
        std::ranges::any_of(fetches, [&](const Fetch& f) { return HasWorkers(graph_, f); }) &&
        !FindLoaderRate(graph_, fetches);
    for (size_t i = 0; i < graph_.size(); ++i) {
      const Task& t = graph_.tasks()[i];
      const bool host = t.kind == TaskKind::kHost || t.kind == TaskKind::kCall;
      if (!host || t.removed || t.step >= place_.size() || place_[t.step] == kNotCounted) continue;
      const bool loads = loader_.Around(t.scope).valid(), loads_then = loader_.OwnsGapOf(t);
      if (loads ? rarely_waits : IsOutsideOfOperators(graph_, TaskId(i))) {
        Add(TaskId(i), false, loads, t.duration);
      }
      if (!loads_then || rarely_waits) Add(TaskId(i), true, loads_then, t.gap);
    }
    Find();
    return std::move(found_);
  }

 private:
  static constexpr size_t kNotCounted = SIZE_MAX;

  // A stretch, and which of its step it is: 0 is the longest.
  struct Stretch {
    LaneId lane;
    NameId name;  // of the task, or of that before the gap
    bool gap = false, loads = false;
    size_t step = 0, rank = 0;
    TaskId task;
    Duration time;
    auto kind() const { return std::tuple(lane, name, gap); }
  };

  void Add(TaskId id, bool gap, bool loads, Duration time) {
    if (time <= kNoise) return;
    const Task& t = graph_.task(id);
    all_.push_back({t.lane, t.name, gap, loads, place_[t.step], 0, id, time});
  }

  // Of each kind and rank, beside the steps that have none.
  void Find() {
    std::ranges::stable_sort(
        all_, {}, [](const Stretch& s) { return std::tuple(s.kind(), s.step, -s.time.ns); });
    for (size_t i = 1; i < all_.size(); ++i) {
      const bool same = std::pair(all_[i].kind(), all_[i].step) ==
                        std::pair(all_[i - 1].kind(), all_[i - 1].step);
      if (same) all_[i].rank = all_[i - 1].rank + 1;
    }
    const auto alike = [](const Stretch& s) { return std::pair(s.kind(), s.rank); };
    std::ranges::stable_sort(all_, {}, alike);
    for (auto next = all_.begin(); next != all_.end();) {
      const auto begin = next;
      while (next != all_.end() && alike(*next) == alike(*begin)) ++next;
      FindLonger({begin, next});
    }
  }

  // One stretch a step, at most.
  void FindLonger(std::span<const Stretch> of_steps) {
    const size_t middle = (steps_ - 1) / 2, without = steps_ - of_steps.size();
    std::vector<Duration> times;
    for (const Stretch& s : of_steps) times.push_back(s.time);
    const Duration usual = middle < without ? kNoise : Ranked(std::move(times), middle - without);
    for (const Stretch& s : of_steps) {
      if (s.time - usual <= kNoise) continue;
      found_.push_back({.task = s.task,
                        .gap = s.gap,
                        .kind = s.loads ? StallKind::kBatch : StallKind::kOutside,
                        .what = s.loads ? "the wait for a batch" : "the time outside of operators",
                        .time = s.time,
                        .kept = usual});
    }
  }

  const Graph& graph_;
  const LoaderScopes loader_;
  std::vector<size_t> place_;  // by step: among those that count
  size_t steps_ = 0;
  std::vector<Stretch> all_;
  std::vector<Stall> found_;
};

}  // namespace

std::vector<Stall> FindLongerThanElsewhere(const Graph& graph) { return Search(graph).Run(); }

void AddLongerThanElsewhere(const Graph& graph, Stalls& stalls) {
  std::set<std::pair<TaskId, bool>> known;
  for (const Stall& s : stalls.all) known.emplace(s.task, s.gap);
  for (const Stall& s : stalls.waits) known.emplace(s.task, s.gap);
  for (auto* find : {FindLongerThanElsewhere, FindFarLonger}) {
    for (Stall& s : find(graph)) {
      if (!known.contains({s.task, s.gap})) stalls.waits.push_back(std::move(s));
    }
  }
}

}  // namespace daydream
