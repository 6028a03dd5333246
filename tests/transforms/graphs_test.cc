// What a graph of few launches saves.
#include <gtest/gtest.h>

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

TEST(Graphs, WhatMayMakeACopiedBatchGoesOn) {
  for (const char* spec : {"aot", "aot(scope=step)"}) {
    Graph graph = DrawsItsBatch();
    const auto host_time_of = [&](std::string_view op) {
      Duration all;
      for (const Task& task : graph.tasks()) {
        const bool in =
            task.scope.valid() && graph.Name(graph.tables().scopes[task.scope.index()].name) == op;
        if (!task.removed && in) all += task.duration;
      }
      return all;
    };
    ASSERT_EQ(host_time_of("aten::randn"), Duration::Us(30));
    ASSERT_TRUE(Apply(ParseScenario(spec)->front(), graph).ok());
    EXPECT_EQ(host_time_of("aten::randn"), Duration::Us(30)) << spec;
    EXPECT_EQ(host_time_of("aten::t"), Duration()) << spec;
  }
}

}  // namespace
}  // namespace daydream
