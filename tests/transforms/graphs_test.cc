// What a graph of few launches saves.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "graph/text.h"
#include "simulator/simulate.h"
#include "tests/graph/built_sketch.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// `launches` of 5 us with 10 us of host work behind each, of kernels of 2 us.
Graph Launches(int launches) {
  std::string text = "lane cpu0 thread\nlane gpu0.7 stream\n";
  for (int i = 0; i < launches; ++i) {
    text += fmt::format("c{0} cpu0 call 5us gap 10us \"cudaLaunchKernel\" at {1}us\n", i, 15 * i);
    text += fmt::format("k{0} gpu0.7 kernel 2us \"k\" at {1}us after c{0} launch\n", i, 15 * i + 5);
  }
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

double Microseconds(const Graph& graph) {
  auto timeline = Simulate(graph);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return static_cast<double>(timeline->makespan.ns) / 1e3;
}

// With `graphs`; as it is where that changes nothing.
double Captured(int launches) {
  Graph graph = Launches(launches);
  auto scenario = ParseScenario("graphs");
  EXPECT_TRUE(scenario.ok());
  if (!Apply(scenario->front(), graph).ok()) graph = Launches(launches);
  return Microseconds(graph);
}

// A run of 44 launches saved nothing and one of 50 nearly all: a graph is as good as what it
// replaces, however many launches that are.
TEST(Graphs, OneLaunchMoreIsNoCliff) {
  for (int n = 2; n < 80; ++n) {
    const double saved = Microseconds(Launches(n)) - Captured(n);
    const double more = Microseconds(Launches(n + 1)) - Captured(n + 1);
    EXPECT_NEAR(more, saved, 15.0) << n << " launches: the next one costs the host 15 us";
  }
  EXPECT_GT(Microseconds(Launches(44)) / Captured(44), 3.0);
}

// An op draws a batch in 30 us, another copies it, a third launches three kernels. A view of 20 us
// comes in front of the kernels.
Graph DrawsItsBatch() {
  TraceSketch s;
  const LaneId thread = s.Thread(), stream = s.Stream();
  s.Op(thread, "aten::randn", 10, 30);
  s.Op(thread, "aten::to", 40, 20);
  s.Call(thread, "cudaMemcpyAsync", 45, 10, 1);
  s.Copy(stream, Memory::kPageable, Memory::kDevice, 4096, 48, 5, 1);
  s.Op(thread, "aten::t", 60, 20);
  s.Op(thread, "aten::linear", 80, 100);
  for (int i = 0; i < 3; ++i) s.Launch(thread, stream, "gemm", 90 + 30 * i, 5, 97 + 30 * i, 10);
  return Build(s).graph;
}

Duration HostTimeOf(const Graph& graph, std::string_view op) {
  Duration all;
  for (const Task& task : graph.tasks()) {
    const bool in =
        task.scope.valid() && graph.Name(graph.tables().scopes[task.scope.index()].name) == op;
    if (!task.removed && in) all += task.duration;
  }
  return all;
}

TEST(Graphs, WhatMayMakeACopiedBatchGoesOn) {
  for (const char* spec : {"aot", "aot(scope=step)"}) {
    Graph graph = DrawsItsBatch();
    ASSERT_EQ(HostTimeOf(graph, "aten::randn"), Duration::Us(30));
    ASSERT_TRUE(Apply(ParseScenario(spec)->front(), graph).ok());
    EXPECT_EQ(HostTimeOf(graph, "aten::randn"), Duration::Us(30)) << spec;
    EXPECT_EQ(HostTimeOf(graph, "aten::t"), Duration()) << spec;
  }
}

// While the batch is stacked, another thread launches: that does not tell who makes the batch.
TEST(Graphs, WhatMayMakeACopiedBatchGoesOnWhateverOtherThreadsLaunch) {
  TraceSketch s;
  const LaneId thread = s.Thread(), other = s.Thread(101), stream = s.Stream();
  s.Op(thread, "aten::stack", 10, 30);
  s.Op(other, "aten::mul", 15, 10);
  s.Launch(other, stream, "mul", 17, 5, 25, 10);
  s.Op(thread, "aten::to", 40, 20);
  s.Call(thread, "cudaMemcpyAsync", 45, 10, 1);
  s.Copy(stream, Memory::kPageable, Memory::kDevice, 4096, 48, 5, 1);
  s.Op(thread, "aten::linear", 80, 100);
  for (int i = 0; i < 3; ++i) s.Launch(thread, stream, "gemm", 90 + 30 * i, 5, 97 + 30 * i, 10);
  const Graph recorded = Build(s).graph;
  ASSERT_EQ(HostTimeOf(recorded, "aten::stack"), Duration::Us(30));
  for (const char* spec : {"aot", "aot(scope=step)"}) {
    Graph graph = recorded;
    ASSERT_TRUE(Apply(ParseScenario(spec)->front(), graph).ok());
    EXPECT_EQ(HostTimeOf(graph, "aten::stack"), Duration::Us(30)) << spec;
  }
}

// An op that launches, and then uploads `copies` times in a row, an event behind each.
double SecondsToCapture(int copies) {
  TraceSketch s;
  const LaneId thread = s.Thread(), stream = s.Stream();
  s.Op(thread, "aten::many", 0, 20.0 * copies + 100);
  s.Launch(thread, stream, "k", 1, 5, 8, 5);
  double us = 20;
  for (int i = 0; i < copies; ++i, us += 20) {
    const auto id = static_cast<uint32_t>(i + 100'000);
    s.Call(thread, "cudaMemcpyAsync", us, 8, id);
    s.Copy(stream, Memory::kPageable, Memory::kDevice, 4096, us + 3, 4, id);
    s.Call(thread, "cudaEventRecord", us + 12, 1);
  }
  for (int i = 0; i < 3; ++i) s.Launch(thread, stream, "k", us + 20 * i, 5, us + 20 * i + 7, 5);
  Graph graph = Build(s).graph;
  const std::clock_t begin = std::clock();
  EXPECT_TRUE(Apply(ParseScenario("aot")->front(), graph).ok());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(Graphs, ManyCopiesInARowAreNoTrouble) {
  const double few = std::min(SecondsToCapture(2000), SecondsToCapture(2000));
  EXPECT_LT(SecondsToCapture(16'000), 32 * few) << "eight times as many";
}

}  // namespace
}  // namespace daydream
