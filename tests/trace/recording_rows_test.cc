// Reading recordings: what the rows of a recorder become. The rows are handed over as the importer
// does after decoding; whole files are in tests/tracer/recording_graph_test.cc.
#include "trace/recording/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "trace/demangle.h"
#include "trace/range_names.h"
#include "trace/recording/waits.h"
#include "trace/steps.h"

namespace daydream {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Times in microseconds.
class RecordingTest : public testing::Test {
 protected:
  static constexpr int64_t kProcess = 100;

  LaneId Thread(int64_t tid = kProcess) {
    return builder_.AddLane(LaneKind::kThread, kProcess, tid, -1);
  }
  LaneId Stream(int64_t number = 7) { return builder_.AddLane(LaneKind::kStream, 0, number, 0); }
  static Instant At(double us) { return Instant{static_cast<int64_t>(us * 1000)}; }

  void Mark(double us, MarkKind kind, std::string_view name = "", int64_t value = 0,
            int64_t tid = kProcess) {
    rows_.AddMark({At(us), Thread(tid), builder_.names().Intern(name), kind, value});
  }
  void Row(LaneId lane, EventKind kind, std::string_view name, double us, double length,
           uint32_t correlation) {
    rows_.AddEvent({.start = At(us),
                    .duration = At(length) - At(0),
                    .lane = lane,
                    .name = builder_.names().Intern(name),
                    .kind = kind,
                    .correlation = correlation});
  }
  // A launch of 4 us and its kernel.
  void Launch(double us, std::string_view kernel, int64_t tid = kProcess) {
    const uint32_t c = ++correlation_;
    Row(Thread(tid), EventKind::kCall, "cudaLaunchKernel", us, 4, c);
    Row(Stream(), EventKind::kKernel, kernel, us + 5, 3, c);
  }
  std::shared_ptr<const Trace> Finish() {
    rows_.Finish(false);
    auto trace = builder_.Build();
    EXPECT_TRUE(trace.ok()) << Message(trace.status());
    return *trace;
  }
  // "name begin-end" of the ranges and layers of a thread, in microseconds of the recording.
  std::vector<std::string> Spans(const Trace& trace, EventKind kind, int64_t tid = kProcess) {
    std::vector<std::string> out;
    for (size_t row = 0; row < trace.rows(); ++row) {
      if (trace.kind[row] != kind || trace.lanes[trace.lane[row].index()].number != tid) continue;
      out.push_back(fmt::format("{} {}-{}", trace.EventName(row), Micros(trace, trace.start[row]),
                                Micros(trace, trace.End(row))));
    }
    return out;
  }
  static int64_t Micros(const Trace& trace, Instant t) {
    return (t.ns + trace.clock_origin_ns + 500) / 1000;
  }
  static uint64_t CountOf(const Trace& trace, std::string_view what) {
    for (const ImportCount& c : trace.provenance.counts) {
      if (c.what == what) return c.count;
    }
    return 0;
  }

