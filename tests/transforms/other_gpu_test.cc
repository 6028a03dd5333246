// gpu(NAME) on recordings of other people: what was measured on one GPU against the same program on
// another. Nothing in the model was fitted to these pairs.
#include <cmath>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "costmodel/device_fields.h"
#include "graph/text.h"
#include "report/predict/what_if.h"
#include "report/questions/colocation.h"
#include "simulator/simulate.h"
#include "tests/real_traces.h"
#include "trace/importer.h"
#include "transforms/analysis/op_shapes.h"
#include "transforms/analysis/precision.h"
#include "transforms/edits/other_gpu.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

constexpr const char* kV100 = "gpus/resnet50-bs32.v100-sxm2.json.gz";
constexpr const char* kA100 = "gpus/resnet50-bs32.a100-ddp2.json.gz";

BuiltGraph Load(const std::string& name) {
  auto trace = ImportFile((RealTraceFolder() / name).string());
  EXPECT_TRUE(trace.ok()) << trace.status();
  auto built = BuildGraph(*trace);
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

// Kernel time per step, by group: "matrix" with the helpers and layout changes of cuDNN.
std::map<std::string, double> KernelMs(const Graph& graph) {
  KernelClasses classes(graph);
  std::map<std::string, double> ms;
  double steps = 0;
  for (const GraphStep& step : graph.steps()) steps += step.measured ? 1 : 0;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.task(TaskId(i));
    if (task.removed || task.kind != TaskKind::kKernel) continue;
    if (!graph.steps()[task.step].measured) continue;
    const KernelClass kind = classes.Of(TaskId(i));
    const std::string_view name = graph.TaskName(TaskId(i));
    std::string group(KernelClassName(kind));
    const bool of_cudnn = name.find("cudnn") != std::string_view::npos;
    if (kind == KernelClass::kGemm || kind == KernelClass::kConv) group = "matrix";
    if (of_cudnn && kind != KernelClass::kNorm) group = "matrix";
    const double time = task.duration.ms() / steps;
    ms[group] += time;
    ms["all"] += time;
  }
  return ms;
}

absl::StatusOr<Applied> Put(const std::string& scenario, Graph& graph) {
  auto parsed = ParseScenario(scenario);
  if (!parsed.ok()) return parsed.status();
  return Apply(parsed->front(), graph);
}

Duration Step(const Graph& graph) {
  auto timeline = Simulate(graph);
  EXPECT_TRUE(timeline.ok());
  return StepTime(graph, *timeline);
}

class RealGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (RealTraces().empty()) GTEST_SKIP() << "no real traces beside the repository";
  }
};

TEST_F(RealGpu, KernelsOfAResNetOnAnA100AreThoseMeasuredThere) {
  const BuiltGraph before = Load(kV100);
  Graph predicted = before.graph;
  auto applied = Put("gpu(A100-SXM4-40GB)", predicted);
  ASSERT_TRUE(applied.ok()) << applied.status();
  const auto expected = KernelMs(Load(kA100).graph);
  const auto ms = KernelMs(predicted);
  for (const auto& [group, bar] :
       std::map<std::string, double>{{"all", 0.10}, {"matrix", 0.15}, {"norm", 0.15}}) {
    EXPECT_NEAR(ms.at(group) / expected.at(group), 1, bar)
        << group << ": predicted " << ms.at(group) << " ms, measured " << expected.at(group);
  }
}

TEST_F(RealGpu, WithoutTf32ConvolutionsStaySlow) {
  const BuiltGraph before = Load(kV100);
  Graph with = before.graph, without = before.graph;
  ASSERT_TRUE(Put("gpu(A100-SXM4-40GB)", with).ok());
  ASSERT_TRUE(Put("gpu(A100-SXM4-40GB,tf32=off)", without).ok());
  EXPECT_GT(KernelMs(without)["matrix"], 2 * KernelMs(with)["matrix"]);
  EXPECT_DOUBLE_EQ(KernelMs(without)["norm"], KernelMs(with)["norm"]);
}

