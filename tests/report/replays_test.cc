// A batch that is lent plays the copy that it was asked for, and none is lent where it could not.
#include "report/predict/replays.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "simulator/simulate.h"
#include "tests/graph/random_graph.h"

namespace daydream {
namespace {

Graph NamedCopy(const Graph& graph) {
  Graph copy = graph;
  copy.NameStructure(7);
  return copy;
}

TEST(Replays, ALentBatchPlaysItsCopy) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph graph = RandomGraph(seed, {.tasks = 1 + seed % 80, .lanes = 1 + seed % 5});
    Replays replays(graph);
    std::mt19937_64 random(seed);
    for (int round = 0; round < 3; ++round) {  // the batch that came back is lent again
      Graph copy = NamedCopy(graph);
      for (size_t i = 0; i < graph.size(); ++i) {
        if (random() % 2 == 0) copy.SetDuration(TaskId(i), Duration::Ns(random() % 1000));
      }
      const Replays::Lent batch = replays.Batch(copy);
      ASSERT_NE(batch, nullptr);
      EXPECT_EQ(batch->StepWith({}), StepTime(copy, Simulate(copy).value()));
    }
  }
}

// It is lent as it is, but for what was told of single scenarios.
TEST(Replays, ABatchThatFollowsTheCopyAlreadyPlaysItAgain) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph graph = RandomGraph(seed, {.tasks = 1 + seed % 80, .lanes = 1 + seed % 5});
    Replays replays(graph);
    Graph copy = NamedCopy(graph);
    const Task& task = graph.task(TaskId(0));
    Retime(copy,
           {{TaskId(0), task.kind, false, task.duration, task.gap, Duration::Us(7), task.gap}});
    const Duration step = StepTime(copy, Simulate(copy).value());
    std::set<const StepBatch*> known;
    for (int round = 0; round < 3; ++round) {
      const Replays::Lent batch = replays.Batch(copy);
      const Replays::Lent beside = replays.Batch(copy);  // of another thread
      EXPECT_NE(&*beside, &*batch);
      known.insert({&*batch, &*beside});
      EXPECT_EQ(batch->StepWith({}), step);
      EXPECT_EQ(batch->Run()[2], step);
      batch->Set(2, TaskId(0), Duration::Ms(3), {});
      batch->Run();
      EXPECT_EQ(beside->StepWith({}), step);
    }
    EXPECT_EQ(known.size(), 2U);
    copy.SetDuration(TaskId(0), Duration::Us(9));
    EXPECT_EQ(replays.Batch(copy)->StepWith({}), StepTime(copy, Simulate(copy).value()));
    EXPECT_EQ(replays.Batch(graph)->StepWith({}), StepTime(graph, Simulate(graph).value()));
  }
}

TEST(Replays, LendsNoneWhereAGapBecameNegative) {
  const Graph graph = RandomGraph(3, {.tasks = 30, .lanes = 3});
  Replays replays(graph);
  Graph copy = NamedCopy(graph);
  const auto apart =
      std::ranges::find_if(graph.tasks(), [](const Task& t) { return t.gap >= Duration{}; });
  ASSERT_NE(apart, graph.tasks().end());
  copy.SetGap(TaskId(static_cast<size_t>(apart - graph.tasks().begin())), Duration::Ns(-1));
  EXPECT_EQ(replays.Batch(copy), nullptr);
  EXPECT_NE(replays.Batch(graph), nullptr);
}

TEST(Replays, HaveNoPlanOfLanesThatMayReorder) {
  Graph graph = RandomGraph(3, {.tasks = 30, .lanes = 3});
  graph.mutable_lane(LaneId(0)).order = LaneOrder::kPriority;
  Replays replays(graph);
  EXPECT_EQ(replays.plan(), nullptr);
  EXPECT_EQ(replays.Batch(graph), nullptr);
}

}  // namespace
}  // namespace daydream
