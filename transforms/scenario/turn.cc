#include "transforms/scenario/turn.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "transforms/optimizations/optimizations.h"

namespace daydream {

size_t TurnOf(const Application& a) {
  const std::span<const Transform* const> all = Transforms();
  const auto it = std::find(all.begin(), all.end(), a.transform);
  return it == all.end() ? 0 : static_cast<size_t>(it - all.begin()) + 1;
}

namespace {

// One rank stands for n: of draws of their speeds the slowest counts, not that of this one.
void TellJitterOfRanks(std::vector<Application>& scenario) {
  const auto spreads = [](const Application& a) {
    return a.transform == &kDdp || a.transform == &kZero1 || a.transform == &kZero2;
  };
  const auto spread = std::ranges::find_if(scenario, spreads);
  if (spread == scenario.end()) return;
  for (Application& a : scenario) {
    if (a.transform != &kJitter || a.params.given("ranks")) continue;
    std::vector<std::pair<std::string, std::string>> args;
    for (const char* name : {"sd", "seed"}) {
      if (a.params.given(name)) args.emplace_back(name, fmt::format("{:.17g}", a.params[name]));
    }
    args.emplace_back("ranks", fmt::format("{:.0f}", spread->params["ranks"]));
    // What was accepted before is so again.
    if (auto bound = BindParams("jitter", a.transform->params, args); bound.ok()) {
      a.params = *std::move(bound);
    }
  }
}

}  // namespace

void PutInTurn(std::vector<Application>& scenario) {
  TellJitterOfRanks(scenario);
  std::stable_sort(
      scenario.begin(), scenario.end(),
      [](const Application& a, const Application& b) { return TurnOf(a) < TurnOf(b); });
}

}  // namespace daydream
