// Where sums tell that the host bounds a step, its critical path tells the same.
#include "report/predict/host_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "report/windows.h"
#include "simulator/simulate.h"
#include "simulator/step_batch.h"
#include "tests/graph/random_graph.h"

namespace daydream {
namespace {

constexpr uint64_t kSeeds = 1000;

Duration LengthOf(const BoundBy& path) { return path.gpu + path.cpu + path.comm + path.data; }

// Of several steps, of which the first ones may not count; in some, tasks load data, or threads and
// streams begin late.
Graph GraphOfSteps(uint64_t seed, std::mt19937_64& random) {
  Graph graph = RandomGraph(seed, {.tasks = 20 + seed % 80,
                                   .lanes = 1 + seed % 4,
                                   .edges_per_task = 0.5,
                                   .longest = 1000,
                                   .negative_lags = seed % 3 == 0,
                                   .overlaps = seed % 4 == 0});
  const size_t steps = 2 + seed % 3;
  while (graph.steps().size() < steps) {
    graph.AddStep({.label = "step", .measured = seed % 2 == 0 || graph.steps().size() > 1});
  }
  for (const GraphLane& lane : graph.lanes()) {
    size_t place = 0;
    for (TaskId t = lane.first; t.valid(); t = graph.task(t).lane_next) {
      Task& task = graph.mutable_task(t);
      task.step = static_cast<uint16_t>(std::min(place++ / 8, steps - 1));
      const bool loads = seed % 5 == 0 && random() % 2 == 0;
      task.phase = loads ? Phase::kData : Phase::kNone;
    }
    const bool late = seed % 5 == 1 && lane.first.valid();  // nothing tells what it waited for
    if (late) graph.mutable_task(lane.first).earliest = Instant::AtNs(7000 * (seed % 4));
  }
  return graph;
}

// All that is no CPU's by that much shorter.
Graph WithShortGpuWork(const Graph& graph, double factor) {
  Graph copy = graph;
  copy.NameStructure(7);
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.tasks()[i];
    if (ResourceOf(task.kind) == Resource::kCpu) continue;
    copy.SetDuration(TaskId(i), task.duration.Scaled(factor));
    if (task.gap > Duration{}) copy.SetGap(TaskId(i), task.gap.Scaled(factor));
  }
  return copy;
}

std::vector<StepWindow> WindowsOf(const Graph& graph, const Timeline& timeline) {
  return StepWindows(graph, timeline.start, timeline.end);
}

TEST(HostBound, IsSureOnlyWhereThePathIsTheHosts) {
  size_t sure = 0, bound = 0, not_bound = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Graph graph = GraphOfSteps(seed, random);
    const HostBound host_bound(graph);
    for (double factor : {1.0, 0.3, 0.01}) {
      const Graph copy = WithShortGpuWork(graph, factor);
      const Timeline timeline = Simulate(copy).value();
      const BoundBy path = PathPerStep(copy, timeline);
      const bool is_bound = path.cpu * 2 >= LengthOf(path);
      const bool is_sure = host_bound.IsSure(copy, WindowsOf(copy, timeline));
      EXPECT_TRUE(is_bound || !is_sure);
      sure += is_sure, bound += is_bound, not_bound += !is_bound;
    }
  }
  EXPECT_GT(sure, kSeeds / 10);
  EXPECT_GT(bound, sure);
  EXPECT_GT(not_bound, kSeeds / 10);
}

