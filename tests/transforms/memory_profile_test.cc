#include "transforms/analysis/memory_profile.h"

#include <gtest/gtest.h>

#include "graph/build.h"
#include "graph/text.h"
#include "tests/trace/kineto_text.h"
#include "transforms/analysis/saved_tensors.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// One line of text for each op: forward kernels in this order, then one backward kernel a layer.
struct Op {
  std::string name, shapes, types = R"([\"float\"])";
};

Graph GraphOf(const std::vector<Op>& ops, bool backward = true) {
  std::string text = "lane cpu0 thread\nlane gpu0.7 stream\n";
  for (size_t i = 0; i < ops.size(); ++i) text += fmt::format("layer l{} \"layer{}\"\n", i, i);
  for (size_t i = 0; i < ops.size(); ++i) {
    text += fmt::format("scope s{} op cpu0 \"aten::{}\" shapes=\"{}\" types=\"{}\"\n", i,
                        ops[i].name, ops[i].shapes, ops[i].types);
  }
  for (size_t i = 0; i < ops.size(); ++i) {
    text += fmt::format("k{} gpu0.7 kernel 10us \"{}\" phase forward layer l{} scope s{}\n", i,
                        ops[i].name == "mm"                  ? "sgemm"
                        : ops[i].name == "cudnn_convolution" ? "implicit_convolve_sgemm"
                                                             : "f",
                        i, i);
  }
  for (size_t i = ops.size(); backward && i-- > 0;) {
    text += fmt::format("b{} gpu0.7 kernel 20us \"b\" phase backward layer l{}\n", i, i);
  }
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << Message(graph.status());
  return graph.ok() ? *std::move(graph) : Graph();
}

std::vector<double> KeptBy(const Graph& graph) {
  std::vector<double> kept;
  for (const ForwardOp& op : ForwardOps(graph)) kept.push_back(op.kept);
  return kept;
}

TEST(SavedTensors, ATensorThatTwoOpsKeepCountsOnce) {
  // The ReLU keeps its result, which the second convolution would keep, too.
  const Graph graph = GraphOf({{"cudnn_convolution", "[[1, 4, 8, 8], [4, 4, 3, 3]]"},
                               {"cudnn_batch_norm", "[[1, 4, 8, 8], [4], [4], [4], [4]]"},
                               {"relu", "[[1, 4, 8, 8]]"},
                               {"cudnn_convolution", "[[1, 4, 8, 8], [4, 4, 3, 3]]"}});
  EXPECT_EQ(KeptBy(graph), (std::vector<double>{1024, 1024, 1024, 0}));
}

TEST(SavedTensors, ProductsOfActivationsKeepBothAndLinearLayersKeepNoWeight) {
  const Graph graph = GraphOf({{"bmm", "[[2, 4, 8], [2, 8, 4]]"}, {"mm", "[[4, 8], [8, 16]]"}});
  EXPECT_EQ(KeptBy(graph), (std::vector<double>{2 * 64 * 4, 32 * 4}));
  EXPECT_EQ(ForwardOps(graph)[1].weights, 8 * 16 * 4);
}

TEST(SavedTensors, DropoutKeepsAByteAnElementAndHalfPrecisionHalfOfTheBytes) {
  const Graph graph =
      GraphOf({{"native_dropout", "[[4, 8]]"}, {"gelu", "[[4, 8]]", R"([\"c10::Half\"])"}});
  EXPECT_EQ(KeptBy(graph), (std::vector<double>{32, 64}));
}

TEST(SavedTensors, InferenceKeepsNothing) {
  const Graph graph = GraphOf({{"relu", "[[4, 8]]"}}, false);
  EXPECT_EQ(KeptBy(graph), std::vector<double>{0});
  EXPECT_EQ(ProfileMemory(graph).activations, 0);
}

TEST(SavedTensors, OpsThatNothingRunsBackwardAreToldOneAfterTheOther) {
  const std::vector<Op> made = {{"cudnn_convolution", "[[1, 4, 8, 8], [4, 4, 3, 3]]"},
                                {"relu", "[[1, 4, 8, 8]]"},
                                {"mm", "[[4, 8], [8, 16]]"}};
  std::vector<ForwardOp> told;
  const auto tell = [&](const ForwardOp& op) { told.push_back(op); };
  EXPECT_FALSE(ForEachForwardOp(GraphOf(made), tell));
  EXPECT_TRUE(told.empty());
  const Graph graph = GraphOf(made, /*backward=*/false);
  EXPECT_TRUE(ForEachForwardOp(graph, tell));
  const std::vector<ForwardOp> all = ForwardOps(graph);
  ASSERT_EQ(told.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(told[i].first, all[i].first);
    EXPECT_EQ(told[i].last, all[i].last);
    EXPECT_EQ(told[i].weights, all[i].weights);
    EXPECT_EQ(told[i].shape.name, all[i].shape.name);
    EXPECT_EQ(told[i].recognised, all[i].recognised);
  }
}

