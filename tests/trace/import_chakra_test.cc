// Chakra traces: what becomes of nodes, when a plan lets them run, and the graph of it.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "graph/validate.h"
#include "simulator/simulate.h"
#include "tests/trace/recorded_files.h"
#include "trace/chakra/node.h"
#include "trace/chakra/plan.h"
#include "trace/join/ranks.h"

namespace daydream {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

std::vector<std::string> RowsOf(const Trace& t) {
  std::vector<std::string> rows;
  for (size_t row = 0; row < t.rows(); ++row) {
    rows.push_back(fmt::format("{} {}+{}", t.EventName(row), t.start[row].ns / 1000,
                               t.duration[row].ns / 1000));
  }
  return rows;
}

std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

uint64_t NoteOf(const Trace& t, std::string_view what) {
  for (const ImportCount& c : t.provenance.counts) {
    if (c.what == what) return c.count;
  }
  return 0;
}

// Thread 1: mm 0-20, MmBackward0 20-50, all_reduce 50-60, add_ 60-75. Streams: gemm_forward from
// 20 on, gemm_backward behind it, the collective behind both, sgd behind all.
TEST(ImportChakra, NodesRunAsSoonAsTheyCan) {
  const auto t = Load(ExampleFile("chakra-small.0.et"));
  ASSERT_NE(t, nullptr);
  EXPECT_THAT(RowsOf(*t), UnorderedElementsAre("aten::mm(0) 0+20", "MmBackward0(0) 20+30",
                                               "nccl:all_reduce(0) 50+10", "aten::add_(0) 60+15",
                                               "gemm_forward 20+100", "gemm_backward 120+200",
                                               "gradients 320+50", "sgd 370+40"));
  EXPECT_TRUE(t->provenance.planned);
  EXPECT_TRUE(t->provenance.synthetic);
  EXPECT_EQ(t->ranks.at(0).rank, 0);
  ASSERT_EQ(t->collectives.size(), 1u);
  EXPECT_EQ(t->Name(t->collectives[0].name), "allreduce");
  EXPECT_EQ(t->collectives[0].elements_in, 1 << 20);
  EXPECT_EQ(NoteOf(*t, "dependencies on nodes that are not there"), 2u);  // node 2, twice
  EXPECT_EQ(NoteOf(*t, "dependencies on later nodes"), 1u);               // sgd on add_
}

TEST(ImportChakra, TheGraphPlaysThePlan) {
  const auto t = Load(ExampleFile("chakra-small.0.et"));
  ASSERT_NE(t, nullptr);
  for (Lags lags : {Lags::kMeasured, Lags::kTypical}) {
    const auto built = BuildGraph(t, {.lags = lags});
    ASSERT_TRUE(built.ok()) << built.status();
    ASSERT_TRUE(Validate(built->graph).ok());
    const auto timeline = Simulate(built->graph);
    ASSERT_TRUE(timeline.ok());
    EXPECT_EQ(timeline->makespan.ns, 410'000);
    EXPECT_EQ(built->report.gpu_tasks, 4u);
    EXPECT_EQ(built->report.launched, 4u);
  }
}

TEST(ImportChakra, RanksAreOnePlanAndEachOneOfThemIsOne) {
  const auto t = Load(ExampleFile("chakra-small.0.et"));
  ASSERT_NE(t, nullptr);
  auto other = std::make_shared<Trace>(*t);
  other->ranks[0].rank = 1;
  RankTrace first, second;
  first.file = "a.0.et", first.trace = t;
  second.file = "a.1.et", second.trace = other;
  const auto merged = MergeRanks({first, second}, "a");
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_TRUE(merged->trace->provenance.planned);
  EXPECT_EQ(merged->clocks[1].basis, ClockBasis::kSame) << "plans have no clocks";
  EXPECT_EQ(merged->trace->rows(), 16u);
  EXPECT_EQ(merged->trace->dependencies.size(), 2 * t->dependencies.size());
  const auto one = TakeRank(*merged->trace, 1);
  ASSERT_TRUE(one.ok());
  EXPECT_TRUE((*one)->provenance.planned);
  const auto built = BuildGraph(*one);
  ASSERT_TRUE(built.ok());
  EXPECT_EQ(Simulate(built->graph)->makespan.ns, 410'000);
}

// The first of its two messages is about the file.
TEST(ImportChakra, AFileWithoutANodeIsRefused) {
  const std::string whole = ReadBytes(ExampleFile("chakra-small.0.et"));
  std::string_view rest = whole, message;
  ASSERT_TRUE(NextMessage(rest, message));
  const size_t about = whole.size() - rest.size();
  ASSERT_TRUE(NextMessage(rest, message));
  const size_t one = whole.size() - rest.size();
  for (size_t bytes = about; bytes < one; ++bytes) {
    const auto t = ImportBytes(whole.substr(0, bytes), "cut.0.et", {.max_malformed = 1.0});
    const Diagnostic d = DiagnosticOf(t.status());
    ASSERT_EQ(d.code, "E0210") << bytes;
    EXPECT_EQ(d.what, "this Chakra trace holds no node that can be read") << bytes;
    EXPECT_EQ(d.why.find("ends early") == std::string::npos, bytes == about) << d.why;
  }
  EXPECT_TRUE(ImportBytes(whole.substr(0, one), "one.0.et").ok());
}

TEST(Plan, CirclesAreOpenedAtTheirFirstNode) {
  NodePlan plan{.nodes = {{0, Duration{5}}, {0, Duration{7}}, {1, Duration{1}}},
                .edges = {{0, 1}, {1, 0}, {1, 2}}};
  Plan(plan);
  EXPECT_THAT(plan.order, ElementsAre(0, 1, 2));
  EXPECT_EQ(plan.dropped, 1u);
  EXPECT_EQ(plan.nodes[2].start.ns, 12);
}

TEST(Plan, ALaneDoesOneThingAtATime) {
  NodePlan plan{.nodes = {{0, Duration{5}}, {0, Duration{7}}, {1, Duration{1}}}, .edges = {{0, 2}}};
  Plan(plan);
  EXPECT_EQ(plan.nodes[1].start.ns, 5);
  EXPECT_EQ(plan.nodes[2].start.ns, 5);
}

TEST(ImportChakra, RealFilesAreAccountedFor) {
  const std::string resnet = Sample("chakra/resnet-ddp-rank0.et.gz");
  if (!std::filesystem::exists(resnet)) GTEST_SKIP() << resnet << " is not here";
  const auto t = Load(resnet);
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->provenance.input_events, 3664u);
  EXPECT_EQ(t->rows(), 3664u);
  EXPECT_EQ(NoteOf(*t, "dependencies on nodes that are not there"), 1277u);
  EXPECT_EQ(NoteOf(*t, "dependencies on later nodes"), 607u);
  EXPECT_EQ(NoteOf(*t, "nodes without a duration"), 157u);
  int64_t sum = 0;
  for (Duration d : t->duration) sum += d.ns;
  EXPECT_NEAR(static_cast<double>(sum) / 1e6, 381.8, 0.05);
  const auto built = BuildGraph(t);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_TRUE(Validate(built->graph).ok());
  const auto ring = Load(Sample("chakra/ring-allreduce-8.0.et"));
  EXPECT_EQ(ring->rows(), 35u);
  EXPECT_EQ(ring->dependencies.size(), 34u);
}

TEST(ImportChakra, FourRealRanksAreOneGraph) {
  const std::string folder = Sample("chakra");
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not here";
  std::vector<RankTrace> ranks(4);
  for (size_t r = 0; r < 4; ++r) {
    ranks[r].file = fmt::format("all-reduce-4.{}.et", r);
    ranks[r].trace = Load(fmt::format("{}/{}", folder, ranks[r].file));
  }
  const auto merged = MergeRanks(ranks, "all-reduce-4");
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->trace->ranks.size(), 4u);
  EXPECT_EQ(merged->trace->rows(), 4u);
  const auto built = BuildGraph(merged->trace);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_TRUE(Validate(built->graph).ok());
  EXPECT_EQ(built->graph.size(), 4u);
}

}  // namespace
}  // namespace daydream
