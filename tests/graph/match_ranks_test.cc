// Which collectives of which ranks are one: by communicator and number, or by order.
#include "graph/ranks/match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "tests/graph/trace_sketch.h"

namespace daydream {
namespace {

TEST(Matching, RanksWithoutAFileAreNamedInRanges) {
  std::vector<RankCollectives> ranks(2);
  for (int r : {0, 1}) {
    ranks[r].rank = {r == 0 ? 0 : 4, 40};
    ranks[r].communicators.push_back({.name = "0", .members = {}, .size = 40, .order = {0}});
    ranks[r].all.push_back({.kind = CollectiveKind::kAllReduce, .bytes = 1000});
  }
  const MatchedRanks matched = MatchCollectives(ranks);
  ASSERT_THAT(matched.problems, testing::SizeIs(1));
  EXPECT_THAT(matched.problems[0].message,
              testing::StartsWith("ranks 1 to 3, 5 to 39 not recorded: their arrivals"));
}

// Chakra plans, and NCCL kernels alone, do not tell how large a group is.
TEST(Matching, AGroupOfUnknownSizeHasThoseThatWereRecorded) {
  std::vector<RankCollectives> ranks(3);
  for (int r : {0, 1, 2}) {
    ranks[r].rank = {r, 3};
    ranks[r].communicators.push_back({.name = "0", .members = {}, .size = 0, .order = {0}});
    ranks[r].all.push_back({.kind = CollectiveKind::kAllReduce, .bytes = 1000});
  }
  const MatchedRanks matched = MatchCollectives(ranks);
  ASSERT_THAT(matched.rows, testing::SizeIs(1));
  EXPECT_EQ(matched.rows[0].size, 3);
  EXPECT_TRUE(matched.rows[0].whole());
}

// A group of three in a run of six.
TEST(Matching, RanksOutsideOfAllRecordedGroupsAreNamed) {
  std::vector<RankCollectives> ranks(2);
  for (int r : {0, 1}) {
    ranks[r].rank = {r, 6};
    ranks[r].communicators.push_back({.name = "0", .members = {0, 1, 3}, .size = 3, .order = {0}});
    ranks[r].all.push_back({.kind = CollectiveKind::kAllReduce, .bytes = 1000});
  }
  const MatchedRanks matched = MatchCollectives(ranks);
  ASSERT_THAT(matched.problems, testing::SizeIs(2));
  EXPECT_THAT(matched.problems[0].ranks, testing::ElementsAre(3));
  EXPECT_THAT(matched.problems[1].ranks, testing::ElementsAre(2, 4, 5));
  EXPECT_EQ(matched.problems[1].message,
            "ranks 2, 4, 5 of 6 not recorded: no collective of the others waits for them");
}

// An all-reduce of 4 MB on each of two ranks, four times; rank 1 was recorded from `cut` us on.
std::vector<RankCollectives> RecordedFrom(double cut, int groups = 1) {
  std::vector<RankCollectives> ranks;
  for (int r : {0, 1}) {
    TraceSketch sketch;
    const LaneId cpu = sketch.Thread(), gpu = sketch.Stream();
    for (int i = 0; i < 4; ++i) {
      const double call = 10.0 * i, start = 100 + 100.0 * i;
      const bool launched = r == 0 || call >= cut;
      const std::string group = fmt::format("pointer{}_{} #{}", r, i % groups, 7 + i);
      if (launched) sketch.Call(cpu, "cudaLaunchKernel", call, 5, 50 + static_cast<uint32_t>(i));
      sketch.Collective(gpu, "ncclKernel_AllReduce", start, 90,
                        launched ? 50 + static_cast<uint32_t>(i) : 0, launched ? group : "");
    }
    const auto built = BuildGraph(sketch.Build());
    EXPECT_TRUE(built.ok()) << built.status();
    ranks.push_back(DescribeCollectives(built->graph, {.rank = r, .world_size = 2}));
  }
  return ranks;
}

TEST(Matching, WhatWasLaunchedBeforeTheRecordingIsNumberedBackwards) {
  const auto ranks = RecordedFrom(15);
  EXPECT_THAT(ranks[1].communicators, testing::SizeIs(1));
  const MatchedRanks matched = MatchCollectives(ranks);
  EXPECT_TRUE(matched.problems.empty());
  ASSERT_THAT(matched.rows, testing::SizeIs(4));
  for (const MatchedRow& row : matched.rows) EXPECT_THAT(row.members, testing::SizeIs(2));
  EXPECT_EQ(matched.rows[0].sequence, 7);
  EXPECT_FALSE(matched.by_order);
}

// A stream runs in the order of launches, so what has none was launched before what follows it.
TEST(Matching, AKernelWithoutItsLaunchIsBeforeTheNextOnItsStream) {
  TraceSketch sketch;
  const LaneId cpu = sketch.Thread(), gpu = sketch.Stream();
  sketch.Collective(gpu, "ncclKernel_AllReduce", 100, 90, 0, "");
  sketch.Call(cpu, "cudaLaunchKernel", 10, 5, 51);
  sketch.Collective(gpu, "ncclKernel_AllReduce", 200, 90, 51, "");
  const auto built = BuildGraph(sketch.Build());
  ASSERT_TRUE(built.ok()) << built.status();
  const RankCollectives rank = DescribeCollectives(built->graph, {.rank = 0, .world_size = 2});
  ASSERT_THAT(rank.all, testing::SizeIs(2));
  EXPECT_LT(rank.all[0].start, rank.all[1].start);
}

TEST(Matching, WhatMayBeOfSeveralGroupsStaysApart) {
  const auto ranks = RecordedFrom(15, 2);
  EXPECT_THAT(ranks[1].communicators, testing::SizeIs(2));
  const MatchedRanks matched = MatchCollectives(ranks);
  EXPECT_EQ(matched.unmatched, 2u);
  EXPECT_THAT(matched.rows, testing::SizeIs(4));
}

// Sixty collectives of rank 0; rank 1 lacks those before `first` and from `last` on.
MatchedRanks WindowsApart(int first, int last, bool numbers) {
  std::vector<RankCollectives> ranks(2);
  for (int r : {0, 1}) {
    ranks[r].rank = {r, 2};
    ranks[r].communicators.push_back({.name = "0", .members = {}, .size = 2, .order = {}});
    for (int i = r == 0 ? 0 : first; i < (r == 0 ? 60 : last); ++i) {
      ranks[r].communicators[0].order.push_back(static_cast<uint32_t>(ranks[r].all.size()));
      ranks[r].all.push_back({.kind = CollectiveKind::kAllReduce,
                              .bytes = 1000,
                              .sequence = numbers ? i : -1,
                              .end = Instant::AtNs(1000 * i + 5 * (i * i % 97))});
    }
  }
  return MatchCollectives(ranks);
}

// Lists are moved by 16 at most from equal begins or equal ends; with numbers that is no limit.
TEST(Matching, WindowsThatAreFarApart) {
  for (const bool numbers : {true, false}) {
    const MatchedRanks matched = WindowsApart(40, 60, numbers);
    EXPECT_THAT(matched.rows, testing::SizeIs(60));
    EXPECT_THAT(matched.rows[45].members, testing::SizeIs(2));
    ASSERT_THAT(matched.problems, testing::SizeIs(1));
    EXPECT_EQ(matched.problems[0].message,
              "the recording of rank 1 lacks the first 40 of 60 collectives of a group of 2");
  }
  EXPECT_EQ(WindowsApart(0, 20, false).problems.at(0).message,
            "the recording of rank 1 lacks the last 40 of 60 collectives of a group of 2");
  EXPECT_EQ(
      WindowsApart(30, 50, false).problems.at(0).message,
      "the recording of rank 1 lacks the first 30 and the last 10 of 60 collectives of a group "
      "of 2");
}

}  // namespace
}  // namespace daydream
