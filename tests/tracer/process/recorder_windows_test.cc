// What of a program is recorded: windows of steps, of the profiler API, of a range, of time.
#include <signal.h>

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracer/process/child.h"

namespace daydream::tracer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<WrittenRow> Steps(const WrittenFile& file) {
  std::vector<WrittenRow> steps;
  for (const WrittenRow& row : file.OfKind(pb::KIND_MARK)) {
    if (row.signature.mark().kind() == pb::MARK_KIND_STEP) steps.push_back(row);
  }
  return steps;
}

// Kernels whose launch was recorded. When a window closes, those that run for a while longer are in
// the file, too, whether they were launched before or after; readers leave the latter out.
std::vector<WrittenRow> Launched(const WrittenFile& file) {
  std::set<int64_t> calls;
  for (const WrittenRow& call : file.OfKind(pb::KIND_CALL)) calls.insert(call.correlation);
  std::vector<WrittenRow> kernels = file.OfKind(pb::KIND_KERNEL);
  std::erase_if(kernels, [&](const WrittenRow& k) { return !calls.contains(k.correlation); });
  return kernels;
}

TEST(RecorderWindows, StepsOfTheWindowAreRecordedAndAllStepsAreMarked) {
  Session session("warmup=5;steps=4;labels=2");
  const Left left = session.Run({"init", "train=20x10", "exit=0"});
  const WrittenFile file = OnlyFile(left);
  const std::vector<WrittenRow> steps = Steps(file);
  ASSERT_THAT(steps, SizeIs(20));
  std::vector<size_t> kernels(20);
  for (const WrittenRow& kernel : Launched(file)) {
    size_t step = 0;
    while (step + 1 < 20 && kernel.start >= steps[step + 1].start) ++step;
    ++kernels[step];
  }
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(kernels[i], i >= 3 && i < 9 ? 10u : 0u) << i;
  EXPECT_THAT(Messages(left),
              ElementsAre(HasSubstr("recording from step 3"), HasSubstr("4 steps recorded")));
}

TEST(RecorderWindows, TheTimeOfSwitchingBelongsToTheStepBeforeTheWindow) {
  // Each kind takes 40 ms to switch on, the steps themselves less than one.
  Session session("warmup=5;steps=4;labels=0", "slow_enable_ms=40");
  const WrittenFile file = OnlyFile(session.Run({"init", "train=12x10", "exit=0"}));
  const std::vector<WrittenRow> steps = Steps(file);
  ASSERT_THAT(steps, SizeIs(12));
  const int64_t before = steps[5].start - steps[4].start, first = steps[6].start - steps[5].start;
  EXPECT_GT(before, 80'000'000);
  EXPECT_LT(first, before / 2);
}

TEST(RecorderWindows, AfterTheWindowCuptiDoesNothingForUs) {
  Session session("warmup=5;steps=4;labels=2", "say_state=1");
  // GPU work is recorded for two seconds after it; the worker looks once a second then.
  const Left left = session.Run({"init", "train=20x10", "sleep=4500", "exit=0"});
  EXPECT_THAT(left.err, HasSubstr("fake CUPTI: 0 kinds and 1 callbacks are on"))
      << "that of a fatal error is left";
}

TEST(RecorderWindows, SeveralShortOnesHaveStepsBetweenThemThatAreNotRecorded) {
  Session session("warmup=10;steps=3;labels=0;windows=2;every=40");
  // GPU work is recorded for two seconds after the first.
  const Left left = session.Run({"init", "train=25x10", "sleep=2500", "train=40x10", "exit=0"});
  const WrittenFile file = OnlyFile(left);
  const std::vector<WrittenRow> steps = Steps(file);
  ASSERT_THAT(steps, SizeIs(65));
  std::vector<size_t> kernels(65), work(65);
  const auto step_at = [&](int64_t time) {
    size_t step = 0;
    while (step + 1 < steps.size() && time >= steps[step + 1].start) ++step;
    return step;
  };
  for (const WrittenRow& kernel : Launched(file)) ++kernels[step_at(kernel.start)];
  for (const WrittenRow& kernel : file.OfKind(pb::KIND_KERNEL)) ++work[step_at(kernel.start)];
  for (size_t i = 0; i < 65; ++i) {
    const bool inside = (i >= 10 && i < 13) || (i >= 50 && i < 53);
    EXPECT_EQ(kernels[i], inside ? 10u : 0u) << i;
    if (i > 25 && i < 50) {
      EXPECT_EQ(work[i], 0u) << i << " is detached";
    }
  }
  EXPECT_THAT(
      Messages(left),
      ElementsAre(HasSubstr("recording from step 10"), HasSubstr("3 steps recorded; others"),
                  HasSubstr("recording from step"), HasSubstr("6 steps recorded")));
}

