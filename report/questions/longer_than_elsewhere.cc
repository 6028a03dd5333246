#include "report/questions/longer_than_elsewhere.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
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
    for (auto& [name, steps] : alike_) FindLonger(steps);
    return std::move(found_);
  }

 private:
  static constexpr size_t kNotCounted = SIZE_MAX;

  void Add(TaskId id, bool gap, bool loads, Duration time) {
    if (time <= kNoise) return;
    const Task& t = graph_.task(id);
    auto& steps = alike_[{t.lane, t.name, gap}];
    steps.resize(steps_);
    steps[place_[t.step]].push_back(
        {.task = id,
         .gap = gap,
         .kind = loads ? StallKind::kBatch : StallKind::kOutside,
         .what = loads ? "the wait for a batch" : "the time outside of operators",
         .time = time,
         .kept = {}});
  }

  void FindLonger(std::vector<std::vector<Stall>>& steps) {
    size_t most = 0;
    for (std::vector<Stall>& step : steps) {
      std::ranges::stable_sort(step, std::greater{}, &Stall::time);
      most = std::max(most, step.size());
    }
    for (size_t rank = 0; rank < most; ++rank) {
      std::vector<Duration> times;
      for (const auto& step : steps) times.push_back(rank < step.size() ? step[rank].time : kNoise);
      const Duration usual = Ranked(std::move(times), (steps.size() - 1) / 2);
      for (std::vector<Stall>& step : steps) {
        if (rank >= step.size() || step[rank].time - usual <= kNoise) continue;
        step[rank].kept = usual;
        found_.push_back(std::move(step[rank]));
      }
    }
  }

  const Graph& graph_;
  const LoaderScopes loader_;
  std::vector<size_t> place_;  // by step: among those that count
  size_t steps_ = 0;
  // By lane, name and whether it is the gap behind: what each step has of it.
  std::map<std::tuple<LaneId, NameId, bool>, std::vector<std::vector<Stall>>> alike_;
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
