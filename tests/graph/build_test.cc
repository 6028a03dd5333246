// Each dependency rule on a trace small enough to check by hand. Times are in microseconds.
#include <gtest/gtest.h>

#include "tests/graph/built_sketch.h"

namespace daydream {
namespace {

TEST(HostRule, ThreadIsAChainWithoutHoles) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Mark(cpu, "ProfilerStep#1", 0, 100);
  s.Op(cpu, "aten::linear", 10, 50);
  s.Op(cpu, "aten::addmm", 15, 40);
  s.Launch(cpu, gpu, "sgemm", 20, 10, 32, 40);
  BuiltGraph built = Build(s);
  Duration total;
  for (const Task& task : built.graph.tasks()) {
    if (IsHost(task.kind)) total += task.duration + task.gap;
  }
  EXPECT_EQ(total, Duration::Us(100)) << "from the begin of the mark to its end";
  ExpectReplaysExactly(built.graph);
}

TEST(HostRule, DriverCallInsideRuntimeCallIsOneTask) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Op(cpu, "aten::mm", 0, 30);
  s.Call(cpu, "cudaLaunchKernel", 5, 10, 1);
  s.Call(cpu, "cuLaunchKernel", 6, 8, 1);
  s.Kernel(gpu, "sgemm", 18, 20, 1);
  BuiltGraph built = Build(s);
  EXPECT_EQ(built.report.nested_calls, 1u);
  EXPECT_EQ(built.report.launched, 1u);
  int calls = 0;
  for (const Task& task : built.graph.tasks()) calls += task.kind == TaskKind::kCall;
  EXPECT_EQ(calls, 1);
}

TEST(HostRule, ThreadsThatOnlyPollAreLeftOutAndCounted) {
  TraceSketch s;
  LaneId cpu = s.Thread(), watchdog = s.Thread(200), gpu = s.Stream();
  s.Launch(cpu, gpu, "k", 0, 5, 7, 10);
  s.Call(watchdog, "cudaEventQuery", 3, 1, 5);
  BuiltGraph built = Build(s);
  EXPECT_EQ(built.report.threads_left_out, 1u);
  EXPECT_EQ(built.report.events_left_out, 1u);
}

TEST(LaunchRule, KernelWaitsForTheEndOfItsCall) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Launch(cpu, gpu, "first", 0, 2000, 2004, 10);  // loads a module: 2 ms of own work
  s.Launch(cpu, gpu, "second", 2050, 5, 2059, 10);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  SetDuration(g, Find(g, "cudaLaunchKernel", TaskKind::kCall), 5);
  Timeline t = Play(g);
  EXPECT_EQ(EndUs(t, Find(g, "first", TaskKind::kKernel)), 5 + 4 + 10);
}

// Windows of one program that were put together: the second one begins at another number.
TEST(LaunchRule, NumbersFarFromTheOthersAreFoundToo) {
  TraceSketch sketch;
  const LaneId cpu = sketch.Thread(), gpu = sketch.Stream();
  for (uint32_t number : {7u, 3'000'000'000u}) {
    const double at = number == 7 ? 0 : 100;
    sketch.Call(cpu, "cudaLaunchKernel", at, 5, number);
    sketch.Kernel(gpu, "gemm", at + 8, 10, number);
  }
  const auto built = BuildGraph(sketch.Build());
  ASSERT_TRUE(built.ok()) << built.status();
  const auto& edges = built->graph.edges();
  EXPECT_EQ(std::count_if(edges.begin(), edges.end(),
                          [](const Edge& e) { return e.rule == Rule::kLaunch; }),
            2);
}

TEST(LaunchRule, KernelsBeforeTheirCallsAreReported) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Launch(cpu, gpu, "k", 200, 5, 1, 10);
  BuiltGraph built = Build(s);
  EXPECT_EQ(built.report.early, 1u);
}

