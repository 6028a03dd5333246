#include "report/unequal_steps.h"

#include <algorithm>
#include <map>
#include <vector>

#include "report/windows.h"
#include "transforms/analysis/loader.h"

namespace daydream {
namespace {

constexpr double kWorthNaming = 0.2;

double MeanTime(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace

std::optional<UnequalWork> WhatMakesStepsUnequal(const Graph& graph) {
  const std::vector<size_t> counted = CountedSteps(graph);
  if (counted.size() < 2) return std::nullopt;
  std::vector<size_t> place(graph.steps().size(), counted.size());
  std::vector<double> length;
  for (size_t i = 0; i < counted.size(); ++i) {
    place[counted[i]] = i;
    length.push_back(static_cast<double>(graph.steps()[counted[i]].recorded_period.ns));
  }
  const LoaderScopes loader(graph);
  std::map<std::pair<bool, NameId>, std::vector<double>> work;  // on the GPU or not, name
  auto add = [&](bool gpu, NameId name, uint16_t step, Duration time) {
    if (step >= place.size() || place[step] == counted.size() || time <= Duration{}) return;
    std::vector<double>& steps = work[{gpu, name}];
    steps.resize(counted.size());
    steps[place[step]] += static_cast<double>(time.ns);
  };
  for (const Task& t : graph.tasks()) {
    if (t.removed) continue;
    if (IsGpu(t.kind)) {
      add(true, t.name, t.step, t.duration);
    } else if (IsHost(t.kind)) {
      const ScopeId fetch = loader.Around(t.scope);
      const NameId name = fetch.valid() ? graph.tables().scopes[fetch.index()].name : t.name;
      const bool own_gap = fetch.valid() && loader.OwnsGapOf(t);
      add(false, name, t.step, t.duration + (own_gap ? t.gap : Duration{}));
      if (!own_gap) add(false, NameId::None(), t.step, t.gap);
    }
  }
  const double mean = MeanTime(length);
  double variance = 0;
  for (double l : length) variance += (l - mean) * (l - mean);
  if (variance <= 0) return std::nullopt;
  std::optional<UnequalWork> best;
  for (const auto& [key, steps] : work) {
    const double middle = MeanTime(steps);
    double together = 0;
    for (size_t i = 0; i < steps.size(); ++i) together += (steps[i] - middle) * (length[i] - mean);
    const double share = together / variance;
    if (share < kWorthNaming || (best.has_value() && share <= best->share)) continue;
    const auto [least, most] = std::minmax_element(steps.begin(), steps.end());
    std::string name = key.second.valid() ? std::string(graph.Name(key.second)) : "";
    if (name.empty()) name = "host time outside of operators";
    best = {.name = std::move(name),
            .share = std::min(share, 1.0),
            .least = Duration::FromDouble(*least),
            .most = Duration::FromDouble(*most)};
  }
  return best;
}

}  // namespace daydream