TEST(SavedTensors, BackwardKernelsBelongToTheOpsOfTheirLayer) {
  const Graph graph = GraphOf({{"relu", "[[4, 8]]"}, {"gelu", "[[4, 8]]"}});
  const std::vector<ForwardOp> ops = ForwardOps(graph);
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops[0].backward, TaskId(3));
  EXPECT_EQ(ops[1].backward, TaskId(2));
}

TEST(MemoryProfile, AnEstimateIsTheSumOfWhatIsKnown) {
  const MemoryProfile p = ProfileMemory(GraphOf({{"mm", "[[4, 8], [8, 16]]"}}));
  EXPECT_TRUE(p.estimate());
  EXPECT_EQ(p.parameters, 512);
  EXPECT_EQ(p.gradients, 512);
  EXPECT_EQ(p.activations, 128);
  EXPECT_EQ(p.peak, 512 + 512 + 128);
  EXPECT_FALSE(p.optimizer_known);
}

// The peak after `spec`, each change as told on the way.
PeakAfter PeakAfterScenario(Graph graph, std::string_view spec) {
  const MemoryProfile before = ProfileMemory(graph);
  auto scenario = ParseScenario(spec);
  EXPECT_TRUE(scenario.ok()) << Message(scenario.status());
  std::vector<MemoryChange> all;
  MemoryTrail trail(before);
  for (const Application& a : *scenario) {
    auto applied = Apply(a, graph);
    EXPECT_TRUE(applied.ok()) << spec << ": " << Message(applied.status());
    if (!applied.ok()) return {};
    trail.Follow(*a.transform, graph, applied->changes);
    for (MemoryChange& m : applied->changes.memory) all.push_back(std::move(m));
  }
  return AfterChanges(before, all);
}

// Four linear layers of 64 MB kept each, and ReLUs.
Graph Linears() {
  std::vector<Op> ops;
  for (int i = 0; i < 4; ++i) {
    ops.push_back({"mm", "[[4096, 4096], [4096, 4096]]"});
    ops.push_back({"relu", "[[4096, 4096]]"});
  }
  return GraphOf(ops);
}

TEST(MemoryTrail, ChangesSumToTheDifferenceOfThePeaks) {
  const double tensor = 4096.0 * 4096 * 4;
  const MemoryProfile before = ProfileMemory(Linears());
  // Each product keeps its input, each ReLU its result, which the next product reads.
  EXPECT_EQ(before.activations, 5 * tensor);
  EXPECT_EQ(PeakAfterScenario(Linears(), "batch(x2)").peak, before.peak + 5 * tensor);
  EXPECT_EQ(PeakAfterScenario(Linears(), "batch(x4)").peak, before.peak + 15 * tensor);
  // Half of what is kept, and weights in 16 bit beside those in 32.
  EXPECT_EQ(PeakAfterScenario(Linears(), "amp").peak,
            before.peak - 2.5 * tensor + 0.5 * before.parameters);
}

TEST(MemoryTrail, MemoryOptionsActOnWhatTheOptionsBeforeThemLeft) {
  const double tensor = 4096.0 * 4096 * 4;
  const MemoryProfile before = ProfileMemory(Linears());
  const double rest = before.peak - before.activations;
  auto kept = [&](std::string_view spec) {
    return (PeakAfterScenario(Linears(), spec).peak - rest) / tensor;
  };
  // sync=layer: all leave but what backward needs first and what it fetches meanwhile.
  const double offloaded = kept("offload(sync=layer)");
  EXPECT_LT(offloaded, 5);
  EXPECT_EQ(kept("batch(x2),offload(sync=layer)"), 2 * offloaded);
  EXPECT_EQ(kept("offload(sync=layer),batch(x2)"), 2 * offloaded);
  const double again = kept("checkpointing");
  EXPECT_LT(again, 5);
  EXPECT_EQ(kept("batch(x2),checkpointing"), 2 * again);
  EXPECT_EQ(kept("checkpointing,batch(x2)"), 2 * again);
  EXPECT_EQ(kept("amp,checkpointing"), 0.5 * again + 0.5 * before.parameters / tensor);
}

TEST(MemoryTrail, WithoutWaitsOffloadTellsTheMostThatMayBeLeft) {
  const PeakAfter waits = PeakAfterScenario(Linears(), "offload(sync=layer)");
  const PeakAfter runs = PeakAfterScenario(Linears(), "offload");
  const PeakAfter fast = PeakAfterScenario(Linears(), "offload(rate=1000TB/s)");
  EXPECT_TRUE(runs.at_most);
  EXPECT_FALSE(waits.at_most);
  EXPECT_LE(waits.peak, runs.peak);
  EXPECT_EQ(fast.peak, waits.peak);
  EXPECT_LE(runs.peak, ProfileMemory(Linears()).peak);
}

