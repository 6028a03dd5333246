// The same piece of work in different steps, also where tasks of steps lie between one another.
#include "report/predict/step_places.h"

#include <map>
#include <random>
#include <tuple>

#include <gtest/gtest.h>

namespace daydream {
namespace {

TEST(StepPlaces, AreTheNthOfTheirNameOnTheirLaneInEachStep) {
  std::mt19937_64 random(3);
  Graph g;
  for (int i = 0; i < 40; ++i) g.AddStep({});
  const std::string_view names[] = {"a", "b", "c"};
  for (int lane = 0; lane < 2; ++lane) {
    const LaneId id = g.AddLane({.lane = {.kind = LaneKind::kStream, .number = lane}});
    for (int i = 0; i < 600; ++i) {
      // Mostly in order; a step may also be met late for the first time.
      const auto step = static_cast<uint16_t>(random() % 4 == 0 ? random() % 40 : i / 15);
      g.Append({.name = g.AddName(names[random() % 3]),
                .lane = id,
                .step = step,
                .kind = random() % 8 == 0 ? TaskKind::kDelay : TaskKind::kKernel});
    }
  }
  const StepPlaces places =
      FindStepPlaces(g, [](const Task& t) { return t.kind == TaskKind::kKernel; });
  std::map<std::tuple<LaneId, NameId, uint16_t>, uint32_t> met;
  std::map<std::tuple<LaneId, NameId, uint32_t>, uint32_t> place_of;
  for (size_t i = 0; i < g.size(); ++i) {
    const Task& t = g.tasks()[i];
    if (t.kind == TaskKind::kDelay) {
      EXPECT_EQ(places.of_task[i], StepPlaces::kNone);
      continue;
    }
    const uint32_t number = met[{t.lane, t.name, t.step}]++;
    const auto [known, fresh] = place_of.try_emplace({t.lane, t.name, number}, places.of_task[i]);
    EXPECT_EQ(known->second, places.of_task[i]) << i;
  }
  EXPECT_EQ(places.count, place_of.size());
}

}  // namespace
}  // namespace daydream
