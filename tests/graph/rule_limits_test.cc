// Where each dependency rule ends: what is just inside and what is just outside of it.
// build_test.cc has the plain cases. Times are in microseconds.
#include <gtest/gtest.h>

#include "graph/repeat.h"
#include "tests/graph/built_sketch.h"

namespace daydream {
namespace {

uint64_t BlockingCalls(Memory from, Memory to, uint64_t bytes) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Call(cpu, "cudaMemcpyAsync", 0, 100, 1);
  s.Copy(gpu, from, to, bytes, 10, 80, 1);
  return Build(s).report.blocking_calls;
}

TEST(CopyRule, OnlyUploadsThatDoNotFitTheStagingBufferBlock) {  // B3
  EXPECT_EQ(BlockingCalls(Memory::kPageable, Memory::kDevice, 64 << 10), 0u);
  EXPECT_EQ(BlockingCalls(Memory::kPageable, Memory::kDevice, (64 << 10) + 1), 1u);
}

// The launch of `late` came before the window, and its stream was at rest: it waited for `b`.
TEST(StartRule, WhatWasLaunchedBeforeTheWindowWaitedForAnotherStream) {  // G4
  TraceSketch s;
  LaneId cpu = s.Thread(), first = s.Stream(7), second = s.Stream(20);
  s.Kernel(first, "a", 0, 100);
  s.Kernel(first, "b", 101, 100);
  s.Kernel(second, "late", 203, 50);
  s.Kernel(first, "c", 202, 100);
  s.Launch(cpu, first, "launched", 0, 5, 303, 10);
  s.Launch(cpu, second, "too", 6, 5, 310, 10);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  ExpectReplaysExactly(g);
  SetDuration(g, Find(g, "a", TaskKind::kKernel), 50);
  SetDuration(g, Find(g, "b", TaskKind::kKernel), 50);
  EXPECT_EQ(EndUs(Play(g), Find(g, "late", TaskKind::kKernel)), 50 + 1 + 50 + 2 + 50);
}

TEST(CopyRule, DownloadsBlockWhenTheirMemoryIsPageable) {  // B2
  EXPECT_EQ(BlockingCalls(Memory::kDevice, Memory::kPageable, 4), 1u);
  EXPECT_EQ(BlockingCalls(Memory::kDevice, Memory::kPinned, 4), 0u);
  EXPECT_EQ(BlockingCalls(Memory::kDevice, Memory::kDevice, 4), 0u);
}

// A kernel until 108, memory freed from 10 to 10 + `length`.
BuiltGraph KernelThenFree(double length, double other_stream_until = 0) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Launch(cpu, gpu, "k", 0, 5, 8, 100);
  if (other_stream_until > 0) {
    s.Launch(cpu, s.Stream(20), "other", 6, 2, 12, other_stream_until - 12);
  }
  s.Call(cpu, "cudaFree", 10, length, 1);
  return Build(s);
}

TEST(FreeRule, FreeingWaitsForTheGpuAndThenWorks) {  // B5
  BuiltGraph built = KernelThenFree(110);
  EXPECT_EQ(built.report.blocking_calls, 1u);
  Graph& g = built.graph;
  const TaskId call = Find(g, "cudaFree", TaskKind::kCall);
  EXPECT_EQ(g.task(call).duration, Duration::Us(120 - 108)) << "its own work";
  ExpectReplaysExactly(g);
  SetDuration(g, Find(g, "k", TaskKind::kKernel), 20);
  EXPECT_EQ(EndUs(Play(g), call), 8 + 20 + 12);
}

TEST(FreeRule, AShortFreeWaitedForNothing) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Launch(cpu, gpu, "k", 0, 5, 8, 30);  // until 38
  s.Call(cpu, "cudaFree", 10, 49, 1);
  EXPECT_EQ(Build(s).report.blocking_calls, 0u);
}

TEST(FreeRule, AStreamThatGoesOnShowsThatFreeingDidNotWait) {
  EXPECT_EQ(KernelThenFree(110, 120 + 15).report.blocking_calls, 1u) << "within clock skew";
  EXPECT_EQ(KernelThenFree(110, 120 + 16).report.blocking_calls, 0u);
}

