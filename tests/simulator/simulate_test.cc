#include "simulator/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "graph/text.h"
#include "graph/validate.h"
#include "tests/simulator/play.h"

namespace daydream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Play(std::string_view text) {
  return PlayedBy(text, [](const Graph& g) { return Simulate(g); });
}

constexpr char kLanes[] = "lane a thread\nlane s stream\nlane u stream\n";

std::string PlayOn(std::string_view tasks) { return Play(kLanes + std::string(tasks)); }

TEST(Simulate, LaneStaysBusyDuringGap) {
  EXPECT_EQ(PlayOn("x a host 5ns gap 3ns\ny a host 2ns"), "0-5 8-10");
}

TEST(Simulate, NegativeGapLetsTheNextTaskStartEarlier) {
  EXPECT_EQ(PlayOn("x s kernel 5ns gap -2ns\ny s kernel 4ns"), "0-5 3-7");
}

TEST(Simulate, LaneDoesOneThingAtATime) {
  // x reaches further than y, which follows it with a negative gap in between.
  EXPECT_EQ(PlayOn("x s kernel 50ns gap 0\ny s kernel 2ns overlaps\nz s kernel 1ns"),
            "0-50 0-2 50-51");
}

TEST(Simulate, OverlappingTaskWaitsForTheStartOfItsPredecessor) {
  EXPECT_EQ(PlayOn("x s kernel 5ns earliest 7ns\ny s kernel 9ns overlaps\nz s kernel 1ns"),
            "7-12 7-16 16-17");
}

TEST(Simulate, OverlappingTaskMayBeFirst) { EXPECT_EQ(PlayOn("x s kernel 5ns overlaps"), "0-5"); }

TEST(Simulate, LaunchStartsAfterTheCallAndItsLag) {
  EXPECT_EQ(PlayOn("x a call 5ns\ny s kernel 9ns after x launch +2ns"), "0-5 7-16");
}

TEST(Simulate, NegativeLagStartsBeforeTheEnd) {
  EXPECT_EQ(PlayOn("x a call 5ns\ny s kernel 9ns after x launch -2ns"), "0-5 3-12");
}

TEST(Simulate, NothingStartsBeforeZero) {
  EXPECT_EQ(PlayOn("x a call 5ns\ny s kernel 9ns after x launch -20ns"), "0-5 0-9");
}

TEST(Simulate, EdgesMayLeaveFromAStart) {
  EXPECT_EQ(PlayOn("x a call 5ns earliest 3ns\ny s kernel 9ns after x:start +1ns"), "3-8 4-13");
}

TEST(Simulate, WaitEndsWithWhatItWaitsFor) {
  EXPECT_EQ(PlayOn("x a call 5ns\ny s kernel 9ns after x\nw a wait until y +1ns\nz a host 1ns"),
            "0-5 5-14 5-15 15-16");
}

TEST(Simulate, WaitThatComesLateDoesNotWait) {
  EXPECT_EQ(PlayOn("y s kernel 9ns\nx a host 50ns\nw a wait until y +1ns"), "0-9 0-50 50-50");
}

TEST(Simulate, WaitNeverEndsBeforeItsStartOrItsOwnWork) {
  EXPECT_EQ(PlayOn("y s kernel 9ns\nx a host 3ns\nw a call 8ns until y -20ns"), "0-9 0-3 3-11");
}

TEST(Simulate, TaskStartsNoEarlierThanItsEarliest) {
  EXPECT_EQ(PlayOn("x a host 5ns earliest 100ns\ny a host 1ns earliest 2ns"), "100-105 105-106");
}

TEST(Simulate, LatestOfManyEdgesCounts) {
  EXPECT_EQ(PlayOn(R"(
p a host 1ns
q a host 1ns
r a host 1ns
k s kernel 2ns after p +1ns after q +9ns after r +3ns after p:start +2ns
w u kernel 1ns until p +1ns until q +50ns until k +3ns)"),
            "0-1 1-2 2-3 11-13 0-52");
}

TEST(Simulate, LagsMayBeLong) {
  EXPECT_EQ(PlayOn("x a host 1ns\ny s kernel 1ns after x +60s until x +70s"),
            "0-1 60000000001-70000000001");
}

TEST(Simulate, RemovedTaskTakesNoTimeButKeepsOrder) {
  EXPECT_EQ(PlayOn("x a host 5ns\nr a host 7ns gap 9ns removed\ny a host 1ns"), "0-5 5-5 5-6");
  EXPECT_EQ(PlayOn(R"(
x a host 5ns
r s kernel 7ns removed after x +2ns
y u kernel 1ns after r)"),
            "0-5 7-7 7-8");
}

TEST(Simulate, RemovedTaskStillEndsWithWhatItWaitsFor) {
  EXPECT_EQ(PlayOn("k s kernel 9ns\nr a call 7ns removed until k\nx a host 1ns"), "0-9 0-9 9-10");
}

TEST(Simulate, EmptyGraphTakesNoTime) {
  const auto timeline = Simulate(Graph());
  ASSERT_TRUE(timeline.ok());
  EXPECT_EQ(timeline->makespan, Duration());
  EXPECT_EQ(StepTime(Graph(), *timeline), Duration());
}

