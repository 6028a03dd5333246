#include "report/host_table.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "report/questions/causal.h"
#include "report/summary.h"
#include "simulator/simulate.h"
#include "tests/graph/trace_sketch.h"

namespace daydream {
namespace {

// A step of 100 us: next() 20, then 10 outside, then an operator of 60 in which an inner one takes
// 20 and a launch 10; its kernel runs for 10 beside the host.
BuiltGraph OneStep() {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Mark(cpu, "ProfilerStep#7", 0, 100);
  s.Mark(cpu, "DataLoader.__next__", 0, 20);
  s.Op(cpu, "aten::linear", 30, 60);
  s.Op(cpu, "aten::addmm", 40, 30);
  s.Launch(cpu, gpu, "kernel", 55, 10, 68, 10);
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

std::vector<HostRow> Table(const Graph& graph) {
  auto timeline = Simulate(graph, {.blockers = true});
  EXPECT_TRUE(timeline.ok());
  return HostTable(graph, *timeline);
}

const HostRow& Row(const std::vector<HostRow>& rows, std::string_view name) {
  static const HostRow kNone;
  for (const HostRow& r : rows) {
    if (r.what.name == name) return r;
  }
  ADD_FAILURE() << "no row " << name;
  return kNone;
}

TEST(HostTable, OwnTimeIsWhatIsInNothingElse) {
  const BuiltGraph built = OneStep();
  const std::vector<HostRow> rows = Table(built.graph);
  EXPECT_EQ(Row(rows, "DataLoader.__next__").self, Duration::Us(20));
  EXPECT_EQ(Row(rows, "aten::linear").self, Duration::Us(30));
  EXPECT_EQ(Row(rows, "aten::addmm").self, Duration::Us(20));
  EXPECT_EQ(Row(rows, "cudaLaunchKernel").self, Duration::Us(10));
  EXPECT_EQ(Row(rows, "ProfilerStep").self, Duration::Us(20)) << "10 before and 10 behind";
}

TEST(HostTable, TotalsHoldWhatIsInside) {
  const BuiltGraph built = OneStep();
  const std::vector<HostRow> rows = Table(built.graph);
  EXPECT_EQ(Row(rows, "aten::linear").total, Duration::Us(60));
  EXPECT_EQ(Row(rows, "aten::addmm").total, Duration::Us(30));
  EXPECT_EQ(Row(rows, "ProfilerStep").total, Duration::Us(100));
}

TEST(HostTable, OwnTimesAddUpToTheHostsTime) {
  const BuiltGraph built = OneStep();
  Duration rows, tasks;
  for (const HostRow& r : Table(built.graph)) rows += r.self;
  for (const daydream::Task& t : built.graph.tasks()) {
    if (IsHost(t.kind)) tasks += t.duration + t.gap;
  }
  EXPECT_EQ(rows, tasks);
}

TEST(HostTable, CallsAreCountedOnce) {
  const BuiltGraph built = OneStep();
  const std::vector<HostRow> rows = Table(built.graph);
  EXPECT_DOUBLE_EQ(Row(rows, "aten::linear").calls, 1);
  EXPECT_DOUBLE_EQ(Row(rows, "cudaLaunchKernel").calls, 1);
}

TEST(HostTable, ThePartOnTheCriticalPathIsThatOfTheSummary) {
  const BuiltGraph built = OneStep();
  auto timeline = Simulate(built.graph, {.blockers = true});
  ASSERT_TRUE(timeline.ok());
  Duration rows;
  for (const HostRow& r : HostTable(built.graph, *timeline)) rows += r.path;
  const BoundBy path = Summarize(built.graph, *timeline, GroupBy::kClass).path;
  EXPECT_NEAR((path.cpu + path.data).us(), rows.us(), 5) << "latencies are not in the table";
}

TEST(HostTable, CausalSplitsHostWorkTheSameWay) {
  const BuiltGraph built = OneStep();
  std::map<std::string, Duration> work;
  Duration all, parts;
  for (const WorkGroup& g : WorkGroups(built.graph)) {
    if (g.family != Family::kHost) continue;
    Duration sum;
    for (TaskId t : g.tasks) {
      sum += built.graph.task(t).duration;
      if (!g.apart) sum += built.graph.task(t).gap;
    }
    for (TaskId t : g.gaps) sum += built.graph.task(t).gap;
    work[g.name] = sum;
    (g.apart ? parts : all) += sum;
  }
  EXPECT_EQ(work["aten::linear"], Duration::Us(30));
  EXPECT_EQ(work["ProfilerStep"], Duration::Us(20));
  EXPECT_EQ(parts, all);
}

}  // namespace
}  // namespace daydream