TEST(StreamSyncRule, WithoutRecordsItWaitsForWhatEndedLast) {  // B7
  TraceSketch s;
  const LaneId cpu = s.Thread(), a = s.Stream(7), b = s.Stream(20);
  s.Launch(cpu, a, "long", 0, 5, 8, 100);
  s.Launch(cpu, b, "short", 6, 3, 12, 40);
  s.Call(cpu, "cudaStreamSynchronize", 10, 102, 1);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  const TaskId sync = Find(g, "cudaStreamSynchronize", TaskKind::kCall);
  SetDuration(g, Find(g, "short", TaskKind::kKernel), 70);
  EXPECT_EQ(EndUs(Play(g), sync), 112);
  SetDuration(g, Find(g, "long", TaskKind::kKernel), 300);
  EXPECT_EQ(EndUs(Play(g), sync), 8 + 300 + 4);
}

TEST(StreamSyncRule, WhatEndedLongBeforeItReturnedIsNotWhatItWaitedFor) {
  for (const bool near : {true, false}) {
    TraceSketch s;
    const LaneId cpu = s.Thread(), gpu = s.Stream();
    s.Launch(cpu, gpu, "k", 0, 5, 8, 100);
    s.Call(cpu, "cudaStreamSynchronize", 10, 98 + (near ? 60 : 61), 1);
    EXPECT_EQ(Build(s).report.blocking_calls, near ? 1u : 0u);
  }
}

TEST(StreamSyncRule, AfterACopyItIsTheStreamOfTheCopy) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), a = s.Stream(7), b = s.Stream(20);
  s.Launch(cpu, b, "beside", 0, 5, 8, 92);  // until 100
  s.Call(cpu, "cudaMemcpyAsync", 6, 4, 1);
  s.Copy(a, Memory::kDevice, Memory::kPinned, 4, 30, 20, 1);  // until 50
  s.Call(cpu, "cudaStreamSynchronize", 60, 45, 2);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  SetDuration(g, Find(g, "beside", TaskKind::kKernel), 1000);
  EXPECT_EQ(EndUs(Play(g), Find(g, "cudaStreamSynchronize", TaskKind::kCall)), 105);
}

TEST(HandOffRule, WhatFollowsAnOperatorIsNoneOfItsTime) {  // T2
  TraceSketch s;
  const LaneId main = s.Thread(), engine = s.Thread(200), gpu = s.Stream();
  s.Op(main, "aten::ones_like", 0, 20, 1);
  s.Op(engine, "autograd::engine::evaluate_function: AddmmBackward0", 150, 200, 1);
  s.Launch(engine, gpu, "backward", 160, 5, 168, 50);
  s.Op(main, "aten::add_", 400, 20);
  const BuiltGraph built = Build(s);
  const Graph& g = built.graph;
  ASSERT_EQ(built.report.handoffs, 1u);
  EXPECT_FALSE(g.task(Find(g, "(starts backward)", TaskKind::kHost)).scope.valid());
  EXPECT_FALSE(g.task(Find(g, "(waits for backward)", TaskKind::kWait)).scope.valid());
}

TEST(HandOffRule, AThreadThatWorksDuringBackwardDidNotStartIt) {  // T1
  TraceSketch s;
  const LaneId main = s.Thread(), engine = s.Thread(200), busy = s.Thread(300), gpu = s.Stream();
  s.Op(main, "aten::linear", 0, 100, 1);
  s.Launch(main, gpu, "forward", 10, 5, 18, 50);
  for (const double at : {130.0, 180.0, 220.0, 260.0}) s.Op(busy, "aten::to", at, 15);
  s.Op(engine, "autograd::engine::evaluate_function: AddmmBackward0", 150, 200, 1);
  s.Launch(engine, gpu, "backward", 160, 5, 168, 50);
  s.Op(main, "aten::add_", 400, 20);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  ASSERT_EQ(built.report.handoffs, 1u);
  const TaskId wait = Find(g, "(waits for backward)", TaskKind::kWait);
  EXPECT_EQ(g.lane(g.task(wait).lane).lane.number, TraceSketch::kProcess);
}

