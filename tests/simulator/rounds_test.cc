// A step that is played over and over without copies takes what its copies take.
#include "simulator/rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/order.h"
#include "simulator/lone_step.h"
#include "tests/graph/random_graph.h"
#include "tests/simulator/alike_rounds.h"

namespace daydream {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t Below(uint64_t n) { return engine_() % n; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

 private:
  std::mt19937_64 engine_;
};

// A random graph whose kernels are launched, most of them by a call of their own step, on streams
// of which some have a launch queue, shared by some.
Graph LaunchingGraph(uint64_t seed) {
  Random random(seed);
  Graph graph = RandomGraph(seed, {.tasks = 30 + random.Below(60),
                                   .lanes = 2 + random.Below(5),
                                   .edges_per_task = 0.3 * static_cast<double>(random.Below(4))});
  const bool others_launch = random.OneIn(4);
  for (Edge& e : graph.mutable_edges()) {
    if (e.rule == Rule::kLaunch && !others_launch) e.rule = Rule::kTransform;
  }
  const NameId launch = graph.AddName("cudaLaunchKernel");
  const bool any_lost = random.OneIn(8);
  std::map<uint16_t, std::vector<TaskId>> calls;  // by step, so far
  const std::vector<TaskId> order = EvaluationOrder(graph).value();
  for (TaskId t : order) {
    const Task& task = graph.task(t);
    if (task.kind == TaskKind::kCall) {
      calls[task.step].push_back(t);
      if (any_lost && random.OneIn(6)) graph.mutable_task(t).name = launch;
    }
    const uint16_t step = task.step > 0 && random.OneIn(60) ? task.step - 1 : task.step;
    if (task.kind != TaskKind::kKernel || calls[step].empty() || random.OneIn(6)) continue;
    const std::vector<TaskId>& of_step = calls[step];
    const TaskId call =
        of_step[of_step.size() - 1 - random.Below(std::min<size_t>(3, of_step.size()))];
    graph.AddEdge({.from = call,
                   .to = t,
                   .lag = Duration::Ns(static_cast<int64_t>(random.Below(20))),
                   .rule = Rule::kLaunch});
    if (!random.OneIn(5)) continue;
    graph.AddEdge({.from = call,
                   .to = t,
                   .lag = Duration::Ns(static_cast<int64_t>(random.Below(9)) - 4),
                   .rule = Rule::kLaunch,
                   .from_anchor = Anchor::kStart});
  }
  const bool shared = random.OneIn(8);
  for (size_t l = 0; l < graph.lanes().size(); ++l) {
    GraphLane& lane = graph.mutable_lane(LaneId(l));
    if (lane.lane.kind != LaneKind::kStream || random.OneIn(3)) continue;
    lane.queue_depth = static_cast<uint32_t>(1 + random.Below(12));
    lane.shared_queue = shared ? 1 : 0;
  }
  return graph;
}

// The same as it was recorded, one task after the other. Of calls that launch nothing, some record
// an event and wait for room in a queue, or launched what was lost.
Graph RecordedGraph(uint64_t seed, bool records, bool lost) {
  Graph graph = LaunchingGraph(seed);
  Random random(seed + 7);
  const NameId launch = graph.AddName("cudaLaunchKernel");
  const NameId record = graph.AddName("cudaEventRecord");
  std::vector<bool> launches(graph.size());
  for (const Edge& e : graph.edges()) launches[e.from.index()] = e.rule == Rule::kLaunch;
  std::vector<TaskId> kernels;  // so far
  int64_t now = 0;
  const std::vector<TaskId> order = EvaluationOrder(graph).value();
  for (TaskId t : order) {
    Task& task = graph.mutable_task(t);
    task.recorded_start = Instant::AtNs(now += 10);
    if (task.kind == TaskKind::kKernel) kernels.push_back(t);
    if (task.kind != TaskKind::kCall) continue;
    if (launches[t.index()] || (lost && random.OneIn(2))) {
      task.name = launch;
    } else if (records && !kernels.empty()) {
      task.name = record;
      graph.AddEdge({.from = kernels[random.Below(kernels.size())],
                     .to = t,
                     .lag = Duration::Ns(3),
                     .rule = Rule::kQueue,
                     .from_anchor = Anchor::kStart,
                     .to_anchor = Anchor::kEnd});
    }
  }
  return graph;
}

TEST(Rounds, TakeWhatCopiesTake) {
  size_t played = 0, in_queues = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = LaunchingGraph(seed);
    const StepRepeater repeater(graph);
    for (uint16_t step = 0; step < graph.steps().size(); ++step) {
      const bool alike = PlaysAlike(repeater, step, 3 + seed % 4);
      if (testing::Test::HasFailure()) return;
      if (!alike) continue;
      ++played;
      const Graph copies = repeater.Repeat({.first = step}, 3);
      in_queues +=
          std::ranges::any_of(copies.edges(), [](const Edge& e) { return e.rule == Rule::kQueue; });
    }
  }
  // Of 4500: others share queues, lost operations, launch in other rounds or wait for themselves.
  EXPECT_GE(played, 3240U);
  EXPECT_GE(in_queues, 1490U);
}

