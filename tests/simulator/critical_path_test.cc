#include "simulator/critical_path.h"

#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <string_view>

#include "graph/text.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

std::string PathOf(std::string_view text, TaskId until = TaskId::None()) {
  const Graph g = ParseGraph(text).value();
  const Timeline t = Simulate(g, {.blockers = true}).value();
  std::string result;
  for (const PathSegment& s : CriticalPath(g, t, until)) {
    fmt::format_to(std::back_inserter(result), "{}{}-{} {}{}", result.empty() ? "" : ", ",
                   s.begin.ns, s.end.ns, s.lag ? "to " : "", g.TaskName(s.task));
  }
  return result;
}

constexpr std::string_view kExample = R"(
lane a thread
lane s stream
a0 a call 5ns gap 1ns "launch"
k0 s kernel 40ns "gemm" after a0 launch +2ns
a1 a call 3ns "launch2"
c0 s collective 10ns "reduce" after a1 launch +2ns
a2 a wait "sync" until c0 hostwait +4ns
a3 a host 3ns "print")";

TEST(CriticalPath, WalksBackThroughWhatDecided) {
  EXPECT_EQ(PathOf(kExample),
            "0-5 launch, 5-7 to gemm, 7-47 gemm, 47-57 reduce, 57-61 to sync, 61-64 print");
}

TEST(CriticalPath, EndsAtTheTaskAskedFor) {
  EXPECT_EQ(PathOf(kExample, TaskId(2)), "0-5 launch, 5-6 to launch2, 6-9 launch2");
}

TEST(CriticalPath, SharesSumToItsLength) {
  const Graph g = ParseGraph(kExample).value();
  const Timeline t = Simulate(g, {.blockers = true}).value();
  const BoundBy sum = SumByResource(CriticalPath(g, t));
  EXPECT_EQ(sum.gpu, Duration::Ns(40));
  EXPECT_EQ(sum.comm, Duration::Ns(10));
  EXPECT_EQ(sum.cpu, Duration::Ns(14));
  EXPECT_EQ(sum.data, Duration());
}

TEST(CriticalPath, NegativeLagLeavesOutTheWorkAfterIt) {
  EXPECT_EQ(PathOf("lane a thread\nlane s stream\nk s memcpy 10ns \"copy\"\n"
                   "w a wait \"call\" until k -4ns\nx a host 50ns \"work\""),
            "0-6 copy, 6-56 work");
}

TEST(CriticalPath, NegativeLagMaySkipAWholeTask) {
  EXPECT_EQ(PathOf("lane a thread\nlane s stream\nj s kernel 10ns \"gemm\"\n"
                   "k s memcpy 3ns \"copy\"\nw a wait \"call\" until k -6ns\n"
                   "x a host 50ns \"work\""),
            "0-7 gemm, 7-57 work");
}

TEST(CriticalPath, BeginsWhereNothingElseDecided) {
  EXPECT_EQ(PathOf("lane a thread\nx a host 5ns \"x\" earliest 9ns"), "9-14 x");
}

TEST(CriticalPath, OverlappingTasksHangOnAStart) {
  EXPECT_EQ(PathOf("lane s stream\nx s kernel 5ns \"x\"\ny s kernel 9ns \"y\"\n"
                   "z s kernel 30ns \"z\" overlaps"),
            "0-5 x, 5-35 z");
}

TEST(CriticalPath, OfNothingIsEmpty) { EXPECT_EQ(PathOf(""), ""); }

}  // namespace
}  // namespace daydream