TEST(RecorderWindows, AProgramWithoutStepsIsRecordedWhole) {
  Session session;
  EXPECT_THAT(
      OnlyFile(session.Run({"init", "launch=500", "sync", "exit=0"})).OfKind(pb::KIND_KERNEL),
      SizeIs(500));
}

TEST(RecorderWindows, AProgramThatIsTooShortSaysSo) {
  Session session;
  const Left left = session.Run({"init", "train=5x10", "exit=0"});
  EXPECT_THAT(Messages(left), ElementsAre(HasSubstr("try a smaller --warmup")));
}

TEST(RecorderWindows, CaptureNoneRecordsEverything) {
  Session session("capture=none");
  const WrittenFile file = OnlyFile(session.Run({"init", "train=20x10", "exit=0"}));
  EXPECT_THAT(file.OfKind(pb::KIND_KERNEL), SizeIs(200));
}

TEST(RecorderWindows, TheProfilerApiOpensAndCloses) {
  Session session("capture=cudaProfilerApi");
  const Left left = session.Run({"init", "launch=10", "sync", "profiler_start", "launch=20", "sync",
                                 "profiler_stop", "launch=40", "sync", "profiler_start",
                                 "launch=80", "sync", "profiler_stop", "exit=0"});
  EXPECT_THAT(Launched(OnlyFile(left)), SizeIs(100));
}

TEST(RecorderWindows, ARangeOpensAndClosesAndRangesNest) {
  Session session("capture=nvtx:roi");
  const Left left = session.Run({"init", "range=warm", "launch=10", "sync", "end_range",
                                 "range=roi", "range=a", "launch=20", "end_range", "launch=1",
                                 "sync", "end_range", "launch=40", "sync", "exit=0"});
  EXPECT_THAT(Launched(OnlyFile(left)), SizeIs(21));
}

TEST(RecorderWindows, TimeOpensAndCloses) {
  Session session("capture=time;delay_ms=300;duration_ms=400;flush_ms=20");
  const Left left = session.Run({"init", "launch=10", "sync", "sleep=500", "launch=20", "sync",
                                 "sleep=600", "launch=40", "sync", "exit=0"});
  EXPECT_THAT(Launched(OnlyFile(left)), SizeIs(20));
}

TEST(RecorderWindows, AfterStopEndsTheProgram) {
  Session session("warmup=2;steps=2;labels=0;after=stop");
  const Left left = session.Run({"init", "train=5x10", "pause"});
  EXPECT_FALSE(left.exited);
  EXPECT_EQ(left.code, SIGTERM);
  const WrittenFile file = OnlyFile(left);
  EXPECT_THAT(Launched(file), SizeIs(20));
  ASSERT_TRUE(file.index.has_value());
}

