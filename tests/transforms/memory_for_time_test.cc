// What holds for optimizations that trade time for memory, on small graphs and on every recorded
// trace that is at hand.
#include <gtest/gtest.h>

#include "graph/build.h"
#include "graph/text.h"
#include "simulator/simulate.h"
#include "tests/real_traces.h"
#include "trace/importer.h"
#include "transforms/analysis/memory_profile.h"
#include "transforms/core/transform.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

absl::StatusOr<Applied> ApplyTo(Graph& graph, std::string_view spec) {
  DD_ASSIGN_OR_RETURN(std::vector<Application> scenario, ParseScenario(spec));
  absl::StatusOr<Applied> last = absl::InternalError("empty");
  MemoryTrail trail(ProfileMemory(graph));
  for (const Application& a : scenario) {
    last = Apply(a, graph);
    if (!last.ok()) return last;
    trail.Follow(*a.transform, graph, last->changes);
  }
  return last;
}

Duration Makespan(const Graph& graph) {
  auto timeline = Simulate(graph);
  EXPECT_TRUE(timeline.ok()) << Message(timeline.status());
  return timeline.ok() ? timeline->makespan : Duration();
}

// `layers` layers of a product and a ReLU, one step; the GPU is busy all the time.
Graph Network(int layers) {
  std::string text = "lane cpu0 thread\nlane gpu0.7 stream\n";
  std::string forward, backward;
  for (int i = 0; i < layers; ++i) {
    text += fmt::format("layer a{0} \"linear #{0}\"\nlayer r{0} \"relu #{0}\"\n", i);
    text += fmt::format(
        "scope a{} op cpu0 \"aten::addmm\" shapes=\"[[512], [2048, 512], [512, 512]]\" "
        "types=\"[\\\"float\\\"]\"\n",
        i);
    text += fmt::format(
        "scope r{} op cpu0 \"aten::relu\" shapes=\"[[2048, 512]]\" types=\"[\\\"float\\\"]\"\n", i);
    for (char c : {'a', 'r'}) {
      const std::string id = fmt::format("{}{}", c, i);
      forward += fmt::format(
          "c{0} cpu0 call 5us \"cudaLaunchKernel\" phase forward layer {0} scope {0}\n"
          "k{0} gpu0.7 kernel {1}us \"f\" phase forward layer {0} scope {0} after c{0} launch\n",
          id, c == 'a' ? 100 + i : 20);
    }
    for (char c : {'a', 'r'}) {
      const std::string id = fmt::format("{}{}", c, i);
      backward = fmt::format(
          "d{0} cpu0 call 5us \"cudaLaunchKernel\" phase backward layer {0}\n"
          "b{0} gpu0.7 kernel {1}us \"b\" phase backward layer {0} after d{0} launch\n{2}",
          id, c == 'a' ? 200 : 40, backward);
    }
  }
  auto graph = ParseGraph(text + forward + backward);
  EXPECT_TRUE(graph.ok()) << Message(graph.status());
  return graph.ok() ? *std::move(graph) : Graph();
}

Duration GpuTime(const Graph& graph, Phase phase) {
  Duration sum;
  for (const Task& t : graph.tasks()) {
    if (t.kind == TaskKind::kKernel && t.phase == phase) sum += t.duration;
  }
  return sum;
}

TEST(MemoryForTime, RunningEverythingAgainTakesTheForwardPassOnceMore) {
  for (int layers : {1, 3, 10}) {
    Graph graph = Network(layers);
    const Duration before = Makespan(graph), forward = GpuTime(graph, Phase::kForward);
    ASSERT_TRUE(ApplyTo(graph, "checkpointing(layers=.)").ok());
    EXPECT_EQ(Makespan(graph) - before, forward) << layers;
  }
}

TEST(MemoryForTime, FewerSegmentsRunNoMoreAgainThanAll) {
  Graph all = Network(9), root = Network(9);
  ASSERT_TRUE(ApplyTo(all, "checkpointing(layers=.)").ok());
  ASSERT_TRUE(ApplyTo(root, "checkpointing").ok());
  EXPECT_LT(Makespan(root), Makespan(all));
  EXPECT_GT(Makespan(root), Makespan(Network(9)));
}

// Our recorder marks the layers of few steps only: in the others all launches lie in the range of
// the step, and what tells ops apart is the layer.
TEST(MemoryForTime, LayersTellSegmentsWhereNoOpsWereRecorded) {
  std::string forward, backward,
      text = "lane cpu0 thread\nlane gpu0.7 stream\nscope all annotation cpu0 \"step\"\n";
  for (int i = 0; i < 3; ++i) {
    text += fmt::format("layer l{0} \"blocks.{0}.fc\"\n", i);
    forward += fmt::format(
        "c{0} cpu0 call 5us \"cudaLaunchKernel\" phase forward layer l{0} scope all\n"
        "k{0} gpu0.7 kernel 100us \"f\" phase forward layer l{0} scope all after c{0} launch\n",
        i);
    backward = fmt::format(
        "d{0} cpu0 call 5us \"cudaLaunchKernel\" phase backward layer l{0} scope all\n"
        "b{0} gpu0.7 kernel 200us \"b\" phase backward layer l{0} scope all after d{0} "
        "launch\n{1}",
        i, backward);
  }
  auto graph = ParseGraph(text + forward + backward);
  ASSERT_TRUE(graph.ok()) << Message(graph.status());
  auto applied = ApplyTo(*graph, "checkpointing");
  ASSERT_TRUE(applied.ok()) << Message(applied.status());
  ASSERT_FALSE(applied->changes.notes.empty());
  EXPECT_TRUE(applied->changes.notes.front().find("3 forward kernels of 3 segments") !=
              std::string::npos)
      << applied->changes.notes.front();
}

