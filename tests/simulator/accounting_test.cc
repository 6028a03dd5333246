#include "simulator/accounting.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "graph/text.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

LaneAccount AccountOf(std::string_view text, size_t lane) {
  const Graph g = ParseGraph(text).value();
  return Account(g, Simulate(g).value())[lane];
}

void ExpectNs(const LaneAccount& a, int64_t busy, int64_t waiting, int64_t gap, int64_t idle) {
  EXPECT_EQ(a.busy.ns, busy);
  EXPECT_EQ(a.waiting.ns, waiting);
  EXPECT_EQ(a.gap.ns, gap);
  EXPECT_EQ(a.idle.ns, idle);
}

constexpr std::string_view kExample = R"(
lane a thread
lane s stream
x a call 5ns gap 1ns
k s kernel 40ns after x +2ns
w a wait until k
y a host 3ns gap 9ns)";

TEST(Accounting, SaysWhereEachLaneSpendsItsTime) {
  // x 0-5, gap to 6, w 6-47 waiting, y 47-50; the last gap is after the end of all.
  ExpectNs(AccountOf(kExample, 0), 49, 41, 1, 0);
  ExpectNs(AccountOf(kExample, 1), 40, 0, 0, 10);
}

TEST(Accounting, LastGapCountsUntilTheMakespan) {
  ExpectNs(AccountOf("lane a thread\nlane b thread\nx a host 5ns gap 9ns\ny b host 8ns", 0), 5, 0,
           3, 0);
}

TEST(Accounting, OverlappingTasksCountOnce) {
  ExpectNs(AccountOf("lane s stream\nx s kernel 10ns\ny s kernel 25ns overlaps earliest 5ns\n"
                     "z s kernel 1ns overlaps earliest 8ns",
                     0),
           30, 0, 0, 0);
}

TEST(Accounting, NegativeGapCountsAsNothing) {
  ExpectNs(AccountOf("lane s stream\nx s kernel 10ns gap -4ns\ny s kernel 10ns gap -50ns\n"
                     "z s kernel 3ns",
                     0),
           16, 0, 0, 0);
}

TEST(Accounting, GapUnderAnotherTaskIsBusy) {
  ExpectNs(AccountOf("lane s stream\nx s kernel 10ns gap 5ns\ny s kernel 12ns overlaps", 0), 12, 0,
           0, 0);
}

TEST(Accounting, RemovedTasksCountAsNothing) {
  ExpectNs(AccountOf("lane s stream\nx s kernel 10ns gap 5ns removed\ny s kernel 12ns", 0), 12, 0,
           0, 0);
}

TEST(Accounting, EmptyLaneIsIdle) {
  ExpectNs(AccountOf("lane s stream\nlane e stream\nx s kernel 10ns", 1), 0, 0, 0, 10);
}

}  // namespace
}  // namespace daydream