TEST(HandOffRule, ABackwardThreadWaitsForItsNextJobNotForATime) {  // T1
  TraceSketch s;
  const LaneId main = s.Thread(), engine = s.Thread(200), gpu = s.Stream();
  s.Op(main, "aten::linear", 0, 100, 1);
  s.Launch(main, gpu, "forward", 10, 5, 18, 50);
  s.Op(engine, "autograd::engine::evaluate_function: AddmmBackward0", 150, 50, 1);
  s.Launch(engine, gpu, "backward", 160, 5, 168, 20);
  s.Op(main, "aten::mul", 220, 300, 2);
  s.Launch(main, gpu, "again", 230, 5, 238, 20);
  s.Op(engine, "autograd::engine::evaluate_function: MulBackward0", 540, 50, 2);
  s.Launch(engine, gpu, "backward again", 550, 5, 558, 20);
  s.Op(main, "aten::add_", 600, 20);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  ASSERT_EQ(built.report.handoffs, 2u);
  ExpectReplaysExactly(g);
  for (size_t i = 0; i < g.size(); ++i) {
    Task& task = g.mutable_task(TaskId(i));
    if (g.Name(task.name) == "aten::mul") task.duration = {};
  }
  EXPECT_EQ(EndUs(Play(g), Find(g, "backward again", TaskKind::kKernel)), 578 - (300 - 5));
}

// Our recorder leaves a range around the engine's work, and in it the layers of modules.
TEST(HandOffRule, ABackwardThreadIsIdleAfterTheRangeOfItsLastLayer) {  // T1
  TraceSketch s;
  const LaneId main = s.Thread(), engine = s.Thread(200), gpu = s.Stream();
  s.Launch(main, gpu, "forward", 0, 5, 18, 50);
  s.Mark(engine, "torch::autograd::engine", 150, 50);
  s.Launch(engine, gpu, "backward", 160, 5, 168, 20);
  s.Frame(engine, "Linear", 190, 10);
  s.Launch(main, gpu, "again", 230, 300, 535, 2);
  s.Mark(engine, "torch::autograd::engine", 540, 50);
  s.Launch(engine, gpu, "backward again", 550, 5, 558, 20);
  s.Call(main, "cudaGetDevice", 600, 20);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  ASSERT_EQ(built.report.handoffs, 2u);
  ExpectReplaysExactly(g);
  for (size_t i = 0; i < g.size(); ++i) {
    Task& task = g.mutable_task(TaskId(i));
    if (task.duration == Duration::Us(300)) task.duration = {};
  }
  EXPECT_EQ(EndUs(Play(g), Find(g, "backward again", TaskKind::kKernel)), 578 - 300);
}

TEST(StreamSyncRule, AWaitForAnEventEndsWithWhatWasLaunchedBeforeItsRecord) {  // B7
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream(7);
  s.Launch(cpu, gpu, "early", 0, 5, 8, 100);
  s.Call(cpu, "cudaEventRecord", 6, 1, 50);
  s.Launch(cpu, gpu, "late", 8, 2, 108, 3);
  s.Call(cpu, "cudaEventSynchronize", 20, 92, 51);
  s.Sync(gpu, {.kind = SyncKind::kEvent, .wait_on_stream = 7, .record_correlation = 50}, 20, 51);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  const TaskId sync = Find(g, "cudaEventSynchronize", TaskKind::kCall);
  SetDuration(g, Find(g, "late", TaskKind::kKernel), 500);
  EXPECT_EQ(EndUs(Play(g), sync), 112);
  SetDuration(g, Find(g, "early", TaskKind::kKernel), 200);
  EXPECT_EQ(EndUs(Play(g), sync), 8 + 200 + 4);
}

TEST(EventRule, ARecordThatTheTimingContradictsIsNotBelieved) {  // E1
  for (const double start : {107.0, 50.0}) {
    TraceSketch s;
    const LaneId cpu = s.Thread(), a = s.Stream(7), b = s.Stream(20);
    s.Launch(cpu, a, "produce", 0, 5, 8, 100);
    s.Call(cpu, "cudaEventRecord", 6, 1, 50);
    s.Call(cpu, "cudaStreamWaitEvent", 8, 1, 51);
    s.Sync(b,
           {.kind = SyncKind::kStreamWaitEvent,
            .stream = 20,
            .wait_on_stream = 7,
            .record_correlation = 50},
           8, 51);
    s.Launch(cpu, b, "consume", 10, 5, start, 10);
    EXPECT_EQ(Build(s).report.event_waits, start == 107 ? 1u : 0u);
  }
}

