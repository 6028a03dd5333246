// The only step of a recording takes what it takes again and again.
#include "simulator/lone_step.h"

#include <gtest/gtest.h>

#include "graph/repeat.h"
#include "graph/text.h"
#include "simulator/simulate.h"
#include "simulator/step_batch.h"
#include "tests/graph/built_sketch.h"

namespace daydream {
namespace {

// One marked step: an op of 10 us, a launch of 5, a wait for A, a launch of 5. A takes 40 us and B
// 100. What the step before launched last is done at 50 us, so A runs 50..90 and B 95..195.
struct OneStep {
  // `mark`, `before`: how long the step is for its host, and what of the step before is recorded.
  explicit OneStep(double mark = 95, double before = 48) {
    const LaneId thread = sketch.Thread(), stream = sketch.Stream();
    sketch.Mark(thread, "ProfilerStep#3", 10, mark - 10);
    sketch.Kernel(stream, "B", 2, before);
    sketch.Op(thread, "aten::copy_", 10, 10);
    sketch.Launch(thread, stream, "A", 20, 5, 50, 40);
    sketch.Call(thread, "cudaStreamSynchronize", 25, 65);
    sketch.Launch(thread, stream, "B", 90, 5, 95, 100);
  }
  TraceSketch sketch;
};

// The step when B takes `us`, by a replay and by a batch.
double StepWithB(const Graph& recorded, double us) {
  Graph graph = recorded;
  const TaskId b = Find(graph, "B", TaskKind::kKernel, 1);
  SetDuration(graph, b, us);
  const Duration step = StepTime(graph, Play(graph));
  StepBatch batch = StepBatch::Make(recorded).value();
  batch.Set(3, b, graph.task(b).duration, graph.task(b).gap);
  const auto steps = batch.Run();
  EXPECT_EQ(steps[3], step);
  EXPECT_EQ(steps[4], StepTime(recorded, Play(recorded)));
  const Duration more = graph.task(b).duration - recorded.task(b).duration;
  StepBatch other = batch.Another();
  EXPECT_EQ(other.StepWith({{{.task = b, .duration = more, .gap = {}}}}), step);
  EXPECT_EQ(other.StepOf(graph), step);
  Graph retimed = recorded;
  retimed.NameStructure(77);
  StepBatch following = StepBatch::Make(retimed).value();
  Graph copy = retimed;
  copy.SetDuration(b, graph.task(b).duration);
  following.Follow(copy);
  EXPECT_EQ(following.Run()[0], step);
  EXPECT_EQ(following.StepWith({}), step);
  EXPECT_EQ(following.periods()[0], step);
  return static_cast<double>(step.ns) / 1000;
}

TEST(LoneStep, IsAsLongAsItsCycle) {
  OneStep one;
  const BuiltGraph built = Build(one.sketch);
  ASSERT_EQ(LoneStepOf(built.graph), 1u);
  EXPECT_EQ(built.graph.steps()[1].recorded_period, Duration::Us(145));
  EXPECT_EQ(StepWithB(built.graph, 100), 145);
  // A of the next step waits for this B; the host, for A.
  EXPECT_EQ(StepWithB(built.graph, 60), 105);
  // The host is what takes longest: 10 + 5 + 40 + 5, and B runs beside the next op.
  EXPECT_EQ(StepWithB(built.graph, 10), 60);
  EXPECT_EQ(StepWithB(built.graph, 0), 60);
}

TEST(LoneStep, AThreadThatNothingWaitsForTakesItsTime) {
  OneStep one(95, /*before=*/6);
  const LaneId apart = one.sketch.Thread(7);
  one.sketch.Op(apart, "aten::item", 10, 180);
  const BuiltGraph built = Build(one.sketch);
  ASSERT_TRUE(LoneStepOf(built.graph).has_value());
  EXPECT_EQ(StepWithB(built.graph, 10), 180);
  EXPECT_GT(StepWithB(built.graph, 200), 240);
}

// A of 40 us and, on another stream, what takes 100, with a host that takes no time. An exchange
// makes A of the next step wait; a kernel lets it run beside.
TEST(LoneStep, TheNextOneWaitsForWhatIsExchanged) {
  for (const char* last : {"ncclKernel_AllReduce", "kernel"}) {
    TraceSketch s;
    const LaneId thread = s.Thread(), stream = s.Stream(), other = s.Stream(20);
    s.Mark(thread, "ProfilerStep#3", 20, 175);
    s.Kernel(stream, "before", 2, 8);
    s.Launch(thread, stream, "A", 20, 5, 25, 40);
    s.Call(thread, "cudaStreamSynchronize", 25, 40);
    s.Launch(thread, other, last, 65, 5, 70, 100);
    s.Op(thread, "aten::copy_", 190, 5);
    Graph graph = Build(s).graph;
    ASSERT_EQ(LoneStepOf(graph), 1u);
    for (size_t i = 0; i < graph.size(); ++i) {
      Task& task = graph.mutable_task(TaskId(i));
      if (IsHost(task.kind)) task.duration = task.gap = {};
    }
    const bool exchange = last[0] == 'n';
    EXPECT_EQ(StepTime(graph, Play(graph)), Duration::Us(exchange ? 140 : 100)) << last;
  }
}

// The host works until 300 us; its GPU was behind by 40 us when it began, or idle.
TEST(LoneStep, OneThatUsesUpALeadIsNoCycle) {
  for (const bool lead : {true, false}) {
    OneStep one(300, lead ? 48 : 6);
    one.sketch.Op(LaneId(0), "aten::copy_", 100, 200);
    const BuiltGraph built = Build(one.sketch);
    EXPECT_EQ(LoneStepOf(built.graph).has_value(), !lead);
    EXPECT_EQ(StepWithB(built.graph, 100), lead ? 145 : 290);
  }
}

// Nobody says that it is a step: what the GPU does behind the host's last work stays in it.
TEST(LoneStep, AWindowWithoutMarksIsPlayedAsItIs) {
  TraceSketch s;
  const LaneId thread = s.Thread(), stream = s.Stream();
  s.Op(thread, "aten::copy_", 10, 10);
  s.Launch(thread, stream, "A", 20, 5, 27, 40);
  const BuiltGraph built = Build(s);
  EXPECT_FALSE(LoneStepOf(built.graph).has_value());
  EXPECT_EQ(StepTime(built.graph, Play(built.graph)), Duration::Us(57)) << "from 10 to 67";
}

// Two marked steps of an op of 10 us, a launch of 5, a wait for A of 40 and a launch of 5. B takes
// 100 on a stream of its own, so that each waits for the one before. Nothing is known before the
// first, whose B runs while A of the second does.
TEST(LoneStep, TheFirstOfSeveralRepeatsWhereNothingIsKnownBeforeIt) {
  TraceSketch s;
  const LaneId thread = s.Thread(), stream = s.Stream(), other = s.Stream(20);
  for (const int k : {0, 1}) {
    const double begin = 10 + 60 * k;
    s.Mark(thread, fmt::format("ProfilerStep#{}", 3 + k), begin, 60);
    s.Op(thread, "aten::copy_", begin, 10);
    s.Launch(thread, stream, "A", begin + 10, 5, begin + 15, 40);
    s.Call(thread, "cudaStreamSynchronize", begin + 15, 40);
    s.Launch(thread, other, "B", begin + 55, 5, 70 + 100 * k, 100);
  }
  const BuiltGraph built = Build(s);
  ASSERT_EQ(LoneStepOf(built.graph), 1u);
  EXPECT_EQ(built.graph.steps()[1].recorded_period, Duration::Us(145)) << "A begins at 25";
  EXPECT_EQ(built.graph.steps()[2].recorded_period, Duration::Us(100));
  const auto periods_with = [&](double first, double second) {
    Graph graph = built.graph;
    SetDuration(graph, Find(graph, "B", TaskKind::kKernel, 0), first);
    SetDuration(graph, Find(graph, "B", TaskKind::kKernel, 1), second);
    std::vector<Duration> periods = StepPeriods(graph, Play(graph));
    periods.resize(2);  // without what is behind the last mark
    StepBatch batch = StepBatch::Make(built.graph).value();
    EXPECT_EQ(batch.StepOf(graph), StepTime(graph, Play(graph)));
    for (const size_t k : {0, 1}) {
      const TaskId t = Find(graph, "B", TaskKind::kKernel, k);
      batch.Set(5, t, graph.task(t).duration, graph.task(t).gap);
    }
    const auto steps = batch.Another().Run();
    EXPECT_EQ(steps[5], StepTime(built.graph, Play(built.graph))) << "another has none of it";
    EXPECT_EQ(batch.Run()[5], StepTime(graph, Play(graph)));
    EXPECT_EQ(batch.Run()[4], StepTime(built.graph, Play(built.graph)));
    return periods;
  };
  EXPECT_EQ(periods_with(100, 100), std::vector(2, Duration::Us(100)));
  // The host is what takes longest; the steps are alike, and each is told to be so long.
  EXPECT_EQ(periods_with(10, 10), std::vector(2, Duration::Us(60)));
  EXPECT_EQ(periods_with(200, 100), (std::vector{Duration::Us(200), Duration::Us(100)}));
}

// A step whose GPU work is known on both sides ends where that of the next begins.
TEST(LoneStep, WorkThatIsKnownOnBothSidesTellsWhereAStepEnds) {
  for (const bool launched : {false, true}) {
    TraceSketch s;
    const LaneId thread = s.Thread(), stream = s.Stream();
    if (!launched) s.Kernel(stream, "before", 2, 4);
    for (const int k : {0, 1, 2}) {
      const double begin = 10 + 60 * k;
      s.Mark(thread, fmt::format("ProfilerStep#{}", k), begin, 60);
      s.Op(thread, "aten::copy_", begin, 10);
      if (launched || k > 0) s.Launch(thread, stream, "A", begin + 10, 5, begin + 15, 40);
    }
    Graph graph = Build(s).graph;
    for (size_t i = 0; i < graph.steps().size(); ++i) {
      graph.mutable_step(i).measured = graph.steps()[i].label == "ProfilerStep#1";
    }
    EXPECT_EQ(LoneStepOf(graph).has_value(), !launched);
  }
}

// Each host waits for the kernel of the step before, the first of a run for that of the last.
TEST(RepeatStep, StepsOfARunStandBehindOneAnother) {
  std::string text = "lane cpu thread\nlane gpu stream\nstep \"0\"\nstep \"1\"\nstep \"2\"\n";
  for (int i = 0; i < 3; ++i) {
    text += fmt::format("h{0} cpu host 2us \"op\" step={0}", i);
    text += i == 0 ? "\n" : fmt::format(" after k{}\n", i - 1);
    text += fmt::format("k{0} gpu kernel {1}us \"gemm\" step={0} after h{0} launch +5us\n", i,
                        i == 1 ? 10 : 50);
  }
  const auto graph = ParseGraph(text);
  ASSERT_TRUE(graph.ok()) << Message(graph.status());
  const Graph runs = StepRepeater(*graph).Repeat({.first = 1, .steps = 2}, 3);
  EXPECT_EQ(runs.steps().size(), 6u);
  const std::vector<Duration> periods = StepPeriods(runs, Simulate(runs).value());
  ASSERT_EQ(periods.size(), 5u);
  EXPECT_EQ(periods[3] + periods[4], Duration::Us(2 + 5 + 10 + 2 + 5 + 50));
}

}  // namespace
}  // namespace daydream
