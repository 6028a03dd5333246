#include "report/predict/misses.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "report/windows.h"

namespace daydream {
namespace {

std::map<std::string, Duration> TimePerStep(const Graph& graph, GroupBy by) {
  const std::vector<size_t> counted = CountedSteps(graph);
  std::vector<bool> counts(graph.steps().size(), counted.empty());
  for (size_t s : counted) counts[s] = true;
  std::map<std::string, Duration> times;
  Grouper groups(graph, by);
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (t.removed || !IsGpu(t.kind) || (t.step < counts.size() && !counts[t.step])) continue;
    times[groups.Of(TaskId(i))] += t.duration;
  }
  const auto steps = static_cast<int64_t>(std::max<size_t>(counted.size(), 1));
  for (auto& [name, time] : times) time = time / steps;
  return times;
}

}  // namespace

std::vector<Miss> LargestMisses(const Graph& before, const Graph& predicted, const Graph& measured,
                                size_t most) {
  std::vector<Miss> misses;
  Duration gpu;
  for (auto [by, word] : {std::pair{GroupBy::kClass, "class"}, {GroupBy::kPhase, "phase"}}) {
    auto was = TimePerStep(before, by), says = TimePerStep(predicted, by);
    auto is = TimePerStep(measured, by);
    auto all = says;
    all.insert(is.begin(), is.end());
    for (const auto& [name, unused] : all) {
      misses.push_back({.by = word,
                        .name = name,
                        .before = was[name],
                        .predicted = says[name],
                        .measured = is[name]});
      if (by == GroupBy::kClass) gpu += is[name];
    }
  }
  auto size = [](const Miss& m) { return std::llabs((m.predicted - m.measured).ns); };
  std::erase_if(misses, [&](const Miss& m) { return size(m) * 1000 < gpu.ns || size(m) == 0; });
  std::stable_sort(misses.begin(), misses.end(),
                   [&](const Miss& a, const Miss& b) { return size(a) > size(b); });
  if (misses.size() > most) misses.resize(most);
  return misses;
}

}  // namespace daydream