TEST(StartRule, WorkThatStartedInsideOfItsCallStartsNoEarlierThanThat) {  // L2
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Op(cpu, "aten::before", 0, 10);
  s.Launch(cpu, gpu, "k", 10, 5, 12, 50);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  ExpectReplaysExactly(g);
  SetDuration(g, Find(g, "cudaLaunchKernel", TaskKind::kCall), 1);
  EXPECT_EQ(EndUs(Play(g), Find(g, "k", TaskKind::kKernel)), 10 + 50) << "not 11 - 3 + 50";
}

TEST(StartRule, ABranchOfACudaGraphFollowsWhatEndedJustBefore) {  // G3
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Call(cpu, "cudaGraphLaunch", 0, 5, 1);
  s.Kernel(gpu, "root", 10, 50, 1);
  s.Kernel(gpu, "left", 61, 100, 1);
  s.Kernel(gpu, "right", 62, 30, 1);  // beside it
  const BuiltGraph built = Build(s);
  const TaskId root = Find(built.graph, "root", TaskKind::kKernel);
  const TaskId right = Find(built.graph, "right", TaskKind::kKernel);
  size_t waits = 0;
  for (const Edge& e : built.graph.edges()) {
    if (e.to != right || e.rule != Rule::kEventWait) continue;
    ++waits;
    EXPECT_EQ(e.from, root) << "not the begin of the other branch";
    EXPECT_EQ(e.lag, Duration::Us(2));
  }
  EXPECT_EQ(waits, 1u);
}

TEST(EventRule, AWaitThatAnotherThreadMadeIsToldByWhatEndedJustBefore) {  // E3
  for (const double gap : {25.0, 26.0}) {
    TraceSketch s;
    const LaneId cpu = s.Thread(), other = s.Thread(200), a = s.Stream(7), b = s.Stream(20);
    s.Launch(cpu, a, "produce", 0, 5, 8, 100);
    s.Op(other, "aten::wait", 5, 4);
    s.Call(other, "cudaStreamWaitEvent", 6, 1, 50);
    s.Launch(cpu, b, "consume", 10, 5, 108 + gap, 10);
    BuiltGraph built = Build(s);
    Graph& g = built.graph;
    ExpectReplaysExactly(g);
    EXPECT_EQ(built.report.event_waits, gap == 25 ? 1u : 0u);
    SetDuration(g, Find(g, "produce", TaskKind::kKernel), 300);
    EXPECT_EQ(EndUs(Play(g), Find(g, "consume", TaskKind::kKernel)),
              (gap == 25 ? 308 : 108) + gap + 10);
  }
}

// "side" is ready at 20 and starts at 60, while `holder` runs from `from` to `until`.
BuildReport Beside(const char* holder, double from, double until) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), other = s.Thread(200), a = s.Stream(7), b = s.Stream(20);
  s.Launch(cpu, b, "before", 0, 2, 5, 1);
  s.Launch(other, a, holder, from - 10, 5, from, until - from);
  s.Launch(cpu, b, "side", 11, 4, 60, 10);
  return Build(s).report;
}

TEST(StartRule, OnlyWhatRanWhenItWasReadyHeldIt) {  // G6
  EXPECT_EQ(Beside("gemm", 24, 200).contended, 1u);
  EXPECT_EQ(Beside("gemm", 26, 200).contended, 0u) << "started more than 5 us later";
  EXPECT_EQ(Beside("gemm", 26, 200).unexplained, 1u);
  EXPECT_EQ(Beside("ncclKernel_AllReduce", 24, 200).contended, 0u) << "holds few processors";
}

