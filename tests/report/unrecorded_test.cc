// What recording cost is taken out of the host's time: programs as they are recorded, and as they
// are without, of which every time is known. Times are in microseconds.
#include "graph/recording_cost.h"

#include <gtest/gtest.h>

#include <random>

#include "report/predict/profiler_note.h"
#include "report/predict/unrecorded.h"
#include "report/windows.h"
#include "tests/graph/built_sketch.h"
#include "trace/range_names.h"

namespace daydream {
namespace {

constexpr double kCall = 3, kWork = 1, kMark = 0.5;

RecordingCost Cost(double error_ns = 10) {
  return {.steps_with = 9,
          .steps_without = 9,
          .call = RecordingCost::Each{kCall * 1000, error_ns},
          .work = RecordingCost::Each{kWork * 1000, error_ns},
          .layer_mark = RecordingCost::Each{kMark * 1000, error_ns}};
}

BuiltGraph BuildWith(TraceSketch& sketch, const RecordingCost& cost) {
  Trace trace = *sketch.Build();
  trace.provenance.cost = cost;
  absl::StatusOr<BuiltGraph> built = BuildGraph(std::make_shared<const Trace>(std::move(trace)));
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

// Steps of four launches, each with `host` us before it, and a wait for all. Recorded, GPU work
// makes its call longer and a call what comes after it.
BuiltGraph Steps(bool recorded, double host = 20, double kernel = 2, int steps = 6) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  const double work = recorded ? kWork : 0, call = recorded ? kCall : 0;
  double now = 0, gpu_free = 0;
  uint32_t correlation = 1;
  for (int step = 0; step < steps; ++step) {
    const double begin = now;
    for (int i = 0; i < 4; ++i) {
      now += host;
      const double length = 5 + work;
      const double start = std::max(now + length + 4, gpu_free);
      s.Call(cpu, "cudaLaunchKernel", now, length, correlation);
      s.Kernel(gpu, "k", start, kernel, correlation++);
      gpu_free = start + kernel;
      now += length + call;
    }
    const double end = std::max(now + 2, gpu_free + 2);
    s.Call(cpu, "cudaStreamSynchronize", now, end - now, correlation++);
    now = end + call;
    s.Mark(cpu, fmt::format("{}{}", kStepRange, step), begin, now - begin);
  }
  return BuildWith(s, recorded ? Cost() : RecordingCost());
}

Duration StepOf(const Graph& graph) { return StepTime(graph, Play(graph)); }

TEST(Unrecorded, WithoutItTheHostTakesWhatItTakesWhenNobodyRecords) {
  const BuiltGraph without = Steps(false);
  BuiltGraph built = Steps(true);
  ASSERT_GT(StepOf(built.graph), StepOf(without.graph) + Duration::Us(15));
  const CostTaken taken = TakeOffRecordingCost(CostOfEachIn(built.graph), built.graph);
  EXPECT_EQ(StepOf(built.graph), StepOf(without.graph));
  ASSERT_EQ(built.graph.size(), without.graph.size());
  for (size_t i = 0; i < built.graph.size(); ++i) {
    const TaskId t(i);
    EXPECT_EQ(built.graph.task(t).duration, without.graph.task(t).duration) << i;
    EXPECT_EQ(built.graph.task(t).gap, without.graph.task(t).gap) << i;
  }
  EXPECT_EQ(taken.calls, 6 * 5u);
  EXPECT_EQ(taken.work, 6 * 4u);
  EXPECT_EQ(taken.not_taken, Duration::FromDouble(kCall * 1000)) << "nothing follows the last call";
  // Of the five steps that count, the last has nothing after its last call.
  EXPECT_EQ(taken.in_step, Duration::FromDouble((5 * kCall + 4 * kWork - kCall / 5) * 1000));
  EXPECT_TRUE(Validate(built.graph).ok()) << Validate(built.graph);
}

TEST(Unrecorded, AThreadThatWaitsForTheGpuWaitsForItAllTheSame) {
  const BuiltGraph without = Steps(false, 1, 100);
  BuiltGraph built = Steps(true, 1, 100);
  const Duration recorded = StepOf(built.graph);
  TakeOffRecordingCost(CostOfEachIn(built.graph), built.graph);
  // The first launch follows a call that is recorded; all others hide behind 100 us of GPU work.
  EXPECT_EQ(StepOf(built.graph), StepOf(without.graph));
  EXPECT_GT(StepOf(built.graph), recorded - Duration::Us(2 * (kCall + kWork)));
}

// Kernels that begin while their launch returns, and are over before the next one: nothing between
// them is learned from how far apart recording kept them.
TEST(Unrecorded, ShortKernelsWithoutHostWorkAreNotKeptApart) {
  constexpr double kLaunch = 0.6, kKernel = 0.1, kOwn = 6;
  const auto steps = [&](double call, double work) {
    TraceSketch s;
    const LaneId cpu = s.Thread(), gpu = s.Stream();
    double now = 0;
    uint32_t correlation = 1;
    for (int step = 0; step < 12; ++step) {
      const double begin = now;
      for (int i = 0; i < 10; ++i) {
        s.Call(cpu, "cuLaunchKernel", now, kLaunch + work, correlation);
        s.Kernel(gpu, "k", now + 0.3, kKernel, correlation++);
        now += kLaunch + work + call;
      }
      s.Mark(cpu, fmt::format("{}{}", kStepRange, step), begin, now - begin);
    }
    RecordingCost cost;
    if (call > 0) cost.call = RecordingCost::Each{call * 1000, 10};
    if (work > 0) cost.work = RecordingCost::Each{work * 1000, 10};
    return BuildWith(s, cost);
  };
  for (const auto& [call, work] : {std::pair(0.0, 0.0), {3, 1}, {10, 2}, {40, 20}}) {
    BuiltGraph built = steps(call, work);
    TakeOffRecordingCost(CostOfEachIn(built.graph), built.graph);
    EXPECT_NEAR(StepOf(built.graph).us(), kOwn, 0.1 * kOwn) << call << " us a call";
  }
}

TEST(Unrecorded, NoTimeBecomesNegativeAndWhatIsLeftIsTold) {
  BuiltGraph built = Steps(true);
  const CostTaken taken = TakeOffRecordingCost({.call = 50'000, .work = 9'000}, built.graph);
  Duration left;
  for (const Task& task : built.graph.tasks()) {
    EXPECT_GE(task.duration, Duration{});
    EXPECT_GE(task.gap, Duration{});
    if (IsHost(task.kind)) left += task.gap;
  }
  EXPECT_EQ(left, Duration{}) << "all of it was taken";
  EXPECT_EQ(taken.taken + taken.not_taken, Duration::Us(6 * 5 * 50 + 6 * 4 * 9));
  EXPECT_TRUE(Validate(built.graph).ok()) << Validate(built.graph);
}

TEST(Unrecorded, MarksOfLayersAreTakenFromWhereTheyLie) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Mark(cpu, fmt::format("{}0", kStepRange), 0, 100);
  s.Frame(cpu, "net.first", 10, 30);
  s.Launch(cpu, gpu, "k", 20, 5, 30, 2);
  s.Launch(cpu, gpu, "k", 60, 5, 70, 2);
  BuiltGraph built = BuildWith(s, Cost());
  const CostTaken taken = TakeOffRecordingCost({.layer_mark = 500}, built.graph);
  EXPECT_EQ(taken.layer_marks, 2u);
  EXPECT_EQ(taken.taken, Duration::Us(1));
  const Timeline t = Play(built.graph);
  const TaskId first = Find(built.graph, "cudaLaunchKernel", TaskKind::kCall, 0);
  const TaskId second = Find(built.graph, "cudaLaunchKernel", TaskKind::kCall, 1);
  EXPECT_EQ(t.start[first.index()], Instant::AtNs(19'500)) << "one mark comes before it";
  EXPECT_EQ(t.start[second.index()], Instant::AtNs(59'000));
}

TEST(Unrecorded, ADriverCallInACallAndEachKernelOfAGraphCostTheirOwn) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Mark(cpu, fmt::format("{}0", kStepRange), 0, 200);
  s.Call(cpu, "cudaLaunchKernel", 10, 20, 1);
  s.Call(cpu, "cuLaunchKernel", 12, 15, 1);
  s.Kernel(gpu, "k", 40, 2, 1);
  s.Call(cpu, "cudaGraphLaunch", 60, 20, 2);
  for (int i = 0; i < 5; ++i) s.Kernel(gpu, "in_graph", 90 + 3 * i, 2, 2);
  BuiltGraph built = BuildWith(s, Cost());
  const CostTaken taken = TakeOffRecordingCost(CostOfEachIn(built.graph), built.graph);
  EXPECT_EQ(taken.calls, 3u);
  EXPECT_EQ(taken.work, 6u);
  const Graph& g = built.graph;
  EXPECT_EQ(g.task(Find(g, "cudaLaunchKernel", TaskKind::kCall)).duration, Duration::Us(19));
  EXPECT_EQ(g.task(Find(g, "cudaGraphLaunch", TaskKind::kCall)).duration, Duration::Us(15));
  EXPECT_EQ(taken.taken, Duration::Us(3 * kCall + 6 * kWork));
}

TEST(Unrecorded, WhatIsNotToldOrWithinItsErrorStaysIn) {
  BuiltGraph built = Steps(false);
  EXPECT_FALSE(CostOfEachIn(built.graph).any());
  const Graph before = built.graph;
  EXPECT_FALSE(LeaveOutRecording(built.graph).value().has_value());
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(built.graph.task(TaskId(i)).duration, before.task(TaskId(i)).duration);
    EXPECT_EQ(built.graph.task(TaskId(i)).gap, before.task(TaskId(i)).gap);
  }
  TraceSketch s;
  s.Launch(s.Thread(), s.Stream(), "k", 0, 5, 7, 10);
  RecordingCost cost = Cost(kWork * 1000);
  const CostOfEach each = CostOfEachIn(BuildWith(s, cost).graph);
  EXPECT_EQ(each.call, kCall * 1000);
  EXPECT_EQ(each.work, 0);
  EXPECT_EQ(each.layer_mark, 0);
}

TEST(Unrecorded, ErrorsOfTheCostsAreThoseOfTheStep) {
  BuiltGraph built = Steps(true);
  const Duration recorded = StepOf(built.graph);
  const auto unrecorded = LeaveOutRecording(built.graph);
  ASSERT_TRUE(unrecorded.ok() && unrecorded->has_value());
  const Unrecorded& u = **unrecorded;
  EXPECT_EQ(u.step, StepOf(built.graph));
  EXPECT_EQ(u.step, StepOf(Steps(false).graph));
  // 5 calls and 4 kernels with 10 ns each; the last of five steps ends with its GPU work.
  EXPECT_NEAR(static_cast<double>((u.longest - u.step).ns), 90, 10);
  EXPECT_NEAR(static_cast<double>((u.step - u.shortest).ns), 90, 10);
  EXPECT_LT(u.longest, recorded);
}

TEST(Unrecorded, AStepThatWasInterruptedDoesNotContradictWhatWasMeasured) {
  Prediction baseline;
  baseline.confidence = Confidence::kMeasured;
  baseline.steps.assign(13, Duration::Us(6));
  baseline.steps.push_back(Duration::Us(146));
  const Unrecorded told{.taken = {},
                        .step = Duration::Us(16),
                        .shortest = Duration::Us(15),
                        .longest = Duration::Us(17),
                        .measured = Duration::Us(6)};
  TellUnrecorded(told, baseline);
  EXPECT_EQ(baseline.confidence, Confidence::kMeasured);
  EXPECT_NE(baseline.why.find("the median of the replayed steps is 6.0 us"), std::string::npos)
      << baseline.why;
  std::fill(baseline.steps.begin(), baseline.steps.end(), Duration::Us(16));
  TellUnrecorded(told, baseline);
  EXPECT_EQ(baseline.confidence, Confidence::kMedium);
}

TEST(Unrecorded, RandomProgramsKeepTheirTimesAndLoseWhatIsOwed) {
  std::mt19937 random(20);
  const auto to = [&](double most) { return std::uniform_real_distribution(0.0, most)(random); };
  for (int round = 0; round < 200; ++round) {
    TraceSketch s;
    const LaneId cpu = s.Thread(), other = s.Thread(101), gpu = s.Stream();
    double now[2] = {0, 0}, gpu_free = 0;
    uint32_t calls = 0;
    for (int i = 0; i < 40; ++i) {
      const int thread = random() % 2;
      const LaneId lane = thread == 0 ? cpu : other;
      now[thread] += to(20);
      if (random() % 4 == 0) s.Frame(lane, "net.layer", now[thread], 1 + to(2)), now[thread] += 4;
      const double length = 1 + to(10), start = std::max(now[thread] + length, gpu_free) + to(5);
      s.Call(lane, "cudaLaunchKernel", now[thread], length, ++calls);
      s.Kernel(gpu, "k", start, 1 + to(10), calls);
      gpu_free = start + 11;
      now[thread] += length;
    }
    BuiltGraph built = BuildWith(s, Cost());
    const Graph before = built.graph;
    const CostOfEach each = {.call = to(9000), .work = to(4000), .layer_mark = to(2000)};
    const CostTaken taken = TakeOffRecordingCost(each, built.graph);
    ASSERT_TRUE(Validate(built.graph).ok()) << Validate(built.graph);
    Duration lost;
    for (size_t i = 0; i < before.size(); ++i) {
      const Task &was = before.task(TaskId(i)), &is = built.graph.task(TaskId(i));
      ASSERT_GE(is.duration, Duration{});
      ASSERT_LE(is.duration, was.duration);
      ASSERT_LE(is.gap, was.gap);
      if (IsGpu(was.kind)) {
        ASSERT_EQ(is.duration, was.duration);
      }
      lost += was.duration - is.duration;
      if (IsHost(was.kind)) {
        ASSERT_GE(is.gap, Duration{});
        lost += was.gap - is.gap;
      }
    }
    EXPECT_EQ(lost, taken.taken);
    EXPECT_EQ(taken.calls, calls);
    EXPECT_EQ(taken.work, calls);
    const double owed = static_cast<double>(calls) * (each.call + each.work) +
                        static_cast<double>(taken.layer_marks) * each.layer_mark;
    EXPECT_NEAR(static_cast<double>((taken.taken + taken.not_taken).ns), owed, 4);
    EXPECT_LE(StepOf(built.graph), StepOf(before) + Duration::Us(40)) << "rules may keep order";
  }
}

}  // namespace
}  // namespace daydream