// The V100's step is bound by its GPU; with kernels in two fifths of the time, launches bound it.
TEST_F(RealGpu, AStepThatBecomesBoundByLaunchesStaysSo) {
  const BuiltGraph before = Load(kV100);
  Graph predicted = before.graph, host = before.graph;
  ASSERT_TRUE(Put("gpu(A100-SXM4-40GB)", predicted).ok());
  ASSERT_TRUE(Put("free-gpu", host).ok());
  const double kernels = KernelMs(predicted)["all"];
  EXPECT_GT(Step(predicted).ms(), kernels);
  EXPECT_GE(Step(predicted), Step(host));
  EXPECT_LT(Step(predicted), Step(before.graph));
}

// What is host bound on an A100 gains nothing from an H100.
TEST_F(RealGpu, AStepOfTheHostGainsNothing) {
  const BuiltGraph before = Load(kA100);
  Graph predicted = before.graph;
  ASSERT_TRUE(Put("gpu(H100)", predicted).ok());
  EXPECT_LT(KernelMs(predicted)["all"], 0.8 * KernelMs(before.graph)["all"]);
  EXPECT_GT(Step(predicted).ms(), 0.9 * Step(before.graph).ms());
}

TEST_F(RealGpu, AnotherVendorIsPredictedWithinThirtyPercentAndLowConfidence) {
  for (const std::string name : {"qwen1.5-0.5b", "bert-small"}) {
    const BuiltGraph before = Load("gpus/" + name + ".h100.json.gz");
    auto replay = CheckReplay(before, nullptr);
    ASSERT_TRUE(replay.ok());
    const std::vector<std::vector<Application>> scenarios = {*ParseScenario("gpu(MI300X)")};
    auto result = PredictAll(before, *replay, scenarios);
    ASSERT_TRUE(result.ok()) << result.status();
    const Prediction& p = result->predictions[result->main];
    ASSERT_TRUE(p.error.ok()) << p.error;
    EXPECT_EQ(p.confidence, Confidence::kLow);
    EXPECT_THAT(p.changes.warnings, testing::Contains(testing::HasSubstr("NVIDIA to AMD")));
    Graph predicted = before.graph;
    ASSERT_TRUE(Put("gpu(MI300X)", predicted).ok());
    const auto measured = KernelMs(Load("gpus/" + name + ".mi300.json.gz").graph);
    EXPECT_NEAR(KernelMs(predicted)["all"] / measured.at("all"), 1, 0.3) << name;
  }
}

TEST_F(RealGpu, TogetherIsOneAfterTheOtherAndAboveTheRoofline) {
  const BuiltGraph before = Load("gpus/qwen1.5-0.5b.h100.json.gz");
  Graph together = before.graph, in_turn = before.graph, bound = before.graph;
  ASSERT_TRUE(ApplyAll(*ParseScenario("gpu(A100),amp,graphs"), together).ok());
  for (const std::string one : {"gpu(A100)", "amp", "graphs"}) {
    auto applied = Put(one, in_turn);
    if (!applied.ok()) {
      EXPECT_EQ(DiagnosticOf(applied.status()).code, "E0601") << one;
    }
  }
  EXPECT_EQ(FormatGraph(together), FormatGraph(in_turn));
  ASSERT_TRUE(ApplyAll(*ParseScenario("gpu(A100),roofline"), bound).ok());
  EXPECT_GE(KernelMs(together)["all"], KernelMs(bound)["all"]);
}

TEST_F(RealGpu, EveryMillisecondOfKernelTimeHasAWayAndTerms) {
  const BuiltGraph before = Load("gpus/qwen1.5-0.5b.h100.json.gz");
  Graph predicted = before.graph;
  auto applied = Put("gpu(A100)", predicted);
  ASSERT_TRUE(applied.ok());
  EXPECT_THAT(applied->changes.notes, testing::Contains(testing::HasSubstr("% by shapes")));
  Duration explained;
  for (const KernelTerms& term : applied->changes.terms) {
    EXPECT_THAT(term.how, testing::StartsWith(fmt::format("by {}: ", Name(term.source))));
    explained += term.before;
  }
  Duration all;
  for (const Task& t : before.graph.tasks()) {
    if (!t.removed && t.kind == TaskKind::kKernel) all += t.duration;
  }
  EXPECT_EQ(explained, all);
}

