// The step without the profiler, on graphs whose host times are known.
#include "report/predict/true_step.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

// Ten calls of 6 us a step, of which recording took 2; each launches a kernel of 1 us.
Graph HostBound() {
  std::string text = "lane cpu thread\nlane gpu stream\n";
  for (int i = 0; i < 4; ++i) text += fmt::format("step \"{}\"\n", i);
  for (int i = 0; i < 40; ++i) {
    text += fmt::format("h{0} cpu call 6us \"cudaLaunchKernel\" step={1}\n", i, i / 10);
    text += fmt::format("k{0} gpu kernel 1us \"k\" step={1} after h{0} launch\n", i, i / 10);
  }
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << Message(graph.status());
  return graph.ok() ? *std::move(graph) : Graph();
}

Duration StepOf(const Graph& g) { return StepTime(g, Simulate(g).value()); }

TEST(TrueStep, IsATimeOrARate) {
  EXPECT_EQ(ParseTrueStep("101ms").value(), Duration::Ms(101));
  EXPECT_EQ(ParseTrueStep("10/s").value(), Duration::Ms(100));
  for (const char* bad : {"", "101", "0ms", "-3ms", "fast", "/s", "0/s", "nan"}) {
    EXPECT_EQ(DiagnosticOf(ParseTrueStep(bad).status()).code, "E0104") << bad;
  }
}

TEST(TrueStep, EachPieceOfHostWorkLosesTheSame) {
  Graph graph = HostBound();
  ASSERT_EQ(StepOf(graph), Duration::Us(60));
  const auto found = TakeOffRecording(Duration::Us(40), graph);
  ASSERT_TRUE(found.ok()) << Message(found.status());
  EXPECT_NEAR(StepOf(graph).us(), 40, 0.05);
  EXPECT_NEAR(found->per_event.us(), 2, 0.01);
  EXPECT_NEAR(found->share, 4.0 / 6, 0.002);
  EXPECT_EQ(found->tasks, 10);
  EXPECT_EQ(found->recorded, Duration::Us(60));
  EXPECT_TRUE(found->reached());
}

TEST(TrueStep, GpuWorkStaysAsItWas) {
  Graph graph = HostBound();
  ASSERT_TRUE(TakeOffRecording(Duration::Us(40), graph).ok());
  for (const Task& t : graph.tasks()) {
    if (t.kind != TaskKind::kKernel) continue;
    EXPECT_EQ(t.duration, Duration::Us(1));
  }
}

TEST(TrueStep, WhatNoHostCanReachIsRefused) {
  Graph graph = HostBound();
  EXPECT_EQ(DiagnosticOf(TakeOffRecording(Duration::Us(70), graph).status()).code, "E0621");
  EXPECT_EQ(DiagnosticOf(TakeOffRecording(Duration::Us(5), graph).status()).code, "E0621");
  EXPECT_EQ(StepOf(graph), Duration::Us(60)) << "a refusal changes nothing";
  const auto found = TakeOffRecording(Duration::Ns(9500), graph);  // its GPU takes 10 us
  ASSERT_TRUE(found.ok()) << Message(found.status());
  EXPECT_NEAR(StepOf(graph).us(), 10.1, 0.02);
  EXPECT_FALSE(found->reached());
}

}  // namespace
}  // namespace daydream