TEST(Rounds, TakeWhatCopiesTakeWhereRecordsWaitAndLaunchesAreLost) {
  for (const auto& [records, lost] :
       {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
    size_t played = 0, left = 0;
    for (uint64_t seed = 0; seed < 400; ++seed) {
      SCOPED_TRACE(fmt::format("seed {}, records {}, lost {}", seed, records, lost));
      const Graph graph = RecordedGraph(seed, records, lost);
      const StepRepeater repeater(graph);
      for (uint16_t step = 0; step < graph.steps().size(); ++step) {
        (PlaysAlike(repeater, step, 3 + seed % 4) ? played : left) += 1;
        if (testing::Test::HasFailure()) return;
      }
    }
    EXPECT_GT(played, 20U) << records << lost;
    EXPECT_GT(left, 20U) << records << lost;
  }
}

TEST(Rounds, OfALoneStepEndInItsCycle) {
  size_t awaited = 0;
  for (uint64_t seed = 0; seed < 800; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = LaunchingGraph(seed);
    for (size_t i = 0; i < graph.size(); ++i) {
      Task& task = graph.mutable_task(TaskId(i));
      if (IsGpu(task.kind) && i % 7 == seed % 7) task.kind = TaskKind::kCollective;
    }
    const std::vector<Awaited> also = AwaitedByNext(graph, 1);
    awaited += also.empty() ? 0 : 1;
    PlaysAlike(StepRepeater(graph), 1, LoneStep::kRounds, also);
    const LoneStep lone(graph, 1);
    const auto timeline = Simulate(lone.rounds());
    const auto cycle = CycleOfLone(graph, 1);
    ASSERT_EQ(cycle.has_value(), timeline.ok());
    if (!cycle.has_value()) continue;
    ASSERT_EQ(*cycle, CycleOf(lone.rounds(), timeline->start, timeline->end));
  }
  EXPECT_GT(awaited, 20U);
}

// Tasks on lanes of any order, and those that share a queue, are told apart by copies alone.
TEST(Rounds, AreLeftToCopiesWhereThoseTellMore) {
  Graph graph = LaunchingGraph(1);
  for (size_t l = 0; l < graph.lanes().size(); ++l) {
    graph.mutable_lane(LaneId(l)).queue_depth = 0, graph.mutable_lane(LaneId(l)).shared_queue = 0;
  }
  const auto is_played = [](const Graph& g) {
    return PlayRounds(StepRepeater(g), 1, kRounds).has_value();
  };
  EXPECT_TRUE(is_played(graph));
  Graph in_any_order = graph;
  in_any_order.mutable_lane(LaneId(0)).order = LaneOrder::kPriority;
  EXPECT_FALSE(is_played(in_any_order));
  Graph shared = graph;
  shared.mutable_lane(LaneId(1)).queue_depth = 4, shared.mutable_lane(LaneId(1)).shared_queue = 1;
  EXPECT_FALSE(is_played(shared));
}

}  // namespace
}  // namespace daydream
