// Mixed precision shortens kernels; a step that is bound by launches does not get faster.
#include <random>

#include <gtest/gtest.h>

#include "graph/text.h"
#include "simulator/simulate.h"
#include "transforms/core/transform.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// Kernels that are shorter than the host takes to launch them, and host work after the last.
std::string LaunchBound(std::mt19937& random, std::string_view device) {
  std::string text = fmt::format(
      "{}\nlane cpu0 thread\nlane gpu0.7 stream\n"
      "scope mm  op cpu0 \"aten::mm\" shapes=\"[[512, 1024], [1024, 1024]]\" "
      "types=\"[\\\"float\\\", \\\"float\\\"]\"\n"
      "scope add op cpu0 \"aten::add\" shapes=\"[[512, 1024], [512, 1024]]\" "
      "types=\"[\\\"float\\\", \\\"float\\\"]\"\n"
      "scope opt annotation cpu0 \"Optimizer.step#SGD.step\"\n",
      device);
  const int ops = 20 + static_cast<int>(random() % 30);
  for (int i = 0; i < ops; ++i) {
    const bool product = random() % 2 == 0, optimizer = i > ops - 4;
    const std::string_view scope = optimizer ? "opt" : product ? "mm" : "add";
    const int host = 40 + static_cast<int>(random() % 40),
              gpu = 2 + static_cast<int>(random() % 38);
    text += fmt::format(
        "h{0} cpu0 host {1}us \"op\" scope {2}\n"
        "c{0} cpu0 call 5us \"cudaLaunchKernel\" scope {2}\n",
        i, host, scope);
    text += fmt::format("k{0} gpu0.7 kernel {1}us \"{2}\" phase {3} scope {4} after c{0} launch\n",
                        i, gpu,
                        product && !optimizer ? "volta_sgemm_128x64_nn" : "elementwise_kernel<add>",
                        optimizer ? "optimizer" : "forward", scope);
  }
  return text + "last cpu0 host 500us \"logging\"\n";
}

Duration MakespanOf(const Graph& graph) {
  auto timeline = Simulate(graph);
  EXPECT_TRUE(timeline.ok()) << Message(timeline.status());
  return timeline.ok() ? timeline->makespan : Duration();
}

TEST(Amp, DoesNotSpeedUpAStepThatIsBoundByLaunches) {
  constexpr std::string_view kDevices[] = {
      "device 0 \"Tesla V100-SXM2-32GB\" memory=34089730048 capability=7.0 multiprocessors=80",
      "device 0 \"NVIDIA A100-SXM4-40GB\" memory=42505273344 capability=8.0 multiprocessors=108",
      "device 0 \"NVIDIA H100 80GB HBM3\" memory=85520809984 capability=9.0 multiprocessors=132"};
  std::mt19937 random(20241121);
  int applied = 0;
  for (int round = 0; round < 60; ++round) {
    auto graph = ParseGraph(LaunchBound(random, kDevices[round % 3]));
    ASSERT_TRUE(graph.ok()) << Message(graph.status());
    const Duration before = MakespanOf(*graph);
    for (std::string_view dtype : {"bf16", "fp16", "tf32", "fp8"}) {
      Graph copy = *graph;
      auto scenario = ParseScenario(fmt::format("amp({})", dtype));
      ASSERT_TRUE(scenario.ok());
      auto result = Apply(scenario->front(), copy);
      if (!result.ok()) continue;  // the device has no such format
      EXPECT_GE(MakespanOf(copy), before) << dtype << ", round " << round << ", seed 20241121";
      ++applied;
    }
  }
  EXPECT_GT(applied, 100);
}

TEST(Amp, RefusesFormatsThatTheDeviceDoesNotHave) {
  std::mt19937 random(1);
  auto graph =
      ParseGraph(LaunchBound(random,
                             "device 0 \"Tesla V100-SXM2-32GB\" memory=34089730048 capability=7.0 "
                             "multiprocessors=80"));
  ASSERT_TRUE(graph.ok());
  for (std::string_view dtype : {"bf16", "tf32", "fp8"}) {
    Graph copy = *graph;
    auto result = Apply(ParseScenario(fmt::format("amp({})", dtype))->front(), copy);
    ASSERT_FALSE(result.ok()) << dtype;
    EXPECT_EQ(DiagnosticOf(result.status()).why,
              fmt::format("this GPU has no tensor cores for {} that would be faster", dtype));
  }
}

}  // namespace
}  // namespace daydream