TEST(LaunchRule, AGpuWhoseClockIsLateIsReported) {
  // Twelve kernels, each of a GPU at rest: 3 ms behind its launch and up to so much more, or one
  // of them at once.
  const auto late_by = [](double more, double last) {
    TraceSketch s;
    LaneId cpu = s.Thread(), gpu = s.Stream();
    for (int i = 0; i < 12; ++i) {
      const double at = 9000 * i, behind = i == 11 ? last : 3000 + more * i / 10;
      s.Launch(cpu, gpu, "k", at, 5, at + 5 + behind, 10);
    }
    return Build(s).report.late;
  };
  EXPECT_EQ(late_by(10, 3000), Duration::Us(3000));
  EXPECT_EQ(late_by(10, 5), Duration{}) << "a clock is late for all of them";
  EXPECT_EQ(late_by(4000, 3000), Duration{}) << "the host is ahead";
}

TEST(StreamRule, BackToBackKernelsKeepAGap) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Launch(cpu, gpu, "a", 0, 5, 8, 100);
  s.Launch(cpu, gpu, "b", 6, 5, 110, 100);
  BuiltGraph built = Build(s);
  EXPECT_EQ(built.graph.task(Find(built.graph, "a", TaskKind::kKernel)).gap, Duration::Us(2));
  ExpectReplaysExactly(built.graph);
}

TEST(StreamRule, OverlappingKernelsKeepOnlyTheOrderOfTheirStarts) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Launch(cpu, gpu, "long", 0, 5, 8, 100);
  s.Launch(cpu, gpu, "beside", 6, 5, 14, 20);
  s.Launch(cpu, gpu, "after", 12, 5, 109, 10);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  EXPECT_TRUE(g.task(Find(g, "beside", TaskKind::kKernel)).overlaps);
  ExpectReplaysExactly(g);
  SetDuration(g, Find(g, "long", TaskKind::kKernel), 200);
  Timeline t = Play(g);
  EXPECT_EQ(EndUs(t, Find(g, "beside", TaskKind::kKernel)), 34);
  EXPECT_EQ(EndUs(t, Find(g, "after", TaskKind::kKernel)), 8 + 200 + 1 + 10);
}

TEST(StreamRule, ProgrammaticLaunchKeepsItsSmallOverlap) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Launch(cpu, gpu, "a", 0, 5, 8, 50);
  s.Launch(cpu, gpu, "b", 6, 5, 55, 50);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  EXPECT_EQ(g.task(Find(g, "a", TaskKind::kKernel)).gap, Duration::Us(-3));
  SetDuration(g, Find(g, "a", TaskKind::kKernel), 150);
  EXPECT_EQ(EndUs(Play(g), Find(g, "b", TaskKind::kKernel)), 8 + 150 - 3 + 50);
}

TEST(BlockingRule, DeviceSynchronizeReturnsEarlierWhenTheKernelIsFaster) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Launch(cpu, gpu, "k", 0, 5, 8, 100);
  s.Call(cpu, "cudaDeviceSynchronize", 10, 102, 1);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  TaskId sync = Find(g, "cudaDeviceSynchronize", TaskKind::kCall);
  EXPECT_EQ(g.task(sync).duration, Duration::Us(4)) << "own work: the return after the kernel";
  ExpectReplaysExactly(g);
  SetDuration(g, Find(g, "k", TaskKind::kKernel), 20);
  EXPECT_EQ(EndUs(Play(g), sync), 8 + 20 + 4);
  SetDuration(g, Find(g, "k", TaskKind::kKernel), 0);
  EXPECT_EQ(EndUs(Play(g), sync), 10 + 4);
}

TEST(BlockingRule, ReadingAValueSplitsIntoSubmitAndWait) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Launch(cpu, gpu, "k", 0, 5, 8, 100);
  s.Call(cpu, "cudaMemcpyAsync", 10, 110, 1);
  s.Copy(gpu, Memory::kDevice, Memory::kPageable, 4, 109, 2, 1);
  s.Call(cpu, "cudaStreamSynchronize", 121, 3, 2);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  ExpectReplaysExactly(g);
  SetDuration(g, Find(g, "k", TaskKind::kKernel), 1000);
  Timeline t = Play(g);
  EXPECT_EQ(EndUs(t, Find(g, "cudaMemcpyAsync", TaskKind::kWait)), 8 + 1000 + 1 + 2 + 9);
  EXPECT_GE(EndUs(t, Find(g, "cudaStreamSynchronize", TaskKind::kCall)), 8 + 1000 + 1 + 2);
}

