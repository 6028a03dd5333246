// Rounds that are played without copies, against a replay of real copies.
#pragma once

#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "graph/repeat.h"
#include "graph/step_windows.h"
#include "simulator/rounds.h"
#include "simulator/simulate.h"

namespace daydream {

// What PlayRounds() is to tell, from copies; none where these cannot be played.
inline std::optional<PlayedRounds> RoundsOfCopies(const StepRepeater& repeater, uint16_t step,
                                                  size_t times, std::span<const Awaited> also) {
  Graph copies = repeater.Repeat({.first = step}, static_cast<int>(times));
  const std::span<const TaskId> tasks = repeater.TasksOf(step);
  const auto copy_of = [&](TaskId t, size_t round) {
    const auto place = std::ranges::find(tasks, t) - tasks.begin();
    return TaskId(round * tasks.size() + static_cast<size_t>(place));
  };
  for (const auto& [from, to] : also) {
    for (size_t k = 1; k < times; ++k) {
      copies.AddEdge({.from = copy_of(from, k - 1), .to = copy_of(to, k)});
    }
  }
  const auto timeline = Simulate(copies);
  if (!timeline.ok()) return std::nullopt;
  PlayedRounds played{.extents = StepExtents(copies, timeline->start, timeline->end),
                      .host_ends = std::vector<std::optional<Instant>>(times)};
  for (size_t i = 0; i < copies.size(); ++i) {
    if (!IsHost(copies.tasks()[i].kind)) continue;
    std::optional<Instant>& latest = played.host_ends[copies.tasks()[i].step];
    latest = std::max(latest.value_or(timeline->end[i]), timeline->end[i]);
  }
  return played;
}

// Whether they could be played without copies.
inline bool PlaysAlike(const StepRepeater& repeater, uint16_t step, size_t times,
                       std::span<const Awaited> also = {}) {
  const auto played = PlayRounds(repeater, step, times, also);
  if (!played.has_value()) return false;
  const auto expected = RoundsOfCopies(repeater, step, times, also);
  EXPECT_TRUE(expected.has_value());
  if (!expected.has_value()) return true;
  EXPECT_EQ(played->host_ends, expected->host_ends);
  EXPECT_EQ(played->extents.size(), expected->extents.size());
  for (size_t k = 0; k < times; ++k) {
    const StepExtent &own = played->extents[k], &of_copy = expected->extents[k];
    EXPECT_EQ(own.gpu, of_copy.gpu);
    EXPECT_EQ(own.any, of_copy.any);
    EXPECT_EQ(own.counts, of_copy.counts);
    EXPECT_EQ(own.backlog, of_copy.backlog);
    EXPECT_EQ(own.host_led, of_copy.host_led);
    EXPECT_EQ(own.host_waited, of_copy.host_waited);
    EXPECT_EQ(own.recorded, of_copy.recorded);
    EXPECT_EQ(own.first, of_copy.first) << "round " << k;
    EXPECT_EQ(own.last, of_copy.last) << "round " << k;
    EXPECT_EQ(own.all.begin, of_copy.all.begin) << "round " << k;
    EXPECT_EQ(own.all.end, of_copy.all.end) << "round " << k;
    EXPECT_EQ(own.host.has_value(), of_copy.host.has_value());
    EXPECT_EQ(own.launched, of_copy.launched) << "round " << k;
  }
  return true;
}

}  // namespace daydream