// "side" is ready at 20 and starts at 300, amid the second of two kernels of other streams.
BuildReport AmidTheSecond(double second_from, double second_until) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), other = s.Thread(200);
  const LaneId a = s.Stream(7), b = s.Stream(20), c = s.Stream(21);
  s.Launch(cpu, b, "before", 0, 2, 5, 1);
  s.Launch(other, a, "gemm", 1, 5, 10, 150);
  s.Launch(cpu, b, "side", 11, 4, 300, 10);
  s.Launch(other, c, "gemm", 12, 5, second_from, second_until - second_from);
  return Build(s).report;
}

TEST(StartRule, KernelsOfOtherStreamsHeldItInTurn) {  // G6
  // The second waits for room, too, where it starts before the first has ended.
  EXPECT_EQ(AmidTheSecond(140, 400).contended, 2u);
  EXPECT_EQ(AmidTheSecond(140, 400).unexplained, 0u);
  EXPECT_EQ(AmidTheSecond(200, 400).contended, 0u) << "40 us of 280 nobody ran";
  EXPECT_EQ(AmidTheSecond(140, 290).contended, 1u) << "nobody runs when it starts";
  EXPECT_EQ(AmidTheSecond(140, 290).unexplained, 1u);
}

TEST(StartRule, AGraphWithoutRecordsIsWorkThatWasNotRecorded) {  // G8
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Launch(cpu, gpu, "a", 0, 5, 8, 10);
  s.Call(cpu, "cudaGraphLaunch", 10, 5, 77);
  s.Launch(cpu, gpu, "b", 20, 5, 200, 10);
  BuiltGraph built = Build(s);
  EXPECT_EQ(built.report.unrecorded, 1u);
  EXPECT_EQ(built.report.unexplained, 0u);
  const Task& stretch = built.graph.task(Find(built.graph, "(unrecorded)", TaskKind::kKernel));
  EXPECT_EQ(stretch.duration, Duration::Us(200 - (25 + 3))) << "from when b could have started";
  ExpectReplaysExactly(built.graph);
}

TEST(CollectiveRule, WithoutMessagesOnlyTheSamePlaceOfEachStepIsEqual) {  // N2
  TraceSketch s;
  const LaneId cpu = s.Thread(), comm = s.Stream(20);
  for (int step = 0; step < 5; ++step) {
    const double begin = step * 1000;
    s.Mark(cpu, fmt::format("ProfilerStep#{}", step), begin, 1000);
    s.Launch(cpu, comm, "ncclKernel_AllReduce", begin, 5, begin + 8, 50);
    s.Launch(cpu, comm, "ncclKernel_AllReduce", begin + 100, 5, begin + 108, step == 2 ? 500 : 510);
  }
  const BuiltGraph built = Build(s);
  size_t seen = 0;
  for (size_t i = 0; i < built.graph.size(); ++i) {
    const Task& t = built.graph.tasks()[i];
    if (t.kind != TaskKind::kCollective || !built.graph.steps()[t.step].measured) continue;
    ++seen;
    const Duration same = Duration::Us(t.duration > Duration::Us(100) ? 500 : 50);
    EXPECT_EQ(built.graph.Transfer(TaskId(i)), same) << "not the shortest of all that are alike";
  }
  EXPECT_GE(seen, 6u);
}

TEST(CollectiveRule, WithoutMessagesOneStepSaysNothingAboutTheTransfer) {  // N2
  TraceSketch s;
  const LaneId cpu = s.Thread(), comm = s.Stream(20);
  for (int i = 0; i < 6; ++i) {
    s.Launch(cpu, comm, "ncclKernel_AllReduce", i * 500, 5, i * 500 + 8, i == 2 ? 80 : 300);
  }
  const BuiltGraph built = Build(s);
  const TaskId first = Find(built.graph, "ncclKernel_AllReduce", TaskKind::kCollective);
  EXPECT_EQ(built.graph.Transfer(first), Duration::Us(300)) << "80 us may be another message";
}

