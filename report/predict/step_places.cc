#include "report/predict/step_places.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace daydream {
namespace {

// What a lane has of one name.
struct OfName {
  LaneId lane;
  std::vector<std::pair<uint16_t, uint32_t>> met;  // by step: how many tasks so far
  std::vector<uint32_t> places;                    // by number within a step

  // How many tasks of `step` came before this one.
  uint32_t NumberIn(uint16_t step) {
    // Mostly tasks come in the order of their steps.
    if (met.empty() || met.back().first < step) met.emplace_back(step, 0);
    if (met.back().first == step) return met.back().second++;
    auto known = std::ranges::lower_bound(met, step, {}, &std::pair<uint16_t, uint32_t>::first);
    if (known->first != step) known = met.insert(known, {step, 0});
    return known->second++;
  }
};

}  // namespace

StepPlaces FindStepPlaces(const Graph& graph, absl::FunctionRef<bool(const Task&)> counts) {
  StepPlaces found;
  found.of_task.assign(graph.size(), StepPlaces::kNone);
  // Not a map of abseil: one that gets no memory to grow is broken, and ends the program.
  std::unordered_map<uint32_t, OfName> names;
  for (size_t l = 0; l < graph.lanes().size(); ++l) {
    for (TaskId t = graph.lane(LaneId(l)).first; t.valid(); t = graph.task(t).lane_next) {
      const Task& task = graph.task(t);
      if (!counts(task)) continue;
      OfName& name = names[static_cast<uint32_t>(task.name.index())];
      if (name.lane != LaneId(l)) {
        name.lane = LaneId(l);
        name.met.clear();
        name.places.clear();
      }
      const uint32_t number = name.NumberIn(task.step);
      if (number == name.places.size()) name.places.push_back(found.count++);
      found.of_task[t.index()] = name.places[number];
    }
  }
  return found;
}

}  // namespace daydream
