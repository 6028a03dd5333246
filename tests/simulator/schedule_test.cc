#include "simulator/schedule.h"

#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <string_view>

#include "tests/simulator/play.h"

namespace daydream {
namespace {

std::string Play(std::string_view text, SimulateOptions options = {}) {
  return PlayedBy(text, [&](const Graph& g) { return Schedule(g, options); });
}

TEST(Schedule, HigherPriorityGoesFirst) {
  EXPECT_EQ(Play("lane c channel priority\nx c data 5ns\ny c data 3ns priority=1"), "3-8 0-3");
}

TEST(Schedule, RunningTasksAreNotInterrupted) {
  EXPECT_EQ(Play("lane c channel priority\nx c data 5ns\n"
                 "y c data 3ns priority=1 earliest 1ns\nz c data 1ns"),
            "0-5 5-8 8-9");
}

TEST(Schedule, EqualPrioritiesGoByReadyTimeThenTaskId) {
  EXPECT_EQ(Play("lane c channel priority\nw c data 9ns\nx c data 1ns earliest 5ns\n"
                 "y c data 1ns earliest 4ns\nz c data 1ns earliest 5ns"),
            "0-9 10-11 9-10 11-12");
}

TEST(Schedule, FreeLaneDoesNotWaitForMoreUrgentWork) {
  EXPECT_EQ(Play("lane c channel priority\nx c data 5ns earliest 1ns\n"
                 "y c data 3ns priority=9 earliest 2ns"),
            "1-6 6-9");
}

TEST(Schedule, WorkThatBecomesReadyAtOnceCanBeChosen) {
  // x ends at 2 and makes y ready at the instant at which the lane is free.
  EXPECT_EQ(Play("lane a thread\nlane c channel priority\nx a host 2ns\n"
                 "p c data 2ns\nq c data 5ns\ny c data 1ns priority=1 after x"),
            "0-2 0-2 3-8 2-3");
}

TEST(Schedule, GapKeepsTheLaneBusy) {
  EXPECT_EQ(Play("lane c channel priority\nx c data 5ns gap 2ns\ny c data 1ns"), "0-5 7-8");
}

TEST(Schedule, WaitHoldsTheLane) {
  EXPECT_EQ(Play("lane c channel priority\nlane s stream\nk s kernel 20ns\n"
                 "x c data 5ns priority=1 until k\ny c data 1ns"),
            "0-20 0-20 20-21");
}

TEST(Schedule, LanesOfFixedOrderKeepIt) {
  EXPECT_EQ(Play("lane c channel\nx c data 5ns\ny c data 3ns priority=1"), "0-5 5-8");
}

TEST(Schedule, BlockersFollowTheOrderThatWasPlayed) {
  const Graph g = ParseGraph(
                      "lane c channel priority\nx c data 5ns\ny c data 3ns priority=1\n"
                      "z c data 3ns earliest 50ns")
                      .value();
  const Timeline t = Schedule(g, {.blockers = true}).value();
  EXPECT_EQ(t.start_blocker[0].task, TaskId(1));
  EXPECT_EQ(t.start_blocker[0].edge, Blocker::kLane);
  EXPECT_EQ(t.start_blocker[1].edge, Blocker::kNothing);
  EXPECT_EQ(t.start_blocker[2].edge, Blocker::kNothing);
}

// With priorities, less work can take longer (Graham's anomaly): the reason why the property
// "longer task, never earlier end" is only tested on lanes of fixed order.
TEST(Schedule, ShorterTaskCanMakeTheWholeLonger) {
  constexpr std::string_view kGraph =
      "lane a thread\nlane c channel priority\nx a host {}ns\n"
      "p c data 10ns after x\nq c data 4ns earliest 4ns priority=1\n"
      "lane d stream\nk d kernel 30ns after q\n";
  auto makespan = [&](int x) {
    const Graph g = ParseGraph(fmt::format(fmt::runtime(kGraph), x)).value();
    return Schedule(g)->makespan;
  };
  EXPECT_LT(makespan(4), makespan(3));
}

}  // namespace
}  // namespace daydream