TEST(CollectiveRule, ThreeEqualOnesSayNothingAboutTheTransfer) {  // N2
  for (const int equal : {3, 4}) {
    TraceSketch s;
    const LaneId cpu = s.Thread(), comm = s.Stream(20);
    for (int i = 0; i < equal; ++i) {
      const auto correlation = static_cast<uint32_t>(i + 1);
      s.Call(cpu, "cudaLaunchKernel", i * 500, 5, correlation);
      s.Collective(comm, "ncclKernel_AllReduce", i * 500 + 8, i == 2 ? 80 : 300, correlation,
                   "all");
    }
    const BuiltGraph built = Build(s);
    const TaskId first = Find(built.graph, "ncclKernel_AllReduce", TaskKind::kCollective);
    EXPECT_EQ(built.graph.Transfer(first), Duration::Us(equal == 4 ? 80 : 300));
  }
}

uint32_t DepthOf(const char* launch) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Call(cpu, launch, 0, 5, 1);
  s.Kernel(gpu, "k", 8, 10, 1);
  const BuiltGraph built = Build(s);
  return built.graph.lane(built.graph.task(Find(built.graph, "k", TaskKind::kKernel)).lane)
      .queue_depth;
}

TEST(QueueRule, OnlyTheQueueOfNvidiasDriverIsTakenForGranted) {  // Q2
  EXPECT_EQ(DepthOf("cudaLaunchKernel"), 1022u);
  EXPECT_EQ(DepthOf("hipLaunchKernel"), 0u) << "nothing in the trace shows one";
}

TEST(StreamRule, AKernelWithinTheTailOfAnotherLeavesTheNextItsDistance) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Launch(cpu, gpu, "a", 0, 5, 8, 100);      // until 108
  s.Launch(cpu, gpu, "within", 6, 5, 93, 5);  // until 98
  s.Launch(cpu, gpu, "next", 12, 5, 116, 10);
  BuiltGraph built = Build(s);
  ExpectReplaysExactly(built.graph);
  SetDuration(built.graph, Find(built.graph, "a", TaskKind::kKernel), 200);
  const Timeline t = Play(built.graph);
  EXPECT_EQ(EndUs(t, Find(built.graph, "within", TaskKind::kKernel)), 8 + 200 - 15 + 5);
  EXPECT_EQ(EndUs(t, Find(built.graph, "next", TaskKind::kKernel)), 8 + 200 + 8 + 10);
}

TEST(EventRule, AWaitMayBeNestedAsDeepAsAFileLikes) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  constexpr int kDeep = 200'000;
  s.Op(cpu, "c10d::allreduce_", 0, 2 * kDeep);
  for (int i = 1; i < kDeep; ++i) s.Op(cpu, "aten::op", i * 0.1, 2 * kDeep - i * 0.2);
  s.Call(cpu, "cudaStreamWaitEvent", 0.2 * kDeep, 1, 1);
  s.Launch(cpu, gpu, "k", 0.3 * kDeep, 5, 0.4 * kDeep, 10);
  EXPECT_EQ(Build(s).report.launched, 1u);
}

// Transfers of equal collectives of two groups, the first of 500, 80, 300 and 90 us.
TEST(CollectiveRule, CollectivesOfOtherGroupsSayNothing) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), comm = s.Stream(20);
  double us = 0;
  uint32_t correlation = 0;
  for (double length : {500.0, 80.0, 300.0, 90.0}) {
    for (const char* group : {"slow", "quick"}) {
      const double takes = group[0] == 's' ? length : 20;
      s.Call(cpu, "cudaLaunchKernel", us, 5, ++correlation);
      s.Collective(comm, "ncclKernel_AllReduce", us + 8, takes, correlation, group);
      us += takes + 20;
    }
  }
  BuiltGraph built = Build(s);
  const auto transfer = [&](int nth) {
    return built.graph.Transfer(
        Find(built.graph, "ncclKernel_AllReduce", TaskKind::kCollective, nth));
  };
  EXPECT_EQ(transfer(0), Duration::Us(80));
  EXPECT_EQ(transfer(1), Duration::Us(20));
}

TEST(RepeatStep, TakesAsManyAsStepsCanBeNumbered) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Launch(cpu, gpu, "k", 0, 5, 8, 10);
  const BuiltGraph built = Build(s);
  EXPECT_TRUE(RepeatStep(built.graph, 0, kMostCopies).ok());
  EXPECT_FALSE(RepeatStep(built.graph, 0, kMostCopies + 1).ok());
}

}  // namespace
}  // namespace daydream