TEST(MemoryForTime, OffloadingOverAnEndlessLinkIsFree) {
  for (int layers : {2, 5}) {
    Graph graph = Network(layers);
    const Duration before = Makespan(graph);
    auto applied = ApplyTo(graph, "offload(rate=100000GB/s)");
    ASSERT_TRUE(applied.ok()) << Message(applied.status());
    // A copy takes 42 ns; none is waited for but the last, by nobody.
    EXPECT_LE(Makespan(graph) - before, Duration::Us(1));
  }
}

TEST(MemoryForTime, ASlowerLinkIsNeverFaster) {
  Duration last;
  for (int rate : {1000, 100, 20, 10, 5}) {
    Graph graph = Network(6);
    ASSERT_TRUE(ApplyTo(graph, fmt::format("offload(rate={}GB/s)", rate)).ok());
    EXPECT_GE(Makespan(graph), last) << rate;
    last = Makespan(graph);
  }
}

TEST(MemoryForTime, WhatRunsAgainGrowsWithTheBatchInEitherOrder) {
  Graph batch_first = Network(9), batch_last = Network(9);
  auto first = ApplyTo(batch_first, "batch(x2),checkpointing");
  auto last = ApplyTo(batch_last, "checkpointing,batch(x2)");
  ASSERT_TRUE(first.ok() && last.ok()) << Message(first.status()) << Message(last.status());
  EXPECT_EQ(Makespan(batch_first), Makespan(batch_last));
  EXPECT_GT(Makespan(batch_first), Makespan(Network(9)) * 3 / 2);
}

// Its profile has both: allocations, and shapes from which the same is told.
TEST(MemoryForTime, ShapesTellWhatAllocationsMeasuredOfResNet50) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  for (const char* name :
       {"loader/resnet50-v100.workers0.b.json.gz", "loader/resnet50-v100.workers4.b.json.gz"}) {
    auto trace = ImportFile((RealTraceFolder() / name).string());
    ASSERT_TRUE(trace.ok()) << Message(trace.status());
    auto built = BuildGraph(*trace);
    ASSERT_TRUE(built.ok()) << Message(built.status());
    const MemoryProfile p = ProfileMemory(built->graph);
    ASSERT_EQ(p.source, MemoryProfile::Source::kAllocations);
    std::printf("%s: %.0f MB by shapes, %.0f MB measured\n", name, p.activations / 1e6,
                p.in_step / 1e6);
    EXPECT_NEAR(p.activations / p.in_step, 1, 0.1) << name;
  }
}

TEST(MemoryForTime, OnEveryTraceItIsAppliedOrSaysWhatIsMissing) {
  const std::vector<std::string> traces = RealTraces();
  if (traces.empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  for (const std::string& name : traces) {
    auto trace = ImportFile((RealTraceFolder() / name).string());
    if (!trace.ok()) continue;
    auto built = BuildGraph(*trace);
    if (!built.ok()) continue;
    const MemoryProfile profile = ProfileMemory(built->graph);
    for (const char* spec : {"checkpointing", "checkpointing(every=2)", "offload", "offload(conv)",
                             "offload(sync=layer)", "gist", "gist,checkpointing"}) {
      Graph graph = built->graph;
      const Duration forward = GpuTime(graph, Phase::kForward);
      const Duration backward = GpuTime(graph, Phase::kBackward);
      auto applied = ApplyTo(graph, spec);
      if (!applied.ok()) {
        const std::string code = DiagnosticOf(applied.status()).code;
        EXPECT_TRUE(code == "E0601" || code == "E0625" || code == "E0626" || code == "E0627")
            << name << " " << spec << ": " << Message(applied.status());
        continue;
      }
      EXPECT_TRUE(Simulate(graph).ok()) << name << " " << spec;
      ASSERT_FALSE(applied->changes.memory.empty()) << name << " " << spec;
      for (const MemoryChange& m : applied->changes.memory) {
        EXPECT_LE(m.bytes, 0) << name << " " << spec;
        EXPECT_GE(static_cast<double>(m.bytes), -std::max(profile.activations, profile.in_step))
            << name << " " << spec;
      }
      if (std::string_view(spec).starts_with("checkpointing")) {
        EXPECT_LE(GpuTime(graph, Phase::kBackward) - backward, forward) << name << " " << spec;
      }
    }
  }
}

}  // namespace
}  // namespace daydream