TEST(BlockingRule, StagedUploadReturnsBeforeItsCopyEnds) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Launch(cpu, gpu, "k", 0, 5, 8, 2);
  s.Call(cpu, "cudaMemcpyAsync", 20, 1000, 1);
  s.Copy(gpu, Memory::kPageable, Memory::kDevice, 10 << 20, 30, 1030, 1);
  s.Op(cpu, "aten::relu", 1020, 5);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  ExpectReplaysExactly(g);
  SetDuration(g, Find(g, "Memcpy", TaskKind::kMemcpy), 500);
  EXPECT_EQ(EndUs(Play(g), Find(g, "cudaMemcpyAsync", TaskKind::kWait)), 30 + 500 - 40);
}

// The first operation of a stream may follow others that were launched before the recording, so how
// long its copy waited is no measure of how long a copy takes to submit.
TEST(BlockingRule, AnUploadThatTheRecordingBeginsWithTellsNothingOfOthers) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Call(cpu, "cudaMemcpyAsync", 0, 1000, 1);
  s.Copy(gpu, Memory::kPageable, Memory::kDevice, 10 << 20, 900, 100, 1);
  s.Launch(cpu, gpu, "k", 1010, 5, 1020, 1000);
  s.Call(cpu, "cudaMemcpyAsync", 1030, 1100, 2);
  s.Copy(gpu, Memory::kPageable, Memory::kDevice, 10 << 20, 2025, 100, 2);
  s.Op(cpu, "aten::relu", 2140, 5);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  ExpectReplaysExactly(g);
  SetDuration(g, Find(g, "k", TaskKind::kKernel), 500);
  EXPECT_EQ(EndUs(Play(g), Find(g, "aten::relu", TaskKind::kHost)), 2145 - 500);
}

TEST(BlockingRule, PinnedCopiesDoNotBlock) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Call(cpu, "cudaMemcpyAsync", 0, 60, 1);
  s.Copy(gpu, Memory::kPinned, Memory::kDevice, 10 << 20, 10, 500, 1);
  s.Op(cpu, "aten::relu", 60, 5);
  BuiltGraph built = Build(s);
  EXPECT_EQ(built.report.blocking_calls, 0u);
}

// Forward on the main thread, backward on the engine's thread, optimizer on the main thread.
TraceSketch TrainingStep(
    std::string_view backward = "autograd::engine::evaluate_function: AddmmBackward0",
    int64_t forward_thread = -1) {
  TraceSketch s;
  LaneId main = s.Thread(), engine = s.Thread(200), gpu = s.Stream();
  s.Mark(main, "ProfilerStep#1", 0, 1000);
  s.Op(main, "aten::linear", 0, 100, 1);
  s.Launch(main, gpu, "forward", 10, 5, 18, 50);
  s.Op(engine, backward, 150, 200, 1, "", forward_thread);
  s.Launch(engine, gpu, "backward", 160, 5, 168, 50);
  s.Mark(main, "Optimizer.step#SGD.step", 400, 100);
  s.Op(main, "aten::add_", 400, 100);
  s.Launch(main, gpu, "update", 420, 5, 428, 50);
  return s;
}

TEST(HandOffRule, TheForwardThreadOfAnOperatorTellsThatItRunsBackward) {
  TraceSketch known = TrainingStep("renamed", 1), unknown = TrainingStep("renamed", 0);
  EXPECT_EQ(Build(known).report.handoffs, 1u);
  EXPECT_EQ(Build(unknown).report.handoffs, 0u);
}

TEST(HandOffRule, BackwardFollowsForwardAndTheCallerWaitsForIt) {
  TraceSketch s = TrainingStep();
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  EXPECT_EQ(built.report.handoffs, 1u);
  ExpectReplaysExactly(g);
  // 60 us less host work in forward move everything after it by 60 us.
  for (size_t i = 0; i < g.size(); ++i) {
    Task& task = g.mutable_task(TaskId(i));
    if (g.TaskName(TaskId(i)) == "aten::linear" && task.duration > Duration::Us(60)) {
      task.duration -= Duration::Us(60);
    }
  }
  Timeline t = Play(g);
  EXPECT_EQ(EndUs(t, Find(g, "update", TaskKind::kKernel)), 478 - 60);
}

TEST(HandOffRule, WaitingIsNotWork) {
  TraceSketch s = TrainingStep();
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  for (size_t i = 0; i < g.size(); ++i) {
    if (g.task(TaskId(i)).phase == Phase::kBackward) g.mutable_task(TaskId(i)).duration = {};
  }
  EXPECT_EQ(EndUs(Play(g), Find(g, "update", TaskKind::kKernel)), 478 - 200);
}

