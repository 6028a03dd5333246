// What is found for a copy of which only times were set is what is found for any graph like it.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "graph/retimed.h"
#include "report/predict/intervals.h"
#include "report/predict/quick_host.h"
#include "report/predict/step_spread.h"
#include "report/predict/unchanged.h"
#include "report/windows.h"
#include "simulator/simulate.h"
#include "tests/example_graph.h"
#include "tests/graph/random_graph.h"

namespace daydream {
namespace {

constexpr uint64_t kSeeds = 200;

// Times up to 20 us, for the quick host takes off some of them.
Graph RecordedOf(uint64_t seed) {
  return RandomGraph(seed, {.tasks = 1 + seed % 90, .lanes = 1 + seed % 5, .longest = 20'000});
}

// Some tasks are set twice, and some to what they were.
void Retime(const Graph& graph, std::mt19937_64& random, Graph& copy) {
  for (size_t i = 0; i < graph.size(); ++i) {
    const TaskId t(i);
    if (random() % 3 != 0) continue;
    copy.SetDuration(t, Duration::Ns(static_cast<int64_t>(random() % 20'000)));
    if (random() % 3 == 0) copy.SetDuration(t, graph.task(t).duration);
    if (random() % 2 == 0 && graph.task(t).gap >= Duration{}) {
      copy.SetGap(t, Duration::Ns(static_cast<int64_t>(random() % 20'000)));
    }
  }
}

// Calls `check(recorded, copy, the same without a structure())`.
template <class Check>
void ForRetimedCopies(Check check) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph graph = RecordedOf(seed);
    std::mt19937_64 random(seed);
    Graph copy = graph;
    copy.NameStructure(7);
    Retime(graph, random, copy);
    Graph plain = graph;
    for (size_t i = 0; i < graph.size(); ++i) {
      plain.mutable_task(TaskId(i)).duration = copy.task(TaskId(i)).duration;
      plain.mutable_task(TaskId(i)).gap = copy.task(TaskId(i)).gap;
    }
    ASSERT_EQ(plain.structure(), 0U);
    check(graph, copy, plain);
  }
}

TEST(RetimedCopies, EachTaskIsCalledOnce) {
  ForRetimedCopies([](const Graph& graph, const Graph& copy, const Graph&) {
    std::vector<TaskId> called, told(copy.retimed().begin(), copy.retimed().end());
    const auto retimed = RetimedOf(graph, copy);
    for (const Retimed& t : *retimed) {
      called.push_back(t.task);
      EXPECT_EQ(t.duration_was, graph.task(t.task).duration);
      EXPECT_EQ(t.gap_was, graph.task(t.task).gap);
      EXPECT_EQ(t.duration, copy.task(t.task).duration);
      EXPECT_EQ(t.gap, copy.task(t.task).gap);
    }
    std::ranges::sort(called);
    std::ranges::sort(told);
    told.erase(std::unique(told.begin(), told.end()), told.end());
    EXPECT_EQ(called, told);
  });
}

TEST(RetimedCopies, ARetimedCopyIsTheOneThatTasksWereSetIn) {
  ForRetimedCopies([](const Graph& graph, const Graph& copy, const Graph&) {
    Graph again = graph;
    again.NameStructure(7);
    daydream::Retime(again, *RetimedOf(graph, copy));
    for (size_t i = 0; i < graph.size(); ++i) {
      EXPECT_EQ(again.task(TaskId(i)).duration, copy.task(TaskId(i)).duration);
      EXPECT_EQ(again.task(TaskId(i)).gap, copy.task(TaskId(i)).gap);
    }
    EXPECT_EQ(RetimedBy(graph, again), RetimedBy(graph, copy));
    again.UndoRetimed(graph);
    EXPECT_TRUE(again.retimed().empty());
    EXPECT_EQ(RetimedBy(graph, again), Duration{});
  });
}

TEST(RetimedCopies, TakeAsLongOverAQuickHost) {
  size_t shorter = 0;
  ForRetimedCopies([&](const Graph& graph, const Graph& copy, const Graph& plain) {
    Replays replays(graph), of_plain(plain);
    const QuickHost quick(graph, replays);
    const QuickHost alone(plain, of_plain);
    ASSERT_TRUE(alone.step().has_value());
    EXPECT_EQ(quick.StepOf(copy, replays), alone.step());
    EXPECT_EQ(quick.StepOf(plain, of_plain), alone.step());
    shorter += *alone.step() < StepTime(plain, Simulate(plain).value()) ? 1 : 0;
  });
  EXPECT_GT(shorter, kSeeds / 2);
}

TEST(RetimedCopies, HaveTheSameFloor) {
  size_t floors = 0;
  ForRetimedCopies([&](const Graph& graph, const Graph& copy, const Graph& plain) {
    const Duration floor = LeastGpuTime(plain, LeastTimes(graph, plain, false));
    EXPECT_EQ(LeastGpuTimes(graph).Of(copy, false), floor);
    EXPECT_EQ(LeastGpuTimes(graph).Of(plain, false), floor);
    floors += floor > Duration{} ? 1 : 0;
  });
  EXPECT_GT(floors, kSeeds / 4);
}

// Also where a gap began, which the recorded graph does not have.
TEST(RetimedCopies, AreResampledAlike) {
  const Graph graph = Example("launch-bound").graph;
  const StepSpread spread(graph);
  ASSERT_GE(spread.steps(), 2U);
  const StepBatch of_graph = StepBatch::Make(graph).value();
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    Graph copy = graph;
    copy.NameStructure(7);
    for (size_t i = 0; i < graph.size(); ++i) {
      const TaskId t(i);
      if (random() % 2 == 0) copy.SetDuration(t, graph.task(t).duration.Scaled(0.7));
      if (random() % 4 == 0) copy.SetDuration(t, graph.task(t).duration.Scaled(1.3));
      const bool may_begin = seed % 2 == 1 && graph.task(t).gap == Duration{};
      if (graph.task(t).gap > Duration{} && random() % 3 == 0) copy.SetGap(t, {});
      if (may_begin && random() % 9 == 0) copy.SetGap(t, Duration::Us(3));
    }
    StepBatch batch = of_graph.Another();
    batch.Follow(copy);
    const std::vector<Duration> steps = spread.Resample(copy, batch, 64);
    Graph plain = copy;
    plain.mutable_edges();
    ASSERT_EQ(plain.structure(), 0U);
    EXPECT_EQ(spread.Resample(plain, batch, 64), steps);
    EXPECT_EQ(batch.StepWith({}), StepTime(copy, Simulate(copy).value()));
  }
}

TEST(RetimedCopies, PlayAlikeWhereNoTimeIsAnother) {
  ForRetimedCopies([](const Graph& graph, const Graph& copy, const Graph& plain) {
    EXPECT_EQ(PlaysAlike(graph, copy), PlaysAlike(graph, plain));
    Graph back = copy;
    for (TaskId t : copy.retimed()) {
      back.SetDuration(t, graph.task(t).duration);
      back.SetGap(t, graph.task(t).gap);
    }
    EXPECT_TRUE(PlaysAlike(graph, back));
  });
}

}  // namespace
}  // namespace daydream