TEST(RecorderWindows, TheLimitOfEventsEndsTheRecordingAndSaysSo) {
  Session session("max_events=5000;flush_ms=10;capture=none");
  const Left left =
      session.Run({"init", "launch=5000", "sleep=200", "launch=50000", "step=7", "exit=0"});
  const WrittenFile file = OnlyFile(left);
  EXPECT_LT(file.OfKind(pb::KIND_KERNEL).size(), 20'000u);
  EXPECT_THAT(Steps(file), SizeIs(1)) << "steps go on being marked";
  EXPECT_THAT(left.err, HasSubstr("which is the limit"));
}

TEST(RecorderWindows, TheLimitThatIsMetBeforeTheFirstStepLeavesTheWindowItsOwn) {
  Session session("max_events=2000;flush_ms=10;warmup=2;steps=4;labels=0");
  const Left left = session.Run(
      {"init", "launch=3000", "sleep=200", "launch=300", "sync", "train=8x100", "exit=0"});
  EXPECT_THAT(Messages(left),
              ElementsAre(HasSubstr("no step has come yet"), HasSubstr("recording from step 2"),
                          HasSubstr("4 steps recorded")));
  const WrittenFile file = OnlyFile(left);
  const std::vector<WrittenRow> steps = Steps(file);
  ASSERT_THAT(steps, SizeIs(8));
  std::vector<WrittenRow> calls = file.OfKind(pb::KIND_CALL);
  std::erase_if(calls, [&](const WrittenRow& c) { return c.start < steps[0].start; });
  EXPECT_THAT(calls, SizeIs(4 * 101)) << "launches and a wait";
}

TEST(RecorderWindows, AProgramWithoutStepsThatMeetsTheLimitIsToldOfTheLimitOnly) {
  Session session("max_events=2000;flush_ms=10");
  const Left left = session.Run({"init", "launch=3000", "sleep=200", "launch=300", "exit=0"});
  EXPECT_THAT(Messages(left), ElementsAre(HasSubstr("which is the limit; no step has come yet")));
}

TEST(RecorderWindows, TheLimitThatIsMetInTheWindowIsTheReasonThatIsGiven) {
  Session session("max_events=500;flush_ms=10;warmup=1;steps=9;labels=0");
  const Left left = session.Run({"init", "step=0", "step=1", "launch=3000", "sleep=200", "exit=0"});
  EXPECT_THAT(Messages(left),
              ElementsAre(HasSubstr("recording from step 1"), HasSubstr("larger --max-events"),
                          HasSubstr("recording was cut short, recording has ended")));
}

TEST(RecorderWindows, GraphsNodeByNodeOrWhole) {
  Session nodes("capture=none");
  const WrittenFile a = OnlyFile(nodes.Run({"init", "graph=5", "exit=0"}));
  ASSERT_THAT(a.OfKind(pb::KIND_KERNEL), SizeIs(5));
  EXPECT_NE(a.OfKind(pb::KIND_KERNEL)[0].graph_node, 0);
  EXPECT_THAT(a.graph_nodes, SizeIs(10));  // made, and cloned
  Session whole("capture=none;graph=graph");
  const WrittenFile b = OnlyFile(whole.Run({"init", "graph=5", "exit=0"}));
  EXPECT_THAT(b.OfKind(pb::KIND_KERNEL), IsEmpty());
  EXPECT_THAT(b.OfKind(pb::KIND_GRAPH_LAUNCH), SizeIs(1));
}

TEST(RecorderWindows, QueriesAndGettersAreNotRecorded) {
  Session session;
  const Left left = session.Run({"init", "queries=100", "rlaunch=10", "sync", "exit=0"});
  const WrittenFile file = OnlyFile(left);
  for (const WrittenRow& call : file.OfKind(pb::KIND_CALL)) {
    EXPECT_NE(call.name, "cudaGetDevice");
    EXPECT_NE(call.name, "cuEventQuery");
  }
  EXPECT_THAT(file.OfKind(pb::KIND_CALL), SizeIs(21)) << "runtime and driver launches, one sync";
}

TEST(RecorderWindows, ADeviceResetFlushesFirst) {
  // Buffers of 4 MiB never fill here, and no flush period passes.
  Session session("flush_ms=60000");
  const Left left = session.Run({"init", "launch=10", "sync", "reset", "sleep=300", "_exit=0"});
  EXPECT_THAT(left.files, SizeIs(1)) << "the reset handed out the records";
}

TEST(RecorderWindows, EventsAndWaitsAreThere) {
  Session session;
  const WrittenFile file = OnlyFile(session.Run({"init", "pipeline=5", "copies=2", "exit=0"}));
  EXPECT_THAT(file.OfKind(pb::KIND_EVENT_RECORD), SizeIs(6));
  EXPECT_THAT(file.OfKind(pb::KIND_SYNC), SizeIs(7));  // 5 waits, an event, a stream
  EXPECT_THAT(file.OfKind(pb::KIND_MEMCPY), SizeIs(4));
  EXPECT_THAT(file.OfKind(pb::KIND_MEMSET), SizeIs(2));
}

}  // namespace
}  // namespace daydream::tracer