TEST(EventRule, SynchronizationRecordsNameTheAwaitedStream) {
  TraceSketch s;
  LaneId cpu = s.Thread(), a = s.Stream(7), b = s.Stream(20);
  s.Launch(cpu, a, "produce", 0, 5, 8, 100);
  s.Call(cpu, "cudaEventRecord", 6, 1, 50);
  s.Call(cpu, "cudaStreamWaitEvent", 8, 1, 51);
  s.Sync(b,
         {.kind = SyncKind::kStreamWaitEvent,
          .stream = 20,
          .wait_on_stream = 7,
          .record_correlation = 50},
         8, 51);
  s.Launch(cpu, b, "consume", 10, 5, 110, 10);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  EXPECT_EQ(built.report.event_waits, 1u);
  ExpectReplaysExactly(g);
  SetDuration(g, Find(g, "produce", TaskKind::kKernel), 300);
  EXPECT_EQ(EndUs(Play(g), Find(g, "consume", TaskKind::kKernel)), 8 + 300 + 2 + 10);
}

TEST(EventRule, CollectiveWaitsForComputeAndLaterComputeForTheCollective) {
  TraceSketch s;
  LaneId main = s.Thread(), engine = s.Thread(200), a = s.Stream(7), comm = s.Stream(20);
  s.Op(main, "aten::linear", 0, 5, 1);
  s.Op(engine, "autograd::engine::evaluate_function: AddmmBackward0", 50, 60, 1);
  s.Launch(engine, a, "gradient", 52, 5, 60, 100);
  s.Op(engine, "record_param_comms", 70, 20);
  s.Call(engine, "cudaStreamWaitEvent", 72, 1, 60);
  s.Launch(engine, comm, "ncclKernel_AllReduce", 75, 5, 162, 200);
  s.Op(engine, "autograd::engine::evaluate_function: Join", 120, 20, 2);
  s.Call(engine, "cudaStreamWaitEvent", 122, 1, 61);
  s.Launch(engine, a, "after", 125, 5, 363, 10);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  EXPECT_EQ(built.report.event_waits, 2u);
  ExpectReplaysExactly(g);
  SetDuration(g, Find(g, "gradient", TaskKind::kKernel), 400);
  Timeline t = Play(g);
  EXPECT_EQ(EndUs(t, Find(g, "after", TaskKind::kKernel)), 60 + 400 + 2 + 200 + 1 + 10);
}

TEST(StartRule, WaitingForProcessorsScalesWithTheirHolder) {
  TraceSketch s;
  LaneId cpu = s.Thread(), a = s.Stream(7), b = s.Stream(20);
  s.Launch(cpu, a, "holder", 0, 5, 8, 500);
  s.Launch(cpu, b, "side", 20, 5, 509, 10);
  BuiltGraph built = Build(s);
  Graph& g = built.graph;
  EXPECT_EQ(built.report.contended, 1u);
  TaskId delay = Find(g, "(waits for SMs)", TaskKind::kDelay);
  EXPECT_EQ(TaskId(g.task(delay).detail), Find(g, "holder", TaskKind::kKernel));
  ExpectReplaysExactly(g);
}

TEST(StartRule, WhatNoRuleExplainsIsCountedAndKept) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Launch(cpu, gpu, "a", 0, 5, 8, 10);
  s.Launch(cpu, gpu, "late", 20, 5, 800, 10);
  BuiltGraph built = Build(s);
  EXPECT_EQ(built.report.unexplained, 1u);
  EXPECT_GT(built.report.unexplained_time, Duration::Us(700));
  ExpectReplaysExactly(built.graph);
}

TEST(StartRule, TypicalLagsDropUnexplainedDelays) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Launch(cpu, gpu, "a", 0, 5, 8, 10);
  s.Launch(cpu, gpu, "late", 20, 5, 800, 10);
  BuiltGraph built = Build(s, {.lags = Lags::kTypical});
  EXPECT_LT(EndUs(Play(built.graph), Find(built.graph, "late", TaskKind::kKernel)), 810 - 1);
}