  TraceBuilder builder_;
  DdtraceCounts counts_{builder_};
  RecordingRows rows_{builder_, counts_};
  uint32_t correlation_ = 0;
};

TEST_F(RecordingTest, RangesAndLayersNestByThread) {
  Launch(0, "first");
  Mark(10, MarkKind::kRangeBegin, "train");
  Mark(11, MarkKind::kLayerBegin, "Net.conv1\tConv2d\t1728");
  Mark(12, MarkKind::kRangeBegin, "other thread", 0, 101);
  Mark(15, MarkKind::kLayerEnd);
  Mark(18, MarkKind::kRangeEnd, "", 0, 101);
  Mark(20, MarkKind::kRangeEnd);
  Launch(40, "last");
  const auto trace = Finish();
  EXPECT_THAT(Spans(*trace, EventKind::kAnnotation), ElementsAre("train 10-20"));
  EXPECT_THAT(Spans(*trace, EventKind::kFrame), ElementsAre("Net.conv1 11-15"));
  EXPECT_THAT(Spans(*trace, EventKind::kAnnotation, 101), ElementsAre("other thread 12-18"));
}

TEST_F(RecordingTest, LayersWithoutAClassArePartsOfTheLayerAroundThem) {
  Launch(0, "first");
  Mark(1, MarkKind::kLayerBegin, "encoder");
  Mark(2, MarkKind::kLayerBegin, "conv");
  Mark(3, MarkKind::kLayerEnd);
  Mark(4, MarkKind::kLayerBegin, "encoder.norm");
  Mark(5, MarkKind::kLayerEnd);
  Mark(6, MarkKind::kLayerEnd);
  Launch(40, "last");
  EXPECT_THAT(Spans(*Finish(), EventKind::kFrame),
              ElementsAre("encoder 1-6", "encoder.conv 2-3", "encoder.norm 4-5"));
}

TEST_F(RecordingTest, KernelsOfNcclHaveTheBytesOfTheRangeThatLaunchedThem) {
  const auto nccl = [&](double us, const char* name, uint64_t bytes) {
    rows_.AddMark({.at = At(us),
                   .lane = Thread(),
                   .name = builder_.names().Intern(name),
                   .kind = MarkKind::kRangeBegin,
                   .bytes = bytes});
  };
  const auto launch = [&](double us, const char* kernel) {
    const uint32_t c = ++correlation_;
    Row(Thread(), EventKind::kCall, "cudaLaunchKernelExC", us, 4, c);
    rows_.AddEvent({.start = At(us + 5),
                    .duration = At(3) - At(0),
                    .lane = Stream(),
                    .name = builder_.names().Intern(kernel),
                    .kind = EventKind::kKernel,
                    .correlation = c,
                    .detail = builder_.AddKernel({.grid = {1, 1, 1}})});
  };
  nccl(0, "ncclAllReduce", 4096);
  launch(1, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  Mark(10, MarkKind::kRangeEnd);
  launch(20, "gemm");
  nccl(30, "ncclAllReduce", 100);
  launch(31, "gemm");  // of another library, in the range
  Mark(40, MarkKind::kRangeEnd);
  launch(50, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");  // of a group
  const auto trace = Finish();
  std::vector<std::string> found;
  for (size_t row = 0; row < trace->rows(); ++row) {
    if (trace->kind[row] != EventKind::kKernel) continue;
    const uint32_t of = trace->kernels[trace->detail[row]].collective;
    if (of == Id<void>::kNoneValue) continue;
    const CollectiveDetail& c = trace->collectives[of];
    found.push_back(fmt::format("{} {} {}", Micros(*trace, trace->start[row]), trace->Name(c.name),
                                c.elements_in));
  }
  EXPECT_THAT(found, ElementsAre("6 allreduce 4096"));
}

TEST_F(RecordingTest, KernelsOfNcclKnowTheirCommunicatorAndTheirNumberOnIt) {
  const auto range = [&](double us, const char* name, uint64_t bytes) {
    rows_.AddMark({.at = At(us),
                   .lane = Thread(),
                   .name = builder_.names().Intern(name),
                   .kind = MarkKind::kRangeBegin,
                   .bytes = bytes});
  };
  const auto call = [&](double us, const char* name, const char* group, int64_t number) {
    range(us, name, 64);
    Mark(us, MarkKind::kCollective, group, number);
  };
  const auto kernel = [&](double us) {
    const uint32_t c = ++correlation_;
    Row(Thread(), EventKind::kCall, "cuLaunchKernelEx", us, 1, c);
    rows_.AddEvent({.start = At(us + 1),
                    .duration = At(1) - At(0),
                    .lane = Stream(),
                    .name = builder_.names().Intern("ncclDevKernel_SendRecv"),
                    .kind = EventKind::kKernel,
                    .correlation = c,
                    .detail = builder_.AddKernel({.grid = {1, 1, 1}})});
  };
  call(0, "nccl:AllReduce", "8f03a1/4", 17);
  kernel(1);
  Mark(3, MarkKind::kRangeEnd);
  range(4, "nccl:GroupStart", 0);
  Mark(5, MarkKind::kRangeEnd);
  call(6, "nccl:Send", "8f03a1/4 0>3", 2);
  Mark(7, MarkKind::kRangeEnd);
  range(8, "nccl:GroupEnd", 0);
  kernel(9);  // the one call of the group
  Mark(11, MarkKind::kRangeEnd);
  call(20, "nccl:AllGather", "no/number", -1);
  kernel(21);
  Mark(23, MarkKind::kRangeEnd);
  Mark(24, MarkKind::kCollective, "of no range", 3);
  const auto trace = Finish();
  std::vector<std::string> found;
  for (size_t row = 0; row < trace->rows(); ++row) {
    if (trace->kind[row] != EventKind::kKernel) continue;
    const CollectiveDetail& c =
        trace->collectives.at(trace->kernels[trace->detail[row]].collective);
    const std::string_view group = c.process_group.valid() ? trace->Name(c.process_group) : "-";
    found.push_back(fmt::format("{} [{}] of {}", trace->Name(c.name), group, c.group_size));
  }
  EXPECT_THAT(found, ElementsAre("allreduce [8f03a1 #17] of 4", "send [8f03a1 #2 0>3] of 4",
                                 "allgather [-] of 0"));
}

TEST_F(RecordingTest, UnbalancedMarksAreCounted) {
  Mark(1, MarkKind::kRangeEnd);
  Mark(2, MarkKind::kRangeBegin, "open");
  Launch(10, "kernel");
  const auto trace = Finish();
  EXPECT_EQ(CountOf(*trace, "ends of ranges that did not begin"), 1u);
  EXPECT_EQ(CountOf(*trace, "ranges and layers without an end"), 1u);
  EXPECT_THAT(Spans(*trace, EventKind::kAnnotation), ElementsAre("open 10-18"));
}

// Pre-hooks of one node fire in the order of registration: the inner layer's first.
TEST_F(RecordingTest, TheDeepestLayerThatWasEnteredAndNotLeftIsTheOneBeingWorkedOn) {
  Launch(0, "forward");
  Mark(10, MarkKind::kRangeBegin, kBackwardRange);
  Mark(11, MarkKind::kBackwardEnter, "Net.block.relu\tReLU\t0", 2, 7);
  Mark(11.5, MarkKind::kBackwardEnter, "Net.block\tBlock\t9", 1, 7);
  Mark(12, MarkKind::kBackwardEnter, "Net\tNet\t9", 0, 7);
  Launch(13, "relu_backward", 7);
  Mark(20, MarkKind::kBackwardExit, "Net.block.relu\tReLU\t0", 2, 7);
  Launch(21, "add_backward", 7);
  Mark(30, MarkKind::kBackwardEnter, "Net.block.conv\tConv2d\t9", 3, 7);
  Launch(31, "conv_backward", 7);
  Mark(40, MarkKind::kRangeEnd);
  Launch(50, "optimizer");
  const auto trace = Finish();
  EXPECT_THAT(Spans(*trace, EventKind::kFrame, 7),
              ElementsAre("Net.block.relu 11-20", "Net.block 20-30", "Net.block.conv 30-40"));
  EXPECT_THAT(Spans(*trace, EventKind::kAnnotation, 7),
              ElementsAre(fmt::format("{} 11-40", kEngineRange)));
}

TEST_F(RecordingTest, ALayerLeftBeforeItIsEnteredDoesNothing) {
  Launch(0, "forward");
  Mark(10, MarkKind::kRangeBegin, kBackwardRange);
  Mark(11, MarkKind::kBackwardEnter, "Net\tNet\t0", 0, 7);
  Mark(12, MarkKind::kBackwardExit, "Net.identity\tIdentity\t0", 1, 7);
  Mark(13, MarkKind::kBackwardEnter, "Net.identity\tIdentity\t0", 1, 7);
  Launch(20, "backward", 7);
  Mark(40, MarkKind::kRangeEnd);
  Launch(50, "optimizer");
  EXPECT_THAT(Spans(*Finish(), EventKind::kFrame, 7), ElementsAre("Net 11-40"));
}

TEST_F(RecordingTest, TheThreadThatWorksWhileAnotherIsInBackwardIsTheEngine) {
  for (double step : {0.0, 100.0}) {
    Launch(step, "forward");
    Mark(step + 10, MarkKind::kRangeBegin, kBackwardRange);
    Launch(step + 20, "backward", 7);
    Launch(step + 30, "backward", 7);
    Launch(step + 40, "unrelated", 8);
    Launch(step + 60, "unrelated", 8);
    Mark(step + 50, MarkKind::kRangeEnd);
  }
  const auto trace = Finish();
  EXPECT_THAT(
      Spans(*trace, EventKind::kAnnotation, 7),
      ElementsAre(fmt::format("{} 20-34", kEngineRange), fmt::format("{} 120-134", kEngineRange)));
  EXPECT_THAT(Spans(*trace, EventKind::kAnnotation, 8), IsEmpty());
  auto built = BuildGraph(trace);
  ASSERT_TRUE(built.ok()) << Message(built.status());
  EXPECT_EQ(built->report.handoffs, 2u);
}

// Steps of 100 us. Calls are recorded in steps 4 to 9, the layers of 4 and 5 are marked.
TEST_F(RecordingTest, StepsWithoutCallsTellWhatRecordingCosts) {
  Launch(1, "start-up");
  double us = 100;
  for (int step = 0; step < 12; ++step) {
    Mark(us, MarkKind::kStep, "", step);
    if (step == 4) Mark(us + 1, MarkKind::kLabelsBegin);
    if (step == 6) Mark(us + 1, MarkKind::kLabelsEnd);
    const bool recorded = step >= 4 && step < 10;
    if (recorded) {
      for (int i = 0; i < 5; ++i) Launch(us + 10 + 10 * i, "work");
    }
    us += step < 3 ? 500 : step == 4 || step == 5 ? 150 : recorded ? 102 : 100;
  }
  Mark(us, MarkKind::kStep, "", 12);
  const auto trace = Finish();
  EXPECT_THAT(Spans(*trace, EventKind::kAnnotation).size(), 6u);
  EXPECT_EQ(trace->provenance.cost, (RecordingCost{.steps_with = 4,
                                                   .steps_without = 2,
                                                   .with = Duration::Us(102),
                                                   .without = Duration::Us(100)}));
  EXPECT_EQ(CountOf(*trace, "events outside of the recorded steps"), 2u);
  const Steps steps = FindSteps(*trace);
  EXPECT_EQ(steps.method, StepMethod::kMark);
  ASSERT_EQ(steps.steps.size(), 6u);
  EXPECT_EQ(steps.steps[0].label, "step 4");
  EXPECT_EQ(steps.steps[0].use, StepUse::kLabelled);
  EXPECT_EQ(steps.steps[1].use, StepUse::kLabelled);
  EXPECT_TRUE(steps.steps[1].labelled);
  EXPECT_EQ(steps.measured(), 4u);
}

// On a busy machine the first recorded step begins long before its layers are marked.
TEST_F(RecordingTest, AStepThatHoldsTheMarksOfLayersIsLabelledHoweverLongItIs) {
  double us = 0;
  for (int step = 0; step < 5; ++step) {
    Mark(us, MarkKind::kStep, "", step);
    if (step == 0) Mark(us + 9'900, MarkKind::kLabelsBegin);
    if (step == 1) Mark(us + 1, MarkKind::kLabelsEnd);
    Launch(us + (step == 0 ? 9'950 : 10), "work");
    us += step == 0 ? 10'000 : 100;
  }
  const Steps steps = FindSteps(*Finish());
  EXPECT_TRUE(steps.steps[0].labelled);
  EXPECT_FALSE(steps.steps[1].labelled);
}

// Steps of 100 us, recorded 4 to 7 and 20 to 23; kernels go on for a while after each.
TEST_F(RecordingTest, OfSeveralWindowsWhatLiesBetweenThemIsLeftOut) {
  for (int step = 0; step < 40; ++step) {
    const double us = 100 * step;
    Mark(us, MarkKind::kStep, "", step);
    Mark(us + 1, MarkKind::kRangeBegin, fmt::format("part {}", step));
    const bool inside = (step >= 4 && step < 8) || (step >= 20 && step < 24);
    if (inside) Launch(us + 10, "work");
    if (step == 8 || step == 9 || step == 24) {
      Row(Stream(), EventKind::kKernel, "late", us + 10, 3, 1000 + static_cast<uint32_t>(step));
    }
    Mark(us + 90, MarkKind::kRangeEnd);
  }
  const auto trace = Finish();
  EXPECT_THAT(Spans(*trace, EventKind::kAnnotation).size(), 2 * 8u + 1)
      << "steps and their parts, and what was not recorded";
  EXPECT_EQ(CountOf(*trace, "events outside of the recorded steps"), 3u);
  EXPECT_EQ(CountOf(*trace, "ranges and layers outside of the recorded time"), 40u - 8);
  const RecordingCost cost = trace->provenance.cost;
  EXPECT_EQ(cost.steps_with, 6u) << "the first of each pays for switching";
  EXPECT_EQ(cost.steps_without, 25u) << "3, 10 to 19, 25 to 38";

  const Steps steps = FindSteps(*trace);
  ASSERT_EQ(steps.steps.size(), 9u);
  EXPECT_EQ(steps.steps[4].use, StepUse::kNotRecorded);
  EXPECT_EQ(steps.steps[5].use, StepUse::kWarmUp);
  EXPECT_EQ(steps.measured(), 6u);
  auto built = BuildGraph(trace);
  ASSERT_TRUE(built.ok()) << Message(built.status());
  for (const GraphStep& s : built->graph.steps()) {
    if (s.measured) {
      EXPECT_EQ(s.recorded_period, Duration::Us(100)) << s.label;
    }
  }
}

// The engine's thread has no step marks, so that its waits are known: nor between windows.
TEST_F(RecordingTest, OfSeveralWindowsThreadsThatWaitedStillDo) {
  for (int step = 0; step < 40; ++step) {
    const double us = 100 * step;
    Mark(us, MarkKind::kStep, "", step);
    if (step >= 4 && (step < 8 || step >= 20) && step < 24) {
      Launch(us + 5, "forward");
      Mark(us + 10, MarkKind::kRangeBegin, kBackwardRange);
      Launch(us + 20, "backward", 7);
      Launch(us + 30, "backward", 7);
      Mark(us + 50, MarkKind::kRangeEnd);
    }
  }
  auto built = BuildGraph(Finish());
  ASSERT_TRUE(built.ok()) << Message(built.status());
  EXPECT_EQ(built->report.handoffs, 8u);
  for (const Task& task : built->graph.tasks()) {
    const bool counts = built->graph.steps()[task.step].measured;
    if (counts) {
      EXPECT_LE(task.gap + task.duration, Duration::Us(100)) << task.name.value;
    }
  }
}

// Calls are recorded in steps 4 to 6; kernels, for a while longer, in 7 to 10, too.
TEST_F(RecordingTest, AStepWithRecordedGpuWorkIsNoneWithoutRecording) {
  for (int step = 0; step < 14; ++step) {
    const double us = 100 * step;
    Mark(us, MarkKind::kStep, "", step);
    if (step >= 4 && step < 7) Launch(us + 10, "work");
    if (step >= 7 && step < 11) {
      Row(Stream(), EventKind::kKernel, "late", us + 10, 3, 1000 + static_cast<uint32_t>(step));
    }
  }
  const RecordingCost cost = Finish()->provenance.cost;
  EXPECT_EQ(cost.steps_with, 2u);
  EXPECT_EQ(cost.steps_without, 3u) << "3, 11 and 12";
}

TEST_F(RecordingTest, LabelledStepsCountWhenThereAreNoOthers) {
  for (int step = 0; step < 4; ++step) {
    Mark(100 * step, MarkKind::kStep, "", step);
    if (step == 0) Mark(1, MarkKind::kLabelsBegin);
    Launch(100 * step + 10, "work");
  }
  const Steps steps = FindSteps(*Finish());
  EXPECT_EQ(steps.measured(), 3u);  // the first is warm-up
  EXPECT_TRUE(steps.steps.back().labelled);
}

TEST_F(RecordingTest, MarksSayRankAndFacts) {
  Mark(1, MarkKind::kRank, "", int64_t{3} << 32 | 8);
  Mark(2, MarkKind::kNote, "PyTorch=2.4.0");
  Launch(10, "kernel");
  const auto trace = Finish();
  ASSERT_EQ(trace->ranks.size(), 1u);
  EXPECT_EQ(trace->ranks[0].rank, 3);
  EXPECT_EQ(trace->ranks[0].world_size, 8);
  EXPECT_THAT(trace->provenance.software,
              ElementsAre(std::pair<std::string, std::string>("PyTorch", "2.4.0")));
}

TEST_F(RecordingTest, GpuWorkOfTheLastStepMayEndAfterIt) {
  for (int step = 0; step < 3; ++step) {
    Mark(100 * step, MarkKind::kStep, "", step);
    Launch(100 * step + 10, "work");
  }
  Row(Thread(), EventKind::kCall, "cudaLaunchKernel", 295, 4, 99);
  Row(Stream(), EventKind::kKernel, "late", 320, 10, 99);
  Mark(300, MarkKind::kStep, "", 3);
  const auto trace = Finish();
  EXPECT_EQ(CountOf(*trace, "events outside of the recorded steps"), 0u);
}

TEST_F(RecordingTest, KernelsOfACudaGraphBelongToTheLayerThatMadeTheirNode) {
  Mark(1, MarkKind::kLayerBegin, "Net\tNet\t0");
  Mark(2, MarkKind::kLayerBegin, "Net.conv\tConv2d\t0");
  Mark(4, MarkKind::kLayerEnd);
  Mark(6, MarkKind::kLayerEnd);
  Mark(10, MarkKind::kRangeBegin, kBackwardRange);
  Mark(11, MarkKind::kBackwardEnter, "Net.conv\tConv2d\t0", 1);
  Mark(20, MarkKind::kRangeEnd);
  Mark(21, MarkKind::kRangeBegin, "Optimizer.step#SGD.step");
  Mark(25, MarkKind::kRangeEnd);
  const int made[] = {3, 5, 12, 22, 30};
  for (uint64_t i = 0; i < 5; ++i) rows_.AddGraphNode(i + 1, 0, Thread(), At(made[i]));
  Launch(100, "before");
  Row(Thread(), EventKind::kCall, "cudaGraphLaunch", 110, 4, 50);
  for (uint64_t node = 1; node <= 5; ++node) {
    rows_.AddGraphNode(node + 10, node, LaneId::None(), At(0));  // instantiated
    const double at = 120 + 10 * static_cast<double>(node);
    rows_.AddEvent({.start = At(at),
                    .duration = Duration::Us(5),
                    .lane = Stream(),
                    .name = builder_.names().Intern(fmt::format("node {}", node)),
                    .kind = EventKind::kKernel,
                    .correlation = 50,
                    .detail = builder_.AddKernel({.graph_node = node + 10})});
  }
  auto built = BuildGraph(Finish());
  ASSERT_TRUE(built.ok()) << Message(built.status());
  std::vector<std::string> layers;
  const Graph& g = built->graph;
  for (size_t i = 0; i < g.size(); ++i) {
    const Task& task = g.tasks()[i];
    if (!IsGpu(task.kind) || !task.layer.valid()) continue;
    layers.push_back(fmt::format("{}: {}{}", g.TaskName(TaskId(i)),
                                 g.Name(g.layers()[task.layer.index()].name),
                                 task.phase == Phase::kBackward ? ", backward" : ""));
  }
  EXPECT_THAT(layers, ElementsAre("node 1: Net.conv", "node 2: Net", "node 3: Net.conv, backward",
                                  "node 4: optimizer"));
}

TEST(RecordingWaits, TheNumberOfTheRecordDecides) {
  SyncDetail wait{.kind = SyncKind::kStreamWaitEvent, .event = 5};
  const EventWait waits[] = {{.correlation = 30, .context = 1, .event_sync = 2, .detail = &wait}};
  EXPECT_EQ(JoinWaits({{10, 1, 5, 1, 7}, {20, 1, 5, 2, 13}, {25, 1, 5, 3, 7}}, waits), 0u);
  EXPECT_EQ(wait.record_correlation, 20u);
  EXPECT_EQ(wait.wait_on_stream, 13);
}

TEST(RecordingWaits, ANumberThatIsNotThereHasNoRecord) {
  SyncDetail wait{.kind = SyncKind::kStreamWaitEvent, .event = 5};
  const EventWait waits[] = {{.correlation = 30, .context = 1, .event_sync = 9, .detail = &wait}};
  EXPECT_EQ(JoinWaits({{10, 1, 5, 1, 7}}, waits), 1u);
  EXPECT_EQ(wait.record_correlation, 0u);
}

TEST(RecordingWaits, WithoutNumbersTheLastRecordOfTheEventBeforeTheWaitIsMeant) {
  // A reused event, out of order, another context, and correlations that start over.
  const std::vector<EventRecord> records = {{20, 1, 5, 0, 2},
                                            {10, 1, 5, 0, 1},
                                            {40, 1, 5, 0, 4},
                                            {25, 2, 5, 0, 9},
                                            {0xfffffff0, 1, 6, 0, 3}};
  SyncDetail first{.event = 5}, reused{.event = 5}, wrapped{.event = 6}, early{.event = 5};
  const EventWait waits[] = {
      {15, 1, 0, &first}, {30, 1, 0, &reused}, {8, 1, 0, &wrapped}, {3, 2, 0, &early}};
  EXPECT_EQ(JoinWaits(records, waits), 1u);
  EXPECT_EQ(first.record_correlation, 10u);
  EXPECT_EQ(reused.record_correlation, 20u);
  EXPECT_EQ(wrapped.record_correlation, 0xfffffff0u);
  EXPECT_EQ(early.record_correlation, 0u);
}

TEST(Demangle, NamesAreThoseOfTheProfiler) {
  EXPECT_EQ(Demangle("_Z3addPfi"), "add(float*, int)");
  EXPECT_EQ(Demangle("triton_poi_fused_add_3"), "triton_poi_fused_add_3");
  EXPECT_EQ(Demangle("_Znonsense"), "_Znonsense");
  EXPECT_EQ(Demangle("_Z" + std::string(2000, 'i')), "_Z" + std::string(2000, 'i'));
}

}  // namespace
}  // namespace daydream