TEST(OtherGpu, AMadeUpAcceleratorIsPredictedAndWhatNobodyVerifiedIsListed) {
  const std::string path = testing::TempDir() + "/my-chip.yaml";
  std::ofstream(path) << "name: MyChip\nmultiprocessors: 64\nmemory_gb_per_s: 2000\n"
                         "fp32_tflops: 40\nmemory_gb: 48\n";
  auto graph = ParseGraph(
      "device 0 \"Tesla V100-SXM2-32GB\" memory=34089730048 capability=7.0 multiprocessors=80\n"
      "lane cpu0   thread\nlane gpu0.7 stream\n"
      "c0 cpu0   call   5us \"cudaLaunchKernel\"\n"
      "k0 gpu0.7 kernel 1002us \"volta_sgemm_128x64_nn\" after c0 launch\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto applied = Put("gpu(" + path + ")", *graph);
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_LT(graph->task(TaskId(1)).duration, Duration::Ns(1'002'000));
  EXPECT_GE(applied->changes.warnings.size(), 3u);
  EXPECT_THAT(applied->changes.warnings, testing::Contains(testing::HasSubstr("not verified")));
}

TEST_F(RealGpu, ARenamedCopyOfTheRecordedGpuChangesNothing) {
  const BuiltGraph before = Load("batch/particle-transformer.bs512.json.gz");
  const std::string path = testing::TempDir() + "/copy.textproto";
  DeviceSpec copy = *FindDeviceSpec("A100-PCIE-40GB");
  copy.name = "MyCard";
  std::ofstream(path) << DeviceTextproto(copy);
  Graph predicted = before.graph;
  auto applied = Put("gpu(" + path + ")", predicted);
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_DOUBLE_EQ(KernelMs(predicted)["all"], KernelMs(before.graph)["all"]);
  EXPECT_THAT(applied->changes.notes,
              testing::Contains(testing::HasSubstr("100 % by measurement")));
  // The same chip, memory and rates on another board: next to nothing.
  predicted = before.graph;
  ASSERT_TRUE(Put("gpu(A100-SXM4-40GB)", predicted).ok());
  EXPECT_NEAR(KernelMs(predicted)["all"] / KernelMs(before.graph)["all"], 1, 0.01);
  // The name alone makes nothing equal.
  copy.name = "A100-PCIE-40GB";
  copy.memory_gb_per_s /= 2;
  std::ofstream(path) << DeviceTextproto(copy);
  predicted = before.graph;
  ASSERT_TRUE(Put("gpu(" + path + ")", predicted).ok());
  EXPECT_GT(KernelMs(predicted)["all"] / KernelMs(before.graph)["all"], 1.3);
}

// Its loader runs ahead: 122 ms as recorded, 206 ms when one step is repeated.
TEST_F(RealGpu, AStepThatIsAnotherWhenRepeatedIsNotColocated) {
  const BuiltGraph trains = Load("loader/resnet50-v100.workers4.b.json.gz");
  auto refused = PredictColocation(trains.graph, trains.graph, GpuPolicy::kTime, ShareRules{});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(DiagnosticOf(refused.status()).code, "E0814");
  const BuiltGraph serves = Load("gpus/bert-small.h100.json.gz");
  auto fine = PredictColocation(serves.graph, serves.graph, GpuPolicy::kTime, ShareRules{});
  ASSERT_TRUE(fine.ok()) << fine.status();
  EXPECT_NEAR(fine->programs[0].alone.seconds() / fine->programs[0].recorded.seconds(), 1, 0.1);
}

TEST_F(RealGpu, TellsWhetherAKnownPeakFits) {
  const BuiltGraph before = Load("batch/particle-transformer.bs512.json.gz");
  auto replay = CheckReplay(before, nullptr);
  ASSERT_TRUE(replay.ok());
  const std::vector<std::vector<Application>> scenarios = {*ParseScenario("gpu(T4)"),
                                                           *ParseScenario("gpu(P4)")};
  auto result = PredictAll(before, *replay, scenarios);
  ASSERT_TRUE(result.ok()) << result.status();
  bool fits = false, does_not = false;
  for (const Prediction& p : result->predictions) {
    if (p.opts.empty()) continue;
    ASSERT_TRUE(p.error.ok() && p.peak.has_value());
    const bool t4 = p.name.find("T4") != std::string::npos;
    (t4 ? fits : does_not) = true;
    EXPECT_EQ(p.peak->capacity, (t4 ? 16u : 8u) * (uint64_t{1} << 30));
    EXPECT_EQ(p.peak->fits(), t4);
    const auto warned = testing::Contains(testing::HasSubstr("does not fit"));
    if (t4) {
      EXPECT_THAT(p.changes.warnings, testing::Not(warned));
    } else {
      EXPECT_THAT(p.changes.warnings, warned);
    }
  }
  EXPECT_TRUE(fits && does_not);
}

// `kernels` makes nothing faster than the roofline of what is known.
TEST_F(RealGpu, NoFactorGoesBelowTheRoofline) {
  const BuiltGraph before = Load("gpus/qwen1.5-0.5b.h100.json.gz");
  Graph predicted = before.graph;
  ASSERT_TRUE(ApplyAll(*ParseScenario("gpu(A100,kernels=0.1)"), predicted).ok());
  Graph slow = before.graph;
  ASSERT_TRUE(ApplyAll(*ParseScenario("gpu(A100)"), slow).ok());
  EXPECT_GT(KernelMs(predicted)["all"], 0.2 * KernelMs(slow)["all"]);
}

// By class: a product in fp16 and convolutions, 1 ms each, from an A100 to an H100.
TEST(OtherGpu, ConvolutionsReachLessOfHoppersTensorCoresThanProducts) {
  auto graph = ParseGraph(
      "device 0 \"NVIDIA A100-SXM4-40GB\" memory=42505273344 capability=8.0 multiprocessors=108\n"
      "lane cpu0   thread\nlane gpu0.7 stream\n"
      "c0 cpu0   call   5us \"cudaLaunchKernel\"\n"
      "k0 gpu0.7 kernel 1002us \"ampere_fp16_s16816gemm_fp16_128x128_nn\" after c0 launch\n"
      "c1 cpu0   call   5us \"cudaLaunchKernel\"\n"
      "k1 gpu0.7 kernel 1002us \"sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwc\" after c1 "
      "launch\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  Graph back = *graph;
  ASSERT_TRUE(Put("gpu(H100-SXM5-80GB)", *graph).ok());
  const double product = graph->task(TaskId(1)).duration.ms();
  const double convolution = graph->task(TaskId(3)).duration.ms();
  EXPECT_NEAR(product / convolution, 0.629, 0.005);

  // A recorded kernel that was written for Hopper has reached what products do.
  std::string text = FormatGraph(back);
  const auto replace = [&](std::string_view from, std::string_view to) {
    for (size_t at; (at = text.find(from)) != std::string::npos;) text.replace(at, from.size(), to);
  };
  replace("NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3");
  replace("memory=42505273344 capability=8.0 multiprocessors=108",
          "memory=85520809984 capability=9.0 multiprocessors=132");
  auto old_kernel = ParseGraph(text);
  replace("sm80_xmma", "sm90_xmma");
  auto own_kernel = ParseGraph(text);
  ASSERT_TRUE(old_kernel.ok() && own_kernel.ok()) << old_kernel.status();
  ASSERT_TRUE(Put("gpu(A100-SXM4-40GB)", *old_kernel).ok());
  ASSERT_TRUE(Put("gpu(A100-SXM4-40GB)", *own_kernel).ok());
  EXPECT_EQ(own_kernel->task(TaskId(3)).duration, own_kernel->task(TaskId(1)).duration);
  EXPECT_NEAR(old_kernel->task(TaskId(3)).duration.ms() / own_kernel->task(TaskId(3)).duration.ms(),
              0.629, 0.005);
}

TEST(OtherGpu, TheRecordedGpuItselfChangesNothing) {
  auto graph = ParseGraph(
      "device 0 \"Tesla V100-SXM2-32GB\" memory=34089730048 capability=7.0 multiprocessors=80\n"
      "lane cpu0   thread\nlane gpu0.7 stream\n"
      "c0 cpu0   call   5us \"cudaLaunchKernel\"\n"
      "k0 gpu0.7 kernel 1002us \"volta_sgemm_128x64_nn\" after c0 launch\n"
      "c1 cpu0   call   5us \"cudaMemcpyAsync\"\n"
      "m1 gpu0.7 memcpy 1001us \"copy\" bytes=1200000 from=pinned to=device after c1 launch\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::string before = FormatGraph(*graph);
  ASSERT_TRUE(Put("gpu(V100-SXM2-32GB)", *graph).ok());
  EXPECT_EQ(FormatGraph(*graph), before);
}

}  // namespace
}  // namespace daydream