TEST(CollectiveRule, ShortestOfEqualCollectivesBoundsTheTransfer) {
  TraceSketch s;
  LaneId cpu = s.Thread(), comm = s.Stream(20);
  double us = 0;
  uint32_t correlation = 0;
  for (double length : {500.0, 80.0, 300.0, 90.0}) {
    s.Call(cpu, "cudaLaunchKernel", us, 5, ++correlation);
    s.Collective(comm, "ncclKernel_AllReduce", us + 8, length, correlation, "all");
    us += length + 20;
  }
  BuiltGraph built = Build(s);
  TaskId first = Find(built.graph, "ncclKernel_AllReduce", TaskKind::kCollective);
  EXPECT_EQ(built.graph.Transfer(first), Duration::Us(80));
}

TEST(MapperRule, BackwardWorkHasTheLayerOfItsForwardOp) {
  TraceSketch s = TrainingStep();
  BuiltGraph built = Build(s);
  const Graph& g = built.graph;
  const Task& forward = g.task(Find(g, "forward", TaskKind::kKernel));
  const Task& backward = g.task(Find(g, "backward", TaskKind::kKernel));
  EXPECT_EQ(forward.phase, Phase::kForward);
  EXPECT_EQ(backward.phase, Phase::kBackward);
  EXPECT_EQ(g.task(Find(g, "update", TaskKind::kKernel)).phase, Phase::kOptimizer);
  ASSERT_TRUE(forward.layer.valid());
  EXPECT_EQ(forward.layer, backward.layer);
  EXPECT_EQ(g.Name(g.layers()[forward.layer.index()].name), "linear #1");
  EXPECT_EQ(built.report.mapped_kernel_time, built.report.kernel_time);
}

TEST(StepRule, PeriodFollowsTheGpuWhileTheHostRunsAhead) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 4; ++i) {
    s.Mark(cpu, fmt::format("ProfilerStep#{}", i), i * 20, 20);  // the host runs ahead
    s.Launch(cpu, gpu, "k", i * 20 + 2, 5, 10 + i * 100, 99);
  }
  BuiltGraph built = Build(s);
  EXPECT_EQ(built.graph.steps()[2].recorded_period, Duration::Us(100));
  EXPECT_EQ(StepTime(built.graph, Play(built.graph)), Duration::Us(100));
}

TEST(StepRule, WorkFromBeforeTheRecordingIsNoPartOfItsOnlyStep) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Mark(cpu, "ProfilerStep#7", 0, 35);
  s.Kernel(gpu, "old", 0, 90, 1);  // its call was made before
  s.Launch(cpu, gpu, "k", 2, 5, 90, 95);
  BuiltGraph built = Build(s);
  EXPECT_EQ(built.graph.steps()[0].label, "(before the first step)");
  EXPECT_EQ(built.graph.task(Find(built.graph, "old", TaskKind::kKernel)).step, 0);
  EXPECT_EQ(StepTime(built.graph, Play(built.graph)), Duration::Us(95));
  EXPECT_EQ(built.graph.steps()[1].recorded_period, Duration::Us(95));
}

TEST(StepRule, AnOnlyStepThatItsHostBoundsLastsAsLongAsItsMark) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Mark(cpu, "ProfilerStep#7", 0, 150);
  s.Launch(cpu, gpu, "k", 5, 5, 12, 80);
  BuiltGraph built = Build(s);
  EXPECT_EQ(StepTime(built.graph, Play(built.graph)), Duration::Us(150));
  SetDuration(built.graph, Find(built.graph, "k", TaskKind::kKernel), 400);
  EXPECT_EQ(StepTime(built.graph, Play(built.graph)), Duration::Us(400)) << "now its GPU does";
}

TEST(StepRule, AnOnlyStepThatEndsWithItsGpuWaitedForIt) {
  for (const double after : {10.0, 50.0}) {
    TraceSketch s;
    const LaneId cpu = s.Thread(), gpu = s.Stream();
    s.Mark(cpu, "ProfilerStep#7", 0, 212 + after);
    s.Launch(cpu, gpu, "k", 5, 5, 12, 200);
    BuiltGraph built = Build(s);
    SetDuration(built.graph, Find(built.graph, "k", TaskKind::kKernel), 100);
    EXPECT_EQ(StepTime(built.graph, Play(built.graph)), Duration::Us(after == 10 ? 100 : 262));
  }
}

