// Clocks of host and GPU that disagree: times that cannot be tell by how much.
#include "graph/clock_offset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/built_sketch.h"

namespace daydream {
namespace {

// Six times: a kernel of 50 us, its result read by a copy, and a wait for that, which returns 4 us
// behind the copy. The clock of the GPU is `late_us` late.
BuiltGraph Read(double late_us) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  for (uint32_t i = 0; i < 6; ++i) {
    const double at = 200.0 * i + 100;
    s.Launch(cpu, gpu, "kernel", at, 5, at + 8 + late_us, 50);
    s.Call(cpu, "cudaMemcpyAsync", at + 6, 5, i + 1);
    s.Copy(gpu, Memory::kDevice, Memory::kPinned, 64, at + 60 + late_us, 2, i + 1);
    s.Call(cpu, "cudaStreamSynchronize", at + 12, 54, 0);
  }
  return Build(s);
}

double StepUsOf(const Graph& graph, int64_t kernel_us) {
  Graph faster = graph;
  for (size_t i = 0; i < graph.size(); ++i) {
    if (graph.task(TaskId(i)).kind == TaskKind::kKernel) SetDuration(faster, TaskId(i), kernel_us);
  }
  return Simulate(faster)->makespan.us();
}

TEST(ClockOffset, OfClocksThatAgreeNothingIsSet) {
  EXPECT_THAT(Read(0).report.clocks_set, testing::IsEmpty());
  EXPECT_EQ(Read(0).report.blocking_calls, 6u);
  // It may be: the wait returns at once.
  EXPECT_THAT(Read(4).report.clocks_set, testing::IsEmpty());
}

TEST(ClockOffset, ALateClockIsSetByWhatEndsAfterItsWaitReturned) {
  const BuiltGraph right = Read(0);
  for (const double late : {12.0, 40.0, 300.0}) {
    const BuiltGraph built = Read(late);
    ASSERT_EQ(built.report.clocks_set.size(), 1u) << late;
    const ClockOffset& set = built.report.clocks_set[0];
    EXPECT_EQ(set.late, Duration::Us(static_cast<int64_t>(late) - 4));
    EXPECT_EQ(set.impossible, 6u);
    EXPECT_EQ(built.report.blocking_calls, right.report.blocking_calls);
    ExpectReplaysExactly(built.graph);
    EXPECT_NEAR(StepUsOf(built.graph, 10), StepUsOf(right.graph, 10), 4 + 1) << late;
  }
}

TEST(ClockOffset, AClockThatIsAheadIsSetByWhatStartsBeforeItsCall) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 12; ++i) s.Launch(cpu, gpu, "kernel", 100 * i + 50, 5, 100 * i + 20, 30);
  const BuiltGraph built = Build(s);
  ASSERT_EQ(built.report.clocks_set.size(), 1u);
  EXPECT_EQ(built.report.clocks_set[0].late, Duration::Us(-30));
  EXPECT_EQ(built.report.early, 0u);
}

// Correlated with another call than its own, say.
TEST(ClockOffset, OneThatCannotBeSetsNoClock) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 12; ++i) {
    s.Launch(cpu, gpu, "kernel", 100 * i + 50, 5, 100 * i + (i == 5 ? 20 : 60), 30);
  }
  EXPECT_THAT(Build(s).report.clocks_set, testing::IsEmpty());
}

// Half of them start before calls that are not theirs, and a wait tells that the clocks agree.
TEST(ClockOffset, NoneIsSetWhereOthersWouldBecomeImpossible) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 40; ++i) {
    s.Launch(cpu, gpu, "kernel", 100 * i + (i % 2 == 0 ? 50 : 0), 5, 100 * i + 20, 30);
  }
  s.Call(cpu, "cudaDeviceSynchronize", 3910, 44);
  EXPECT_THAT(Build(s).report.clocks_set, testing::IsEmpty());
}

}  // namespace
}  // namespace daydream
