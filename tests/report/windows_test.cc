#include "report/windows.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "report/summary.h"
#include "simulator/simulate.h"
#include "tests/graph/random_graph.h"
#include "tests/graph/trace_sketch.h"

namespace daydream {
namespace {

// Four steps of 100 us: the loader takes 30, a kernel launched at 40 runs from 45 to 95, and the
// host waits for it.
Graph Loader() {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int64_t step = 0; step < 4; ++step) {
    const int64_t at = 100 * step;
    s.Mark(cpu, "ProfilerStep#" + std::to_string(step), at, 100);
    s.Op(cpu, "enumerate(DataLoader)#Iter.__next__", at, 30);
    s.Launch(cpu, gpu, "kernel", at + 40, 5, at + 45, 50);
    s.Call(cpu, "cudaDeviceSynchronize", at + 50, 50);
  }
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return std::move(built->graph);
}

Timeline Replay(const Graph& graph) {
  auto timeline = Simulate(graph, {.blockers = true});
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return *std::move(timeline);
}

TEST(Windows, BeginWhereTheKernelBeforeEndsAndTheGpuWaitsForTheHost) {
  const Graph graph = Loader();
  const std::vector<Window> windows = CountedWindows(graph, Replay(graph));
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_EQ(windows[1].end.ns, 295'000) << "not 345 us, where the next kernel starts";
  EXPECT_EQ(windows[2].begin.ns, 295'000);
  EXPECT_EQ(windows[2].end.ns, 395'000);
}

TEST(Windows, AreAsLongAsThePeriods) {
  const Graph graph = Loader();
  const Timeline timeline = Replay(graph);
  const Summary summary = Summarize(graph, timeline, GroupBy::kClass);
  EXPECT_EQ(summary.step, Duration::Us(100));
  EXPECT_EQ(summary.window, summary.step);
}

TEST(Windows, EachStepHasOneWaitForTheLoader) {
  const Graph graph = Loader();
  const BoundBy path = PathPerStep(graph, Replay(graph));
  EXPECT_EQ(path.data, Duration::Us(30)) << "of three steps, not of two";
}

// Two threads without operators: nothing tells what the second one waited for.
TEST(Windows, APathThatBeginsLateIsOfTheWholeWindow) {
  TraceSketch s;
  LaneId first = s.Thread(), gpu = s.Stream(), second = s.Thread(), other = s.Stream();
  s.Launch(first, gpu, "kernel", 0, 5, 10, 20);
  s.Launch(second, other, "kernel", 40, 5, 50, 50);
  auto built = BuildGraph(s.Build());
  ASSERT_TRUE(built.ok()) << built.status();
  const BoundBy path = PathPerStep(built->graph, Replay(built->graph));
  EXPECT_EQ(path.gpu, Duration::Us(50));
  EXPECT_EQ(path.cpu, Duration::Us(50)) << "40 of them before the second thread begins";
}

// The host is ahead by some steps; behind the last launch it writes results for a millisecond.
TEST(Windows, WhatTheHostDoesBehindTheLastGpuWorkIsOnNoPath) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int64_t step = 0; step < 4; ++step) {
    const int64_t at = 20 * step;
    s.Mark(cpu, "ProfilerStep#" + std::to_string(step), at, step < 3 ? 20 : 1020);
    s.Launch(cpu, gpu, "kernel", at + 5, 5, 20 + 100 * step, 99);
  }
  s.Op(cpu, "write", 80, 1000);
  auto built = BuildGraph(s.Build());
  ASSERT_TRUE(built.ok()) << built.status();
  const Graph& graph = built->graph;
  const BoundBy path = PathPerStep(graph, Replay(graph));
  EXPECT_EQ(path.cpu, Duration());
  EXPECT_GE(path.gpu, Duration::Us(98)) << "before: the host's millisecond, and no GPU at all";
}

TEST(Windows, SumsOfThePathNeedNoPath) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Graph graph = RandomGraph(seed, {.tasks = 2 + seed % 80, .lanes = 1 + seed % 4});
    const size_t steps = 1 + seed % 5;
    while (graph.steps().size() < steps) graph.AddStep({.label = "step"});
    for (const GraphLane& lane : graph.lanes()) {
      size_t place = 0;
      for (TaskId t = lane.first; t.valid(); t = graph.task(t).lane_next) {
        graph.mutable_task(t).step = static_cast<uint16_t>(std::min(place++ / 8, steps - 1));
      }
    }
    const Timeline timeline = Simulate(graph).value();
    const BoundBy sum = PathPerStep(graph, timeline);
    const BoundBy all = PathPerStep(CountedPath(graph, timeline));
    EXPECT_EQ(sum.gpu, all.gpu);
    EXPECT_EQ(sum.cpu, all.cpu);
    EXPECT_EQ(sum.comm, all.comm);
    EXPECT_EQ(sum.data, all.data);
  }
}

}  // namespace
}  // namespace daydream