TEST(Simulate, CycleIsAnErrorThatNamesIt) {
  for (const char* order : {"", " priority"}) {
    const Graph g = ParseGraph(fmt::format("lane a thread\nlane b stream{}\nx a host \"one\" after "
                                           "y\ny b kernel \"two\" after x",
                                           order))
                        .value();
    const auto timeline = Simulate(g);
    ASSERT_FALSE(timeline.ok());
    EXPECT_EQ(timeline.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(Message(timeline.status())), HasSubstr("task 0 'one'"));
  }
}

TEST(Plan, RefusesLanesThatMayReorder) {
  EXPECT_FALSE(Plan::Make(ParseGraph("lane a channel priority").value()).ok());
}

TEST(Blockers, SayWhatDecided) {
  const Graph g = ParseGraph(R"(
lane a thread
lane s stream
x a call 5ns gap 1ns earliest 2ns
k s kernel 9ns after x:start +5ns after x launch
w a wait until k
z a host 1ns)")
                      .value();
  const Timeline t = Simulate(g, {.blockers = true}).value();
  const auto expect = [](const Blocker& b, TaskId task, uint32_t edge) {
    EXPECT_EQ(b.task, task);
    EXPECT_EQ(b.edge, edge);
  };
  expect(t.start_blocker[0], TaskId::None(), Blocker::kNothing);
  expect(t.end_blocker[0], TaskId(0), Blocker::kOwnWork);
  expect(t.start_blocker[1], TaskId(0), 0);  // a tie: the first edge
  expect(t.start_blocker[2], TaskId(0), Blocker::kLane);
  expect(t.end_blocker[2], TaskId(1), 2);
  expect(t.start_blocker[3], TaskId(2), Blocker::kLane);
}

TEST(Blockers, NameTheTaskThatHeldTheLane) {
  const Graph g = ParseGraph(
                      "lane s stream\nx s kernel 9ns\ny s kernel 2ns overlaps\n"
                      "z s kernel 1ns")
                      .value();
  const Timeline t = Simulate(g, {.blockers = true}).value();
  EXPECT_EQ(t.start_blocker[1].task, TaskId(0));
  EXPECT_EQ(t.start_blocker[2].task, TaskId(0));
}

constexpr char kSteps[] = R"(
lane a thread
lane s stream
step "0" unmeasured
step "1"
step "2"
step "3"
x0 a host 5ns
k0 s kernel 10ns after x0
x1 a host 5ns step=1
k1 s kernel 10ns step=1 after x1
r1 s kernel 10ns step=1 removed after k1 +3ns
x2 a host 50ns step=2
x3 a host 1ns step=3
k3 s kernel 100ns step=3 after x3
)";

TEST(Steps, PeriodRunsFromGpuEndToGpuEnd) {
  const Graph g =
      ParseGraph(
          "lane a thread\nlane s stream\nstep \"0\"\nstep \"1\"\nstep \"2\"\nstep \"3\"\n"
          "x0 a host 9ns\nk0 s kernel 3ns after x0\nx1 a host 9ns step=1\n"
          "k1 s kernel 40ns step=1 after x1\nx2 a host 9ns step=2\nk2 s kernel 5ns step=2 after "
          "x2\n"
          "x3 a host 60ns step=3\nk3 s kernel 5ns step=3 after x3\n")
          .value();
  // Starts: 9, 18, 58 (behind the long kernel), 87 (behind the host); ends: 12, 58, 63, 92.
  EXPECT_THAT(StepPeriods(g, Simulate(g).value()),
              ElementsAre(Duration::Ns(58 - 12), Duration::Ns(63 - 58), Duration::Ns(92 - 63)));
}

TEST(Steps, WithoutGpuWorkBeginWhereTheOneBeforeEnds) {
  const Graph g = ParseGraph(kSteps).value();
  const Timeline t = Simulate(g).value();
  // GPU ends: 15, 28 (the removed kernel still marks it), 161. The host work of step 2 ends at 60.
  EXPECT_THAT(StepPeriods(g, t),
              ElementsAre(Duration::Ns(13), Duration::Ns(32), Duration::Ns(101)));
  EXPECT_EQ(StepTime(g, t), Duration::Ns(49)) << "their mean";
}

TEST(Steps, OnlyMeasuredStepsCount) {
  Graph g = ParseGraph(kSteps).value();
  const Timeline t = Simulate(g).value();
  g.mutable_step(1).measured = false;
  EXPECT_EQ(StepTime(g, t), Duration::Ns(66));  // mean of 32 and 101
  for (size_t i = 0; i < 4; ++i) g.mutable_step(i).measured = false;
  EXPECT_EQ(StepTime(g, t), Duration::Ns(49)) << "none counts: all do";
}

TEST(Steps, OneStepTakesTheWholeLength) {
  const Graph g = ParseGraph("lane a thread\nstep \"0\"\nx a host 5ns earliest 3ns").value();
  EXPECT_THAT(StepPeriods(g, Simulate(g).value()), ElementsAre(Duration::Ns(5)));
  EXPECT_EQ(StepTime(g, Simulate(g).value()), Duration::Ns(5));
}

}  // namespace
}  // namespace daydream