// Kernels before the first mark end at 210 us, those of the two steps at 330 and 430. The launches
// before were done at 20 us: a host that worked since then needs that time for its steps, one that
// waited for the kernels does not.
TEST(StepRule, AHostThatWaitedForTheGpuLaunchedEarlyBeforeThat) {
  for (const bool waits : {false, true}) {
    TraceSketch s;
    const LaneId cpu = s.Thread(), gpu = s.Stream();
    for (int i = 0; i < 2; ++i) s.Launch(cpu, gpu, "k", 10 * i, 5, 10 + 100 * i, 100);
    if (waits) {
      s.Call(cpu, "cudaStreamSynchronize", 20, 195);
    } else {
      s.Op(cpu, "aten::stack", 20, 195);
    }
    for (int i = 0; i < 2; ++i) {
      s.Mark(cpu, fmt::format("ProfilerStep#{}", i), 215 + 20 * i, 20);
      s.Launch(cpu, gpu, "k", 216 + 20 * i, 5, 230 + 100 * i, 100);
    }
    const BuiltGraph built = Build(s);
    EXPECT_TRUE(built.graph.steps()[1].host_led);
    EXPECT_EQ(built.graph.steps()[1].host_waited, waits);
    const Duration step = StepTime(built.graph, Play(built.graph));
    if (waits) {
      EXPECT_EQ(step, Duration::Us(110)) << "from 210 to 430";
    } else {
      EXPECT_GT(step, Duration::Us(112)) << "between launches";
    }
  }
}

TEST(StepRule, OfTwoStepsBothCount) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 2; ++i) {
    s.Mark(cpu, fmt::format("ProfilerStep#{}", i), i * 100, 100);
    s.Launch(cpu, gpu, "k", i * 100 + 5, 5, i * 100 + 12, i == 0 ? 80 : 90);
  }
  BuiltGraph built = Build(s);
  ASSERT_EQ(built.graph.steps().size(), 4u);
  EXPECT_TRUE(built.graph.steps()[1].measured && built.graph.steps()[2].measured);
  EXPECT_EQ(built.graph.steps()[1].recorded_period, Duration::Us(100));
  EXPECT_EQ(built.graph.steps()[2].recorded_period, Duration::Us(202 - 92));
}

TEST(StepRule, AStreamRunsWhatHasNoCallBetweenTheStepsOfItsNeighbours) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 4; ++i) {
    s.Mark(cpu, fmt::format("ProfilerStep#{}", i), i * 20, 20);  // the host runs ahead
    s.Launch(cpu, gpu, "k", i * 20 + 2, 5, 10 + i * 100, 50);
    s.Kernel(gpu, fmt::format("lost{}", i), 61 + i * 100, 30);
    s.Launch(cpu, gpu, "l", i * 20 + 8, 5, 92 + i * 100, 10);
  }
  BuiltGraph built = Build(s);
  for (int i = 0; i < 4; ++i) {
    const TaskId lost = Find(built.graph, fmt::format("lost{}", i), TaskKind::kKernel);
    EXPECT_EQ(built.graph.task(lost).step, i);
  }
}

TEST(StepRule, MoreStepsThanCanBeNumberedAreNotCounted) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 70000; ++i) s.Mark(cpu, fmt::format("ProfilerStep#{}", i), i * 2, 2);
  s.Launch(cpu, gpu, "k", 139990, 1, 139992, 2);
  BuiltGraph built = Build(s);
  EXPECT_EQ(built.graph.steps().back().label, "(further steps)");
  EXPECT_FALSE(built.graph.steps().back().measured);
  EXPECT_FALSE(built.report.warnings.empty());
}

TEST(BuildGraph, SaysWhatIsMissing) {
  TraceSketch cpu_only;
  cpu_only.Op(cpu_only.Thread(), "aten::mm", 0, 10);
  EXPECT_EQ(DiagnosticOf(BuildGraph(cpu_only.Build()).status()).code, "E0301");
  TraceSketch gpu_only;
  gpu_only.Kernel(gpu_only.Stream(), "k", 0, 10);
  EXPECT_EQ(DiagnosticOf(BuildGraph(gpu_only.Build()).status()).code, "E0302");
}

}  // namespace
}  // namespace daydream
