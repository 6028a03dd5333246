// Mixed precision shortens kernels; a step that is bound by launches does not get faster.
#include <cmath>
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
      "device 0 \"NVIDIA B200\" memory=191515262976 capability=10.0 multiprocessors=148",
      "device 0 \"Tesla V100-SXM2-32GB\" memory=34089730048 capability=7.0 multiprocessors=80",
      "device 0 \"NVIDIA A100-SXM4-40GB\" memory=42505273344 capability=8.0 multiprocessors=108",
      "device 0 \"NVIDIA H100 80GB HBM3\" memory=85520809984 capability=9.0 multiprocessors=132"};
  std::mt19937 random(20241121);
  int applied = 0;
  for (int round = 0; round < 60; ++round) {
    auto graph = ParseGraph(LaunchBound(random, kDevices[round % std::size(kDevices)]));
    ASSERT_TRUE(graph.ok()) << Message(graph.status());
    const Duration before = MakespanOf(*graph);
    for (std::string_view dtype : {"bf16", "fp16", "tf32", "fp8", "nvfp4"}) {
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
  auto result = Apply(ParseScenario("amp(nvfp4)")->front(), *graph);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(
      DiagnosticOf(result.status()).why,
      "V100-SXM2-32GB has no tensor cores for nvfp4: only NVIDIA's GPUs from Blackwell on have "
      "them (B200, B300, GB200, RTX5090)");
}

// A V100 and an A100 in one trace, the same product on each; `first` says whose lane comes first.
Graph OnTwoGpus(int first) {
  std::string text =
      "device 0 \"Tesla V100-SXM2-32GB\" memory=34089730048 capability=7.0 multiprocessors=80\n"
      "device 1 \"NVIDIA A100-SXM4-40GB\" memory=42505273344 capability=8.0 multiprocessors=108\n"
      "lane cpu0 thread\n";
  for (int gpu : {first, 1 - first}) text += fmt::format("lane gpu{}.7 stream\n", gpu);
  for (int gpu : {0, 1}) {
    text += fmt::format("scope mm{} op cpu0 \"aten::mm\" ", gpu);
    text += "shapes=\"[[4096, 4096], [4096, 4096]]\" types=\"[\\\"float\\\", \\\"float\\\"]\"\n";
  }
  for (int gpu : {0, 1}) {
    text += fmt::format("c{0} cpu0 call 5us \"cudaLaunchKernel\" scope mm{0}\n", gpu);
    text += fmt::format(
        "k{0} gpu{0}.7 kernel 10ms \"sgemm_128x64_nn\" phase forward scope mm{0} after c{0} "
        "launch\n",
        gpu);
  }
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << Message(graph.status());
  return *std::move(graph);
}

// Each GPU casts in its own format, at its own bandwidth, whichever lane comes last.
TEST(Amp, CastsAreThoseOfTheGpuThatTheyRunOn) {
  for (int first : {0, 1}) {
    Graph graph = OnTwoGpus(first);
    auto scenario = ParseScenario("amp");
    ASSERT_TRUE(scenario.ok());
    auto applied = Apply(scenario->front(), graph);
    ASSERT_TRUE(applied.ok()) << Message(applied.status());
    int casts = 0;
    for (size_t i = 0; i < graph.size(); ++i) {
      const Task& task = graph.task(TaskId(i));
      if (!graph.Name(task.name).starts_with("cast_elementwise")) continue;
      ++casts;
      const bool v100 = graph.lane(task.lane).lane.device == 0;
      EXPECT_EQ(graph.Name(task.name), v100 ? "cast_elementwise_fp16" : "cast_elementwise_bf16");
      // 6 bytes for each of 16.8 M elements at 792 and 1368 GB/s.
      EXPECT_NEAR(task.duration.us(), v100 ? 127 : 73.6, 4) << first;
    }
    EXPECT_EQ(casts, 4);
    EXPECT_NE(applied->changes.notes.front().find("fp16 and bf16"), std::string::npos)
        << applied->changes.notes.front();
  }
}

// Without shapes. Products take half: both formats run on tensor cores, at rates of 1 : 2. Kernels
// of a convolution gain less, whatever they are called, and so does what leaves the vector units.
TEST(Amp, OfUnknownShapeAProductInTf32GainsAllOfTheRatio) {
  const auto after = [](std::string_view gpu, std::string_view op, std::string_view kernel) {
    auto graph = ParseGraph(
        fmt::format("{}\nlane cpu0 thread\nlane gpu0.7 stream\nscope op op cpu0 \"{}\"\n"
                    "c cpu0 call 5us \"cudaLaunchKernel\" scope op\n"
                    "k gpu0.7 kernel 10ms \"{}\" phase forward scope op after c launch\n",
                    gpu, op, kernel));
    EXPECT_TRUE(graph.ok()) << Message(graph.status());
    const auto applied = Apply(ParseScenario("amp")->front(), *graph);
    EXPECT_TRUE(applied.ok()) << Message(applied.status());
    for (size_t i = 0; i < graph->size(); ++i) {
      const Task& task = graph->task(TaskId(i));
      if (graph->Name(task.name) == kernel) return task.duration.ms();
    }
    ADD_FAILURE() << "no " << kernel;
    return 0.0;
  };
  constexpr std::string_view kA100 =
      "device 0 \"NVIDIA A100-SXM4-40GB\" memory=42505273344 capability=8.0 multiprocessors=108";
  constexpr std::string_view kV100 =
      "device 0 \"Tesla V100-SXM2-32GB\" memory=34089730048 capability=7.0 multiprocessors=80";
  constexpr std::string_view kTensor = "cutlass_tensorop_s1688gemm_tf32";
  EXPECT_NEAR(after(kA100, "aten::mm", kTensor), 5, 0.01);
  EXPECT_NEAR(after(kA100, "aten::convert_and_mm", kTensor), 5, 0.01);
  EXPECT_NEAR(after(kA100, "aten::cudnn_convolution", kTensor), 10 / std::pow(2, 0.6), 0.01);
  EXPECT_GT(after(kV100, "aten::mm", "volta_sgemm_128x64_nn"), 10 / 4.0);  // of 5.5 in rates
}

}  // namespace
}  // namespace daydream