// What `spec` alone says about memory.
std::vector<MemoryChange> MemoryOf(Graph graph, std::string_view spec) {
  auto scenario = ParseScenario(spec);
  EXPECT_TRUE(scenario.ok()) << Message(scenario.status());
  auto applied = Apply(scenario->back(), graph);
  EXPECT_TRUE(applied.ok()) << Message(applied.status());
  return applied.ok() ? applied->changes.memory : std::vector<MemoryChange>();
}

TEST(Amp, WithoutABackwardPassHalfOfTheFp32ResultsGo) {
  const std::string bf16 = R"([\"c10::BFloat16\"])", shapes = "[[64, 64], [64, 64]]";
  // Of 3 * 16 kB in fp32 and 8 kB in 16 bit, softmax stays: 32 of 56 kB are halved.
  const std::vector<MemoryChange> mixed = MemoryOf(
      GraphOf({{"mm", shapes}, {"softmax", "[[64, 64]]"}, {"mm", shapes}, {"mm", shapes, bf16}},
              false),
      "amp");
  ASSERT_FALSE(mixed.empty());
  EXPECT_EQ(mixed[0].what, "results in 16 bit");
  EXPECT_DOUBLE_EQ(mixed[0].in_step, 1 - 0.5 * 32 / 56);
  // A model in 16 bit has none.
  for (const MemoryChange& m : MemoryOf(GraphOf({{"mm", shapes, bf16}}, false), "amp")) {
    EXPECT_EQ(m.bytes, 0) << m.what;
    EXPECT_EQ(m.in_step, 0) << m.what;
  }
}

// 4 examples of 2 * 2 pixels are fewer than the weights of the layer that reads them, and 64 rows
// of weights are a multiple of 4.
TEST(Batch, WeightsOfConvolutionsDoNotGrowHoweverLarge) {
  const Graph graph = GraphOf({{"cudnn_convolution", "[[4, 64, 2, 2], [64, 64, 3, 3]]"},
                               {"cudnn_convolution", "[[4, 64, 2, 2], [64, 64, 3, 3]]"}});
  const MemoryProfile before = ProfileMemory(graph);
  const double kept = 2 * 4 * 64 * 2 * 2 * 4, weights = 2 * 64 * 64 * 3 * 3 * 4;
  EXPECT_EQ(before.activations, kept);
  EXPECT_EQ(PeakAfterScenario(graph, "batch(x2)").peak, before.peak + kept);
  EXPECT_EQ(PeakAfterScenario(graph, "batch(x2),amp").peak, before.peak + 0.5 * weights);
  EXPECT_EQ(PeakAfterScenario(graph, "amp,batch(x2)").peak, before.peak + 0.5 * weights);
}

TEST(MemoryTrail, EveryOptimizationSaysWhatItsChangeRestsOn) {
  for (const Transform* t : Transforms()) EXPECT_FALSE(t->memory_model.empty()) << t->name;
}

// A trace with GPU work and these allocations: (bytes, allocated afterwards or -1).
MemoryProfile WithAllocations(const std::vector<std::pair<int64_t, int64_t>>& allocations) {
  std::vector<std::string> events = {
      Slice("cpu_op", "aten::mm", "10", "20"),
      Slice("cuda_runtime", "cudaLaunchKernel", "12", "5", R"("correlation": 3)"),
      Slice("kernel", "gemm", "20", "5", R"("device": 0, "stream": 7, "correlation": 3)",
            R"("pid": 0, "tid": 7)")};
  int at = 12;
  for (const auto& [bytes, total] : allocations) {
    events.push_back(fmt::format(
        R"({{"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": {}, )"
        R"("args": {{"Device Type": 1, "Device Id": 0, "Bytes": {}{}}}}})",
        at++, bytes, total < 0 ? "" : fmt::format(R"(, "Total Allocated": {})", total)));
  }
  auto trace = ImportText(KinetoFile(events));
  EXPECT_TRUE(trace.ok());
  EXPECT_EQ((*trace)->allocations.size(), allocations.size());
  auto built = BuildGraph(*trace);
  EXPECT_TRUE(built.ok()) << Message(built.status());
  return ProfileMemory(built->graph);
}

TEST(MemoryProfile, RecordedAllocationsSayThePeak) {
  const MemoryProfile p = WithAllocations({{100, 1100}, {300, 1400}, {-350, 1050}});
  EXPECT_EQ(p.source, MemoryProfile::Source::kAllocations);
  EXPECT_EQ(p.peak, 1400);
  EXPECT_EQ(p.in_step, 400);
  EXPECT_FALSE(p.at_least);
}

TEST(MemoryProfile, WithoutTotalsThePeakIsAtLeastWhatCameAndWent) {
  const MemoryProfile p = WithAllocations({{-200, -1}, {500, -1}, {-100, -1}});
  EXPECT_TRUE(p.at_least);
  EXPECT_EQ(p.peak, 500);  // from -200 to 300
}

}  // namespace
}  // namespace daydream