// A thread and a stream; what is appended is of the latest step.
struct Sketch {
  Graph graph;
  LaneId thread = graph.AddLane({.lane = {.kind = LaneKind::kThread}});
  LaneId stream = graph.AddLane({.lane = {.kind = LaneKind::kStream}});
  TaskId Add(LaneId lane, Task task) {
    task.lane = lane;
    task.step = static_cast<uint16_t>(graph.steps().size() - 1);
    return graph.Append(task);
  }
  TaskId Host(int64_t us, int64_t gap_us = 0, Phase phase = Phase::kNone) {
    return Add(thread, {.duration = Duration::Us(us),
                        .gap = Duration::Us(gap_us),
                        .kind = TaskKind::kHost,
                        .phase = phase});
  }
  void Kernel(TaskId call) {
    const TaskId kernel = Add(stream, {.duration = Duration::Us(1), .kind = TaskKind::kKernel});
    graph.AddEdge({.from = call, .to = kernel, .rule = Rule::kLaunch});
  }
  // What sums tell, where the host has so much of the path of a step.
  bool IsSure(Duration of_cpu) {
    graph.NameStructure(7);
    const Timeline timeline = Simulate(graph).value();
    EXPECT_EQ(PathPerStep(graph, timeline).cpu, of_cpu);
    return HostBound(graph).IsSure(graph, WindowsOf(graph, timeline));
  }
};

TEST(HostBound, TakesWorkAndGapsOfTheHostForTheHosts) {
  Sketch s;
  for (int step = 0; step < 3; ++step) {
    s.graph.AddStep({.label = "step"});
    s.Kernel(s.Host(50, 50));
  }
  EXPECT_TRUE(s.IsSure(Duration::Ns(99'500)));
}

TEST(HostBound, TakesNeitherLoadingNorTheGapBeforeItForTheHosts) {
  Sketch work, gap;
  for (int step = 0; step < 3; ++step) {
    work.graph.AddStep({.label = "step"});
    work.Host(90, 0, Phase::kData);
    work.Kernel(work.Host(10));
    gap.graph.AddStep({.label = "step"});
    gap.Host(9, 90);
    gap.Kernel(gap.Host(1, 0, Phase::kData));
  }
  EXPECT_FALSE(work.IsSure(Duration::Us(10)));
  EXPECT_FALSE(gap.IsSure(Duration::Ns(8'500)));
}

TEST(HostBound, TakesWhatLiesBeforeThePathForAnybodys) {
  Sketch s;
  s.graph.AddStep({.label = "first"});
  s.Kernel(s.Host(1));
  s.graph.AddStep({.label = "late"});
  s.Add(
      s.graph.AddLane({.lane = {.kind = LaneKind::kStream}}),
      {.duration = Duration::Us(1), .earliest = Instant::AtNs(100'000), .kind = TaskKind::kKernel});
  EXPECT_FALSE(s.IsSure({}));
}

TEST(HostBound, IsNotKnownOfOtherGraphs) {
  size_t sure = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    std::mt19937_64 random(seed);
    const Graph graph = GraphOfSteps(seed, random);
    const HostBound host_bound(graph);
    Graph copy = WithShortGpuWork(graph, 0);
    const std::vector<StepWindow> windows = WindowsOf(copy, Simulate(copy).value());
    if (!host_bound.IsSure(copy, windows)) continue;
    ++sure;
    EXPECT_FALSE(host_bound.IsSure(copy, {})) << "of a lone step, whose windows a batch has not";
    copy.mutable_edges();
    ASSERT_EQ(copy.structure(), 0U);
    EXPECT_FALSE(host_bound.IsSure(copy, windows));
  }
  EXPECT_GT(sure, 0U);
}

TEST(HostBound, GoesByTheWindowsThatABatchTells) {
  size_t told = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Graph graph = GraphOfSteps(seed, random), copy = WithShortGpuWork(graph, 0.3);
    StepBatch batch = StepBatch::Make(graph).value();
    batch.Follow(copy);
    batch.StepWith({});
    const std::span<const StepWindow> windows = batch.windows();
    const std::vector<StepWindow> played = WindowsOf(copy, Simulate(copy).value());
    if (windows.empty()) continue;
    ++told;
    ASSERT_EQ(windows.size(), played.size());
    for (size_t i = 0; i < windows.size(); ++i) {
      if (i > 0) EXPECT_EQ(windows[i].begin, played[i].begin);
      EXPECT_EQ(windows[i].end, played[i].end);
    }
  }
  EXPECT_GT(told, kSeeds / 2);
}

}  // namespace
}  // namespace daydream
