// What changes the exchange of gradients, behind ddp on a sketch of one GPU, and on a recorded rank
// of eight where it is at hand.
#include "transforms/parallel/exchange.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "costmodel/network/fabric.h"
#include "graph/build.h"
#include "graph/text.h"
#include "report/predict/what_if.h"
#include "simulator/simulate.h"
#include "tests/real_traces.h"
#include "trace/importer.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// Backward of three layers, the last first: 16 MB, 4 MB and 1.2 MB of gradients.
Graph OneGpu() {
  auto graph = ParseGraph(
      "lane cpu0   thread\n"
      "lane gpu0.7 stream\n"
      "scope a0 op cpu0 \"torch::autograd::AccumulateGrad\" shapes=\"[[2000, 2000]]\" "
      "types=\"[\\\"float\\\"]\"\n"
      "scope a1 op cpu0 \"torch::autograd::AccumulateGrad\" shapes=\"[[1000, 1000]]\" "
      "types=\"[\\\"float\\\"]\"\n"
      "scope a2 op cpu0 \"torch::autograd::AccumulateGrad\" shapes=\"[[300000]]\" "
      "types=\"[\\\"float\\\"]\"\n"
      "c0 cpu0   call   5us \"cudaLaunchKernel\" phase backward\n"
      "k0 gpu0.7 kernel 300us \"gemm\" phase backward after c0 launch\n"
      "h0 cpu0   host   3us \"torch::autograd::AccumulateGrad\" phase backward scope a0\n"
      "c1 cpu0   call   5us \"cudaLaunchKernel\" phase backward\n"
      "k1 gpu0.7 kernel 900us \"gemm\" phase backward after c1 launch\n"
      "h1 cpu0   host   3us \"torch::autograd::AccumulateGrad\" phase backward scope a1\n"
      "c2 cpu0   call   5us \"cudaLaunchKernel\" phase backward\n"
      "k2 gpu0.7 kernel 900us \"gemm\" phase backward after c2 launch\n"
      "h2 cpu0   host   3us \"torch::autograd::AccumulateGrad\" phase backward scope a2\n"
      "c3 cpu0   call   5us \"cudaLaunchKernel\" phase optimizer\n"
      "k3 gpu0.7 kernel 20us \"sgd\" phase optimizer after c3 launch\n");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

struct Edited {
  Graph graph;
  absl::Status status;
};
Edited With(const Graph& before, const std::string& spec) {
  Edited out{before, {}};
  const auto scenario = ParseScenario(spec);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  if (!scenario.ok()) return out;
  out.status =
      ApplyAll(*scenario, out.graph, [](const Application&, Applied*) { return absl::OkStatus(); });
  return out;
}

double StepUs(const Graph& before, const std::string& spec) {
  const Edited e = With(before, spec);
  EXPECT_TRUE(e.status.ok()) << spec << ": " << e.status;
  const auto timeline = Simulate(e.graph);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? StepTime(e.graph, *timeline).us() : 0;
}

std::vector<uint64_t> BytesOf(const Graph& graph) {
  std::vector<uint64_t> bytes;
  for (const RankCollective& c : CollectivesOf(graph).all) bytes.push_back(c.bytes);
  return bytes;
}

TEST(Exchange, IsWhatDdpPutThere) {
  Edited e = With(OneGpu(), "ddp(8,fabric=nvlink4)");
  ASSERT_TRUE(e.status.ok()) << e.status;
  EXPECT_THAT(BytesOf(e.graph), testing::ElementsAre(16'000'000, 5'200'000));
  Editor edit(e.graph);
  auto exchanges = Exchanges::Find(edit, "");
  ASSERT_TRUE(exchanges.ok()) << exchanges.status();
  ASSERT_EQ(exchanges->all.size(), 2u);
  EXPECT_EQ(exchanges->all[0].ranks, 8);
  EXPECT_EQ(exchanges->all[1].gradients.size(), 2u);
  EXPECT_EQ(exchanges->all[1].gradients[0].rows, 1000u);
  EXPECT_TRUE(exchanges->all[0].before.valid());
  EXPECT_TRUE(exchanges->all[0].after.valid());
  EXPECT_EQ(exchanges->fabric()->name, "nvlink4");
}

TEST(Exchange, FewerBytesAreFasterOnASlowNetwork) {
  const Graph one = OneGpu();
  const std::string ddp = "ddp(8,fabric=eth25-roce)";
  const double whole = StepUs(one, ddp);
  const double half = StepUs(one, ddp + ",fp16-compress");
  EXPECT_LT(half, whole * 0.6);
  EXPECT_LT(StepUs(one, ddp + ",dgc(0.001)"), half);
  EXPECT_LT(StepUs(one, ddp + ",powersgd(4)"), half);
}

TEST(Exchange, ALibraryThatCompressesSaysTheSameAsDdpThatDoes) {
  const Graph one = OneGpu();
  const double in_ddp = StepUs(one, "ddp(8,fabric=eth25-roce,compress=fp16)");
  const double beside = StepUs(one, "ddp(8,fabric=eth25-roce),fp16-compress");
  EXPECT_NEAR(beside / in_ddp, 1, 0.02);
}

TEST(Exchange, WhatDgcGathersGrowsWithTheRanks) {
  const Graph one = OneGpu();
  const std::string eight = "ddp(8,fabric=eth25-roce)", many = "ddp(1024,fabric=eth25-roce)";
  const double few = StepUs(one, eight + ",dgc(0.01)") / StepUs(one, eight);
  EXPECT_GT(StepUs(one, many + ",dgc(0.01)") / StepUs(one, many), 2 * few);
}

TEST(Exchange, WhateverChangesItSaysWhy) {
  const Edited ddp = With(OneGpu(), "ddp(8,fabric=pcie4)");  // shares the GPU
  ASSERT_TRUE(ddp.status.ok()) << ddp.status;
  for (const char* spec : {"fp16-compress", "dgc", "powersgd", "local-sgd(4)", "bandwidth(x2)"}) {
    const auto scenario = ParseScenario(spec);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    Graph graph = ddp.graph;
    const auto applied = Apply(scenario->front(), graph);
    ASSERT_TRUE(applied.ok()) << spec << ": " << applied.status();
    ASSERT_FALSE(applied->causes.empty()) << spec;
    for (const Editor::Cause& cause : applied->causes) EXPECT_NE(cause.what, "edited") << spec;
  }
}

TEST(Exchange, LocalSgdIsTheMeanOverItsSteps) {
  const Graph one = OneGpu();
  const std::string ddp = "ddp(8,fabric=eth25-roce)";
  const double every = StepUs(one, ddp + ",local-sgd(1)");
  const double second = StepUs(one, ddp + ",local-sgd(2)");
  const double fourth = StepUs(one, ddp + ",local-sgd(4)");
  EXPECT_NEAR(every - second, 2 * (second - fourth), 20);
  EXPECT_GT(every, StepUs(one, ddp) * 0.9);
}

TEST(Exchange, PowerSgdBesideBackwardIsFasterThanInTheHook) {
  const Graph one = OneGpu();
  const std::string ddp = "ddp(8,fabric=eth25-roce)";
  EXPECT_LT(StepUs(one, ddp + ",powersgd(16,overlap=yes)"), StepUs(one, ddp + ",powersgd(16)"));
}

// The host draws the numbers while the GPU has nothing to do.
TEST(Exchange, PowerSgdThatBeginsAnewAtEachStepWaitsForTheHost) {
  const Graph one = OneGpu();
  const std::string ddp = "ddp(8,fabric=nvlink4)";
  EXPECT_GT(StepUs(one, ddp + ",powersgd(16,warm_start=no)"), StepUs(one, ddp + ",powersgd(16)"));
}

// Bytes that leave a node are the same as on a flat ring, so on NICs that bound it nothing is won;
// but it is never much worse.
TEST(Exchange, StagesByLevelMoveTheSameBytesBetweenNodes) {
  const Graph one = OneGpu();
  const std::string ddp = "ddp(64,fabric=ib-hdr)";
  const Edited e = With(one, ddp + ",blueconnect");
  ASSERT_TRUE(e.status.ok()) << e.status;
  EXPECT_THAT(BytesOf(e.graph), testing::UnorderedElementsAre(16'000'000, 2'000'000, 16'000'000,
                                                              5'200'000, 650'000, 5'200'000));
}

TEST(Exchange, WithoutOneItIsAnErrorThatSaysHowToGetOne) {
  for (const char* spec :
       {"fp16-compress", "dgc", "powersgd", "local-sgd(4)", "blueconnect", "p3"}) {
    EXPECT_EQ(DiagnosticOf(With(OneGpu(), spec).status).code, "E0824") << spec;
  }
  EXPECT_EQ(DiagnosticOf(With(OneGpu(), "ddp(8,fabric=nvlink4),p3").status).code, "E0826");
}

// A faster network after ddp changes what ddp put there, and so does the stretch of both sides.
TEST(Exchange, BandwidthIsAboutWhatDdpPutThere) {
  const Graph one = OneGpu();
  const double slow = StepUs(one, "ddp(8,fabric=eth25-roce)");
  EXPECT_LT(StepUs(one, "ddp(8,fabric=eth25-roce),bandwidth(x2)"), slow * 0.6);
}

// Between nodes the NICs are the limit; a level that is not the limit changes next to nothing.
TEST(Exchange, ALevelOfTheNetworkCanBeFaster) {
  const Graph one = OneGpu();
  const Fabric* fabric = FindFabric("ib-hdr");
  ASSERT_TRUE(fabric != nullptr && fabric->levels.size() == 2);
  const std::string ddp = "ddp(256,fabric=ib-hdr)";
  const double slow = StepUs(one, ddp);
  const double nics = StepUs(one, ddp + ",bandwidth(x8,level=" + fabric->levels[1].name + ")");
  EXPECT_LT(nics, slow - 30);  // the rest is latency, and backward
  EXPECT_LT(StepUs(one, ddp + ",latency(x0.1,level=" + fabric->levels[1].name + ")"), slow);
  const Edited e = With(one, ddp + ",bandwidth(x2,level=no)");
  EXPECT_EQ(DiagnosticOf(e.status).code, "E0825");
  EXPECT_THAT(DiagnosticOf(e.status).why, testing::HasSubstr(fabric->levels[1].name));
}

// Five steps, so that slices of one can be awaited in the next.
const Graph& ResNet() {
  static const Graph graph = [] {
    const auto trace = ImportFile(DAYDREAM_SOURCE_DIR "/examples/resnet50-synthetic.ddtrace", {});
    EXPECT_TRUE(trace.ok()) << trace.status();
    auto built = BuildGraph(*trace);
    EXPECT_TRUE(built.ok()) << built.status();
    return built->graph;
  }();
  return graph;
}

// Whatever way gradients are exchanged in.
class EachWay : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, EachWay,
                         testing::Values("p3", "powersgd(4)", "dgc(0.01)", "blueconnect",
                                         "fp16-compress"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name.substr(0, name.find_first_of("(-"));
                         });

// The other way round the fabric is another one before gradients are exchanged on it.
TEST_P(EachWay, ANetworkIsWhatItWouldHaveBeenOnFromTheStart) {
  const std::string way = std::string(",") + GetParam();
  const double nodes = StepUs(ResNet(), "ddp(16,fabric=efa100)" + way + ",network(efa-k8s)");
  EXPECT_NEAR(nodes / StepUs(ResNet(), "ddp(16,fabric=efa-k8s)" + way), 1, 0.002);
  // Over PCIe collectives slow compute down more.
  const double pcie = StepUs(ResNet(), "ddp(4,fabric=nvlink4)" + way + ",network(pcie4)");
  EXPECT_NEAR(pcie / StepUs(ResNet(), "ddp(4,fabric=pcie4)" + way), 1, 0.002);
}

TEST_P(EachWay, BandwidthAndLatencyMayStandBeforeOrBehindIt) {
  const std::string way = std::string(",") + GetParam(), ddp = "ddp(16,fabric=efa100)";
  const double as_is = StepUs(ResNet(), ddp + way);
  for (const char* speed : {"bandwidth(x0.1)", "latency(x8)", "bandwidth(x0.1,level=efa100)"}) {
    const double behind = StepUs(ResNet(), ddp + way + "," + speed);
    EXPECT_GT(behind, as_is * 1.001) << speed;
    const std::string before = fmt::format("{},{}{}", ddp, speed, way);
    EXPECT_NEAR(behind / StepUs(ResNet(), before), 1, 0.002) << speed;
  }
}

// Of more ranks nothing is known then.
TEST(Exchange, CollectivesWithoutSizesAreNotTimedAnew) {
  auto graph = ParseGraph(
      "lane cpu0   thread\n"
      "lane gpu0.7 stream\n"
      "lane gpu0.9 stream\n"
      "k0 gpu0.7 kernel 100us \"gemm\"\n"
      "r0 gpu0.9 collective 60us \"ncclDevKernel_AllReduce\" after k0 eventwait\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Edited e = With(*graph, "ddp(8,fabric=nvlink4)");
  EXPECT_EQ(DiagnosticOf(e.status).code, "E0815");
  EXPECT_THAT(DiagnosticOf(e.status).why, testing::StartsWith("1 of 1 collectives"));
}

// Over PCIe, where collectives slow compute down.
TEST(Exchange, BucketsAnewShareTheGpuAsThoseOfDdpDo) {
  for (const char* size : {"5MB", "25MB", "100MB"}) {
    const std::string ddp = "ddp(4,fabric=pcie4";
    const double from_start = StepUs(ResNet(), ddp + ",bucket=" + size + ")");
    const double anew = StepUs(ResNet(), ddp + "),bucket(" + size + ")");
    EXPECT_NEAR(anew / from_start, 1, 0.01) << size;
  }
}

// Sizes of gradients are those of the optimizer, which comes once after four passes.
TEST(Exchange, GradientsOfSeveralPassesAreExchangedInTheLast) {
  const Edited once = With(ResNet(), "ddp(8,fabric=nvlink4)");
  const Edited e = With(ResNet(), "ddp(8,fabric=nvlink4,accumulate=4)");
  ASSERT_TRUE(e.status.ok()) << e.status;
  EXPECT_EQ(BytesOf(e.graph), BytesOf(once.graph));
  const double added = StepUs(ResNet(), "ddp(8,fabric=nvlink4)") - StepUs(ResNet(), "layers(x1)");
  EXPECT_NEAR(StepUs(ResNet(), "ddp(8,fabric=nvlink4,accumulate=4)"),
              StepUs(ResNet(), "accumulate(4)") + added, 2 * added);
}

TEST(Exchange, OfARecordedRankIsWhatItsHooksLaunched) {
  const auto path = RealTraceFolder() / "training" / "recsys-a100-rank3of8.json.gz";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) GTEST_SKIP() << "no " << path;
  const auto trace = ImportFile(path.string(), {});
  ASSERT_TRUE(trace.ok()) << trace.status();
  auto built = BuildGraph(*trace);
  ASSERT_TRUE(built.ok()) << built.status();
  Editor edit(built->graph);
  const auto exchanges = Exchanges::Find(edit, "");
  ASSERT_TRUE(exchanges.ok()) << exchanges.status();
  // Three buckets a step of fp32 gradients, in six steps; the all-to-alls are none.
  EXPECT_GE(exchanges->all.size(), 15u);
  bool large = false;
  for (const Exchange& e : exchanges->all) large |= e.bytes == uint64_t{45'310'188} * 4;
  EXPECT_TRUE(large);
  const auto recorded = BuildGraph(*trace);
  ASSERT_TRUE(recorded.ok());
  const double before = StepTime(recorded->graph, *Simulate(recorded->graph)).us();
  EXPECT_LE(StepUs(recorded->graph, "fp16-compress"), before * 1.01);
}

}  // namespace
}  // namespace daydream
