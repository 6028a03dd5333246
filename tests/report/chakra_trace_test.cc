// Graphs as Chakra execution traces, and read back: the same work at the same times.
#include <algorithm>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "graph/text.h"
#include "report/export/chakra_trace.h"
#include "report/summary.h"
#include "simulator/simulate.h"
#include "tests/graph/random_graph.h"
#include "tests/trace/recorded_files.h"
#include "trace/chakra/node.h"

namespace daydream {
namespace {

using Row = std::tuple<int64_t, int64_t, std::string>;  // start, duration, name

std::vector<Row> PlayedTasks(const Graph& graph, const Timeline& timeline) {
  std::vector<Row> rows;
  for (size_t i = 0; i < graph.size(); ++i) {
    const std::string_view name = graph.TaskName(TaskId(i));
    const Task& t = graph.tasks()[i];
    rows.emplace_back(timeline.start[i].ns, t.removed ? 0 : t.duration.ns,
                      std::string(name.empty() ? Name(t.kind) : name));
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<Row> ReadBack(const Trace& t) {
  std::vector<Row> rows;
  for (size_t row = 0; row < t.rows(); ++row) {
    if (t.EventName(row).starts_with(ChakraNode::kBetween)) continue;
    rows.emplace_back(t.start[row].ns, t.duration[row].ns, std::string(t.EventName(row)));
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

// How many tasks of `want` are not in `got`; both sorted.
size_t Missing(const std::vector<Row>& want, const std::vector<Row>& got) {
  std::vector<Row> missing;
  std::set_difference(want.begin(), want.end(), got.begin(), got.end(),
                      std::back_inserter(missing));
  return missing.size();
}

void ExpectPlaysAsItWasRead(const std::shared_ptr<const Trace>& trace, const std::string& what) {
  const auto built = BuildGraph(trace);
  ASSERT_TRUE(built.ok()) << what << ": " << built.status();
  const auto timeline = Simulate(built->graph);
  ASSERT_TRUE(timeline.ok()) << what << ": " << timeline.status();
  size_t moved = 0;
  for (size_t i = 0; i < built->graph.size(); ++i) {
    const uint32_t row = built->graph.tasks()[i].event;
    moved += row != Id<void>::kNoneValue && timeline->start[i] != trace->start[row];
  }
  EXPECT_EQ(moved, 0u) << what;
}

// False: edges were left out, so that the times need not be the same.
bool ExpectReadsBackEqual(const Graph& graph, const std::string& what) {
  const auto timeline = Simulate(graph);
  const ChakraExport out = ChakraTrace(graph, *timeline);
  const auto again = ImportBytes(out.bytes, "run.0.et");
  EXPECT_TRUE(again.ok()) << what << ": " << again.status();
  if (!again.ok()) return false;
  EXPECT_EQ((*again)->rows(), out.nodes) << what;
  EXPECT_EQ(out.tasks, graph.size()) << what;
  const std::vector<Row> want = PlayedTasks(graph, *timeline), got = ReadBack(**again);
  EXPECT_EQ(got.size(), want.size()) << what;
  if (out.dropped > 0) return false;
  EXPECT_EQ(out.played, timeline->makespan) << what;
  EXPECT_EQ(Missing(want, got), 0u) << what;
  ExpectPlaysAsItWasRead(*again, what);
  return true;
}

constexpr char kSmall[] = R"(lane cpu0 thread number=5
lane gpu0.7 stream number=7
lane gpu0.8 stream number=8
t0 cpu0 call 10us gap 2us "cudaLaunchKernel"
t1 gpu0.7 kernel 20us gap -1us "sgemm" after t0:start launch +5us
t2 gpu0.7 kernel 4us "relu"
t3 gpu0.8 memcpy 7.5us "Memcpy DtoH" bytes=4096 after t1 eventwait +3us
t4 cpu0 wait "cudaDeviceSynchronize" until t3 hostwait +2us
t5 cpu0 host 1us "next"
)";

// Of a graph as text, exported and read again.
absl::StatusOr<std::shared_ptr<const Trace>> ThereAndBack(std::string_view text) {
  DD_ASSIGN_OR_RETURN(const Graph graph, ParseGraph(text));
  DD_ASSIGN_OR_RETURN(const Timeline timeline, Simulate(graph));
  const ChakraExport out = ChakraTrace(graph, timeline);
  EXPECT_EQ(out.dropped, 0u);
  return ImportBytes(out.bytes, "run.0.et");
}

// sgemm 5-25, relu from 24 on, the copy 28-35.5, the host waits until 37.5.
TEST(ChakraTrace, AnchorsLagsGapsAndWaitsReadBackAsTheyPlay) {
  const auto t = ThereAndBack(kSmall);
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_THAT(ReadBack(**t),
              testing::ElementsAre(Row(0, 10000, "cudaLaunchKernel"), Row(5000, 20000, "sgemm"),
                                   Row(12000, 0, "cudaDeviceSynchronize"), Row(24000, 4000, "relu"),
                                   Row(28000, 7500, "Memcpy DtoH"), Row(37500, 1000, "next")));
  EXPECT_EQ(Rows(**t, EventKind::kKernel), 2u) << "time between work is no work of the GPU";
  ASSERT_EQ((*t)->copies.size(), 1u);
  EXPECT_EQ((*t)->copies[0].bytes, 4096u);
}

TEST(ChakraTrace, NodesComeBehindWhatTheyDependOnAndRoundingIsCarriedAlong) {
  std::string text = "lane gpu0.7 stream\n";
  for (int i = 0; i < 1000; ++i) text += fmt::format("t{} gpu0.7 kernel 2.5us \"k\"\n", i);
  const auto graph = ParseGraph(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const ChakraExport out = ChakraTrace(*graph, *Simulate(*graph));
  std::string_view bytes = out.bytes, message;
  ASSERT_TRUE(NextMessage(bytes, message));
  uint64_t sum = 0, nodes = 0;
  while (NextMessage(bytes, message)) {
    ChakraNode node;
    ASSERT_TRUE(ReadNode(message, node));
    EXPECT_EQ(node.id, nodes++);
    for (uint64_t before : node.after) EXPECT_LT(before, node.id);
    EXPECT_EQ(node.on_cpu, 0);
    sum += node.duration_us;
  }
  EXPECT_EQ(nodes, 1000u);
  EXPECT_EQ(sum, 2500u);
}

// The copy may begin 40 us before the kernel, which is 35 us before the call that launches it: as
// long before what that waits for, but not before the instant that the first one waits for.
TEST(ChakraTrace, WhatReachesFurtherBackThanItsTaskWaitsForWhatThatWaitsFor) {
  const auto t = ThereAndBack(R"(lane cpu0 thread number=5
lane gpu0.7 stream number=7
lane gpu0.8 stream number=8
t0 cpu0 host 30us "early" earliest 12us
t1 cpu0 call 10us "cudaLaunchKernel"
t2 gpu0.7 kernel 20us "sgemm" after t1:start launch +5us
t3 gpu0.8 memcpy 7us "Memcpy DtoH" after t2:start eventwait -40us
t4 gpu0.8 kernel 1us "relu" after t2 eventwait -32us
)");
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_THAT(ReadBack(**t),
              testing::ElementsAre(Row(7000, 7000, "Memcpy DtoH"), Row(12000, 30000, "early"),
                                   Row(35000, 1000, "relu"), Row(42000, 10000, "cudaLaunchKernel"),
                                   Row(47000, 20000, "sgemm")));
}

TEST(ChakraTrace, RandomGraphsReadBackEqual) {
  size_t equal = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Graph graph = RandomGraph(seed, {.priority_lanes = seed % 2, .negative_lags = seed % 3 != 0});
    // Importers leave out what lies minutes from all other work.
    for (Edge& e : graph.mutable_edges()) e.lag = Duration{e.lag.ns % 1000};
    equal += ExpectReadsBackEqual(graph, fmt::format("seed {}", seed));
  }
  EXPECT_EQ(equal, 300u);
}

TEST(ChakraTrace, RecordedGraphsReadBackEqual) {
  if (RealTraces().empty()) GTEST_SKIP() << "no real traces beside the repository";
  for (const std::string& name : RealTraces()) {
    const auto trace = ImportFile((RealTraceFolder() / name).string());
    ASSERT_TRUE(trace.ok()) << name;
    const auto built = BuildGraph(*trace);
    if (!built.ok()) continue;
    EXPECT_TRUE(ExpectReadsBackEqual(built->graph, name)) << name;
  }
}

}  // namespace
}  // namespace daydream
