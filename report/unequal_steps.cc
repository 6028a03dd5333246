#include "report/unequal_steps.h"

#include <algorithm>
#include <map>
#include <vector>

#include "graph/step_windows.h"
#include "report/stalls.h"
#include "report/windows.h"
#include "transforms/analysis/loader.h"

namespace daydream {
namespace {

constexpr double kWorthNaming = 0.2, kMostly = 0.8;

double MeanTime(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// Windows of the counted steps as recorded, by time.
class RecordedWindows {
 public:
  RecordedWindows(const Graph& graph, std::span<const size_t> counted) {
    std::vector<Instant> start, end;
    for (const Task& t : graph.tasks()) {
      start.push_back(t.recorded_start);
      end.push_back(t.recorded_start + t.duration);
    }
    const std::vector<StepWindow> windows = StepWindows(graph, start, end);
    for (size_t step : counted) windows_.push_back(windows[step]);
  }
  // Calls `take` with the place of each window and how much of [begin, begin + length) lies in it.
  template <class Take>
  void ForEachAround(Instant begin, Duration length, Take take) const {
    auto w = std::partition_point(windows_.begin(), windows_.end(),
                                  [&](const StepWindow& x) { return x.end <= begin; });
    for (; w != windows_.end() && w->begin < begin + length; ++w) {
      const Duration inside = std::min(w->end, begin + length) - std::max(w->begin, begin);
      take(static_cast<size_t>(w - windows_.begin()), inside);
    }
  }

 private:
  std::vector<StepWindow> windows_;
};

// Of the GPU or not, and name: how long it took in each counted step.
using WorkOfSteps = std::map<std::pair<bool, NameId>, std::vector<double>>;

WorkOfSteps FindWork(const Graph& graph, std::span<const size_t> counted) {
  std::vector<size_t> place(graph.steps().size(), counted.size());
  for (size_t i = 0; i < counted.size(); ++i) place[counted[i]] = i;
  const LoaderScopes loader(graph);
  WorkOfSteps work;
  const RecordedWindows windows(graph, counted);
  auto add = [&](bool gpu, NameId name, size_t at, Duration time) {
    if (at >= counted.size() || time <= Duration{}) return;
    std::vector<double>& steps = work[{gpu, name}];
    steps.resize(counted.size());
    steps[at] += static_cast<double>(time.ns);
  };
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (t.removed) continue;
    if (IsGpu(t.kind)) {
      if (t.step < place.size()) add(true, t.name, place[t.step], t.duration);
    } else if (IsHost(t.kind)) {
      const bool fetches = loader.Around(t.scope).valid();
      const Instant end = t.recorded_start + t.duration;
      if (!fetches) {
        // The program's own time has the name of its step.
        const NameId name = IsOutsideOfOperators(graph, TaskId(i)) ? NameId::None() : t.name;
        windows.ForEachAround(t.recorded_start, t.duration,
                              [&](size_t at, Duration inside) { add(false, name, at, inside); });
      }
      if (fetches && loader.OwnsGapOf(t)) continue;
      windows.ForEachAround(
          end, t.gap, [&](size_t at, Duration inside) { add(false, NameId::None(), at, inside); });
    }
  }
  // As recorded: a wait for loader processes is the time of no task (report/loader_workers.h).
  for (const Fetch& f : FindFetches(graph, loader)) {
    const Task& first = graph.task(f.tasks.front());
    const NameId name = graph.tables().scopes[f.scope.index()].name;
    windows.ForEachAround(first.recorded_start, RecordedLength(graph, f),
                          [&](size_t at, Duration inside) { add(false, name, at, inside); });
  }
  return work;
}

// The sum over steps of what both differ from their means, multiplied.
double Together(const std::vector<double>& a, const std::vector<double>& b) {
  const double of_a = MeanTime(a), of_b = MeanTime(b);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - of_a) * (b[i] - of_b);
  return sum;
}

UnequalWork Told(std::string name, double share, const std::vector<double>& steps) {
  const auto [least, most] = std::ranges::minmax(steps);
  return {.name = std::move(name),
          .share = std::min(share, 1.0),
          .least = Duration::FromDouble(least),
          .most = Duration::FromDouble(most)};
}

}  // namespace

std::optional<UnequalWork> WhatMakesStepsUnequal(const Graph& graph) {
  const std::vector<size_t> counted = CountedSteps(graph);
  if (counted.size() < 2) return std::nullopt;
  std::vector<double> length;
  for (size_t s : counted) {
    length.push_back(static_cast<double>(graph.steps()[s].recorded_period.ns));
  }
  const double variance = Together(length, length);
  if (variance <= 0) return std::nullopt;
  std::optional<UnequalWork> best;
  std::vector<double> gpu_work(counted.size());
  for (const auto& [key, steps] : FindWork(graph, counted)) {
    for (size_t i = 0; key.first && i < steps.size(); ++i) gpu_work[i] += steps[i];
    const double share = Together(steps, length) / variance;
    if (share < kWorthNaming || (best.has_value() && share <= best->share)) continue;
    std::string name = key.second.valid() ? std::string(graph.Name(key.second)) : "";
    if (name.empty()) name = "host time outside of operators";
    best = Told(std::move(name), share, steps);
  }
  // Clocks that change, or a batch of another size, are not of one kernel.
  const double share = Together(gpu_work, length) / variance;
  const bool all_of_it = share >= kMostly && (!best.has_value() || best->share < share / 2);
  return all_of_it ? Told("GPU work as a whole", share, gpu_work) : best;
}

}  // namespace daydream
