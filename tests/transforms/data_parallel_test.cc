// Buckets as PyTorch fills them, and the step of a GPU that becomes one of several: on sketches,
// and on recorded programs where they are at hand.
#include "transforms/parallel/data_parallel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "graph/ranks/collectives.h"
#include "graph/text.h"
#include "report/predict/what_if.h"
#include "simulator/simulate.h"
#include "tests/real_traces.h"
#include "trace/importer.h"
#include "transforms/parallel/contention.h"
#include "transforms/parallel/fabric_choice.h"
#include "transforms/parallel/gradients.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

using testing::ElementsAre;

std::vector<uint64_t> ElementsOfBuckets(const std::vector<Bucket>& buckets) {
  std::vector<uint64_t> elements;
  for (const Bucket& b : buckets) elements.push_back(b.elements);
  return elements;
}

TEST(Buckets, CloseWhenTheirBytesReachTheCap) {
  // Caps of 100 and 200 bytes; 4 bytes an element.
  const std::vector<GradientSize> ready = {{10, 4}, {20, 4}, {30, 4}, {19, 4}, {1, 4}, {5, 4}};
  const std::vector<Bucket> buckets = AssignBuckets(ready, {.first = 100, .other = 200});
  EXPECT_THAT(ElementsOfBuckets(buckets), ElementsAre(30, 50, 5));
  EXPECT_EQ(buckets[0].launched_after, 1u);  // 40 + 80 bytes exceed 100
  EXPECT_EQ(buckets[1].launched_after, 4u);  // 120 + 76 are 196, 4 more are 200
  EXPECT_EQ(buckets[2].launched_after, 5u);
}

TEST(Buckets, GradientsOfDifferentWidthDoNotMeetAndBucketsGoOutInOrder) {
  const std::vector<GradientSize> ready = {{100, 4}, {100, 2}, {100, 4}, {100, 2}};
  const std::vector<Bucket> buckets = AssignBuckets(ready, {.first = 800, .other = 800});
  ASSERT_THAT(ElementsOfBuckets(buckets), ElementsAre(200, 200));
  EXPECT_THAT(buckets[0].gradients, ElementsAre(0, 2));
  EXPECT_EQ(buckets[0].launched_after, 2u);
  EXPECT_EQ(buckets[1].launched_after, 3u);
  EXPECT_TRUE(AssignBuckets({}, {}).empty());
}

// A kernel of 100 us, and a transfer of 60 us from its end beside a kernel of 100 us: at half speed
// both go on until the transfer ends, 120 us later, when 40 us of the kernel are left.
TEST(Contention, BothSidesGoSlowerWhileBothRun) {
  auto graph = ParseGraph(
      "lane cpu0   thread\n"
      "lane gpu0.7 stream\n"
      "lane gpu0.9 stream\n"
      "k0 gpu0.7 kernel 100us \"a\"\n"
      "k1 gpu0.7 kernel 100us \"b\"\n"
      "r0 gpu0.9 collective 60us \"ncclDevKernel_AllReduce\" after k0 eventwait\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  Editor edit(*graph);
  const TaskId k0(0), k1(1), r0(2);
  graph->mutable_task(k1).recorded_start = Instant{100'000};
  ShareGpu(edit, graph->task(k0).lane, {graph->task(r0).lane}, 0.5);
  EXPECT_EQ(graph->task(k0).duration, Duration::Us(100));
  EXPECT_EQ(graph->task(r0).duration, Duration::Us(120));
  EXPECT_EQ(graph->task(k1).duration, Duration::Us(160));
  UnshareGpu(edit);
  EXPECT_EQ(graph->task(r0).duration, Duration::Us(60));
  EXPECT_EQ(graph->task(k1).duration, Duration::Us(100));
}

// A kernel that waits for the transfer does not run beside it.
TEST(Contention, WhatWaitsForACollectiveDoesNotShare) {
  auto graph = ParseGraph(
      "lane cpu0   thread\n"
      "lane gpu0.7 stream\n"
      "lane gpu0.9 stream\n"
      "k0 gpu0.7 kernel 100us \"a\"\n"
      "r0 gpu0.9 collective 60us \"ncclDevKernel_AllReduce\" after k0 eventwait\n"
      "k1 gpu0.7 kernel 100us \"b\" after r0 eventwait\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  Editor edit(*graph);
  ShareGpu(edit, graph->task(TaskId(0)).lane, {graph->task(TaskId(1)).lane}, 0.5);
  EXPECT_TRUE(graph->model_changes().alone.empty());
}

struct Recorded {
  std::shared_ptr<const Trace> trace;
  std::optional<BuiltGraph> built;
};
Recorded Load(std::string_view name) {
  Recorded r;
  const auto path = RealTraceFolder() / name;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return r;
  auto trace = ImportFile(path.string(), {});
  EXPECT_TRUE(trace.ok()) << trace.status();
  if (!trace.ok()) return r;
  auto built = BuildGraph(*trace);
  EXPECT_TRUE(built.ok()) << built.status();
  if (built.ok()) r.trace = *trace, r.built = *std::move(built);
  return r;
}

std::vector<GradientSize> SizesOf(const StepGradients& step) {
  std::vector<GradientSize> sizes;
  for (const Gradient& g : step.ready) sizes.push_back(g.size);
  return sizes;
}

// As PyTorch builds them, and after how many gradients each is sent.
void ExpectBucketsOfResNet50(const StepGradients& step) {
  const std::vector<Bucket> buckets = AssignBuckets(SizesOf(step), {});
  EXPECT_THAT(ElementsOfBuckets(buckets), ElementsAre(2049000, 7875584, 6563840, 6637568, 2431040));
  std::vector<uint32_t> after;
  for (const Bucket& b : buckets) after.push_back(b.launched_after + 1);
  EXPECT_THAT(after, ElementsAre(2, 17, 29, 80, 161));
}

// What two GPUs recorded of the same program (traces/gpus/resnet50-bs32.a100-ddp2, and two
// execution traces): sizes of all-reduces, and the gradient after which each was launched.
TEST(Buckets, OfAOneGpuTraceAreThoseThatTwoGpusRecorded) {
  for (const char* name :
       {"loader/resnet50-v100.workers0.a.json.gz", "loader/resnet50-v100.workers4.b.json.gz"}) {
    const Recorded r = Load(name);
    if (!r.built) GTEST_SKIP() << "no traces/" << name << " beside the tree";
    const auto gradients = FindGradients(r.built->graph);
    ASSERT_TRUE(gradients.ok()) << gradients.status();
    size_t whole = 0;
    for (const StepGradients& step : gradients->steps) {
      if (step.ready.size() != 161) continue;  // the window may cut the first or last step
      ++whole;
      ExpectBucketsOfResNet50(step);
    }
    EXPECT_GE(whole, 4u) << name;
  }
}

TEST(Gradients, SumToTheParametersOfTheModel) {
  const std::pair<const char*, uint64_t> kKnown[] = {
      {"training/resnet18-ddp-mi300x.json.gz", 11689512},
      {"training/recsys-a100-rank3of8.json.gz", 50009351}};
  for (const auto& [name, parameters] : kKnown) {
    const Recorded r = Load(name);
    if (!r.built) GTEST_SKIP() << "no traces/" << name << " beside the tree";
    const auto gradients = FindGradients(r.built->graph);
    ASSERT_TRUE(gradients.ok()) << gradients.status();
    uint64_t most = 0;
    for (const StepGradients& step : gradients->steps) {
      uint64_t sum = 0;
      for (const Gradient& g : step.ready) sum += g.size.elements;
      most = std::max(most, sum);
    }
    EXPECT_EQ(most, parameters) << name;
  }
}

// A hook of DistributedDataParallel behind each of two gradients, and copies back of 400 and 4000
// bytes behind backward.
TEST(Gradients, OfASketchWithoutShapesAreAsLargeAsTheirCopies) {
  const auto graph = ParseGraph(
      "lane cpu0   thread\n"
      "lane gpu0.7 stream\n"
      "scope a0 op cpu0 \"torch::autograd::AccumulateGrad\"\n"
      "scope m0 op cpu0 \"torch::distributed::reducer::mul_out\"\n"
      "scope a1 op cpu0 \"torch::autograd::AccumulateGrad\"\n"
      "scope m1 op cpu0 \"torch::distributed::reducer::mul_out\"\n"
      "scope b0 op cpu0 \"torch.distributed.ddp.reducer::copy_bucket_to_grad\"\n"
      "scope b1 op cpu0 \"torch.distributed.ddp.reducer::copy_bucket_to_grad\"\n"
      "h0 cpu0 host 3us \"AccumulateGrad\" phase backward scope a0\n"
      "p0 cpu0 host 2us \"mul_out\" phase backward scope m0\n"
      "h1 cpu0 host 3us \"AccumulateGrad\" phase backward scope a1\n"
      "p1 cpu0 host 2us \"mul_out\" phase backward scope m1\n"
      "c0 cpu0 call 4us \"cudaMemcpyAsync\" phase backward scope b0\n"
      "c1 cpu0 call 4us \"cudaMemcpyAsync\" phase backward scope b1\n"
      "d0 gpu0.7 memcpy 2us \"Memcpy DtoD\" bytes=400 after c0 launch\n"
      "d1 gpu0.7 memcpy 2us \"Memcpy DtoD\" bytes=4000 after c1 launch\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto gradients = FindGradients(*graph);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  const std::vector<Gradient>& ready = gradients->steps.front().ready;
  ASSERT_EQ(ready.size(), 2u);
  EXPECT_EQ(ready[0].size.elements, 100u);
  EXPECT_EQ(ready[1].size.elements, 1000u);
  EXPECT_EQ(ready[1].size.rows, 0u);  // not known
  EXPECT_TRUE(gradients->width_assumed);
  EXPECT_TRUE(ready[0].hooked);
  EXPECT_EQ(ready[0].call, TaskId(1));
  EXPECT_EQ(ready[1].copy, TaskId(7));
}

// Two layers of one size are no two backward passes; with a forward pass between them they are.
TEST(Gradients, OfLayersThatAreAlikeAreOneBackwardPass) {
  std::string text = "lane cpu0 thread\n";
  std::string tasks = "f0 cpu0 host 1us \"aten::mm\" phase forward\n";
  for (int i = 0; i < 4; ++i) {
    text += fmt::format("scope a{} op cpu0 \"torch::autograd::AccumulateGrad\" shapes=\"[[{}]]\"\n",
                        i, i % 2 == 0 ? 100 : 10);
    if (i == 2) tasks += "f1 cpu0 host 1us \"aten::mm\"\n";
    tasks += fmt::format("h{0} cpu0 host 1us \"AccumulateGrad\" phase backward scope a{0}\n", i);
  }
  auto graph = ParseGraph(text + tasks);
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (size_t i = 0; i < graph->size(); ++i) {
    graph->mutable_task(TaskId(i)).recorded_start = Instant{static_cast<int64_t>(1000 * i)};
  }
  auto gradients = FindGradients(*graph);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  EXPECT_EQ(gradients->steps.front().passes, 1u);
  EXPECT_EQ(gradients->steps.front().ready.size(), 4u);
  graph->mutable_task(TaskId(3)).phase = Phase::kForward;
  gradients = FindGradients(*graph);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  EXPECT_EQ(gradients->steps.front().passes, 2u);
  EXPECT_EQ(gradients->steps.front().ready.size(), 2u);
}

constexpr const char* kTwoGpus = "gpus/resnet50-bs32.a100-ddp2.json.gz";

// That trace has no shapes. Its copies out of the buckets say how large each gradient is.
TEST(Gradients, AreAsLargeAsWhatIsCopiedBack) {
  const Recorded r = Load(kTwoGpus);
  if (!r.built) GTEST_SKIP() << "no traces/" << kTwoGpus << " beside the tree";
  const auto gradients = FindGradients(r.built->graph);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  EXPECT_TRUE(gradients->copied);
  EXPECT_FALSE(gradients->width_assumed);
  ASSERT_EQ(gradients->steps.size(), 3u);
  for (const StepGradients& step : gradients->steps) ExpectBucketsOfResNet50(step);
}

// Starts of all-reduces of gradients, each against the first kernel of its step.
std::vector<Duration> ExchangeStarts(const Graph& graph) {
  const auto timeline = Simulate(graph);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  if (!timeline.ok()) return {};
  std::vector<Instant> begin(graph.steps().size(), Instant{std::numeric_limits<int64_t>::max()});
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.tasks()[i];
    if (task.kind == TaskKind::kKernel && !task.removed) {
      begin[task.step] = std::min(begin[task.step], timeline->start[i]);
    }
  }
  std::vector<std::pair<Instant, Duration>> starts;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.tasks()[i];
    const CollectiveDetail* d = graph.Collective(TaskId(i));
    if (task.kind != TaskKind::kCollective || task.removed || d == nullptr) continue;
    if (CollectiveNamed(graph.Name(d->name)) != CollectiveKind::kAllReduce) continue;
    starts.emplace_back(timeline->start[i], timeline->start[i] - begin[task.step]);
  }
  std::sort(starts.begin(), starts.end());
  std::vector<Duration> out;
  for (const auto& [at, start] : starts) out.push_back(start);
  return out;
}

// Taken out and put in again, all-reduces start where they were recorded.
TEST(DataParallelOfATrace, StartsExchangesWhereTheyWereRecorded) {
  const Recorded r = Load(kTwoGpus);
  if (!r.built) GTEST_SKIP() << "no traces/" << kTwoGpus << " beside the tree";
  const std::vector<Duration> recorded = ExchangeStarts(r.built->graph);
  ASSERT_EQ(recorded.size(), 15u);
  for (const char* spec : {"remove(kernel:nccl),ddp(2,fabric=pcie4)", "bucket(25MB)"}) {
    Graph graph = r.built->graph;
    const auto scenario = ParseScenario(spec);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const absl::Status applied =
        ApplyAll(*scenario, graph, [](const Application&, Applied*) { return absl::OkStatus(); });
    ASSERT_TRUE(applied.ok()) << applied;
    const std::vector<Duration> again = ExchangeStarts(graph);
    ASSERT_EQ(again.size(), recorded.size()) << spec;
    for (size_t i = 0; i < again.size(); ++i) {
      const double off = static_cast<double>((again[i] - recorded[i]).ns);
      EXPECT_LE(std::abs(off), 0.05 * static_cast<double>(recorded[i].ns)) << spec << " " << i;
    }
  }
}

class OneGpu : public testing::Test {
 protected:
  void SetUp() override {
    recorded_ = Load("loader/resnet50-v100.workers4.b.json.gz");
    if (!recorded_.built) GTEST_SKIP() << "no traces/loader beside the tree";
  }
  Graph Spread(int ranks, const Fabric& fabric = {}) {
    Graph graph = recorded_.built->graph;
    Editor edit(graph);
    const absl::Status done = SpreadOver(edit, {.ranks = ranks, .fabric = fabric});
    EXPECT_TRUE(done.ok()) << done;
    edit.Finish();
    return graph;
  }
  static Duration Step(const Graph& graph) {
    const auto timeline = Simulate(graph);
    EXPECT_TRUE(timeline.ok()) << timeline.status();
    return StepTime(graph, *timeline);
  }
  static size_t Collectives(const Graph& graph) {
    return static_cast<size_t>(
        std::count_if(graph.tasks().begin(), graph.tasks().end(),
                      [](const Task& t) { return t.kind == TaskKind::kCollective; }));
  }
  Recorded recorded_;
};

TEST_F(OneGpu, OneRankHasHooksAndNoCollective) { EXPECT_EQ(Collectives(Spread(1)), 0u); }

// A network without latency, as fast as can be: what remains are hooks and copies.
TEST_F(OneGpu, AnEndlessNetworkCostsTheHooks) {
  Fabric fabric{.name = "endless"};
  FabricLevel level{.name = "all", .size = 64};
  level.all_reduce.push_back({.ranks = 64, .bus_gbps = 1e9});
  level.other.push_back({.ranks = 64, .bus_gbps = 1e9});
  fabric.levels.push_back(level);
  const Graph graph = Spread(64, fabric);
  EXPECT_GE(Collectives(graph), 20u);
  const double hooks = Step(Spread(1)).ms(), endless = Step(graph).ms();
  EXPECT_GE(endless, hooks - 0.001);
  EXPECT_LE(endless, hooks * 1.05);  // and copies out of the buckets
}

TEST_F(OneGpu, ASlowerNetworkIsNeverFaster) {
  const auto fast = ChooseFabric("nvlink4"), slow = ChooseFabric("pcie4");
  ASSERT_TRUE(fast.ok() && slow.ok());
  const Duration on_fast = Step(Spread(8, *fast)), on_slow = Step(Spread(8, *slow));
  EXPECT_LE(on_fast, on_slow);
}

}  // namespace
}  // namespace daydream
