// Ranks played together: matching, clocks, Meetings and Ghosts, on a sketch and on recorded ones.
#include "simulator/ranks/joint_replay.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "tests/graph/trace_sketch.h"
#include "tests/real_traces.h"
#include "trace/importer.h"

namespace daydream {
namespace {

using testing::HasSubstr;

struct JointSketch {
  std::vector<std::shared_ptr<const Trace>> traces;
  std::vector<BuiltGraph> built;
  std::vector<RankCollectives> ranks;
  std::vector<Duration> given;
  MatchedRanks matched;
  ClockShifts clocks;
  std::vector<Duration> begin;
  Meetings meetings;

  void Match() {
    matched = MatchCollectives(ranks);
    clocks = FindClockShifts(ranks, matched, given);
    begin = clocks.shift;
    const Duration first = *std::min_element(begin.begin(), begin.end());
    for (Duration& d : begin) d -= first;
    meetings = FindMeetings(ranks, matched, begin);
  }

  std::vector<const Graph*> Graphs() const {
    std::vector<const Graph*> graphs;
    for (const BuiltGraph& b : built) graphs.push_back(&b.graph);
    return graphs;
  }

  struct Played {
    JointReplay replay;
    double duration_error = 0, span_error = 0;
  };
  Played Play(std::span<const Graph* const> graphs, double transfers = 1,
              TransferFrom from = TransferFrom::kClass) const {
    std::vector<Duration> transfer = TransfersOf(meetings, from);
    for (Duration& d : transfer) d = d.Scaled(transfers);
    const JointGraph joint = JoinGraphs(graphs, ranks, matched, meetings, transfer, begin);
    auto replay = ReplayRanks(joint, graphs);
    EXPECT_TRUE(replay.ok()) << replay.status();
    Played played{*std::move(replay)};
    double off = 0, all = 0;
    for (const MatchedRow& row : matched.rows) {
      for (const RowMember& m : row.members) {
        const RankCollective& c = ranks[m.rank].all[m.collective];
        const TaskId end = joint.task[m.rank][c.task.index()];
        const TaskId came = joint.arrival[m.rank][c.task.index()];
        if (!came.valid()) continue;
        const Duration now =
            played.replay.timeline.end[end.index()] - played.replay.timeline.start[came.index()];
        off += std::abs(static_cast<double>((now - (c.end - c.start)).ns));
        all += static_cast<double>((c.end - c.start).ns);
      }
    }
    if (all > 0) played.duration_error = off / all;
    return played;
  }
  Played Play(double transfers = 1) const { return Play(Graphs(), transfers); }

  // Host work of `rank` (all when below 0) takes `factor` times as long.
  Played WithHosts(std::initializer_list<int> of, double factor) const {
    std::vector<Graph> graphs;
    for (const BuiltGraph& b : built) graphs.push_back(b.graph);
    for (int r : of) {
      Graph& graph = graphs[static_cast<size_t>(r)];
      for (size_t i = 0; i < graph.size(); ++i) {
        Task& task = graph.mutable_task(TaskId(i));
        if (!IsHost(task.kind) || task.kind == TaskKind::kWait) continue;
        task.duration = task.duration.Scaled(factor);
        if (task.gap > Duration{}) task.gap = task.gap.Scaled(factor);
      }
    }
    std::vector<const Graph*> pointers;
    pointers.reserve(graphs.size());
    for (const Graph& g : graphs) pointers.push_back(&g);
    return Play(pointers);
  }
};

// Two ranks with one all-reduce: rank 1 computes longer and arrives last.
JointSketch TwoRanks() {
  JointSketch run;
  for (int r : {0, 1}) {
    TraceSketch sketch;
    const LaneId cpu = sketch.Thread(), gpu = sketch.Stream();
    const double compute = r == 0 ? 100 : 300;
    sketch.Launch(cpu, gpu, "gemm", 0, 10, 10, compute);
    // Both end at 410 us: the transfer takes 100.
    sketch.Launch(cpu, gpu, "ncclKernel_AllReduce", 20, 10, 10 + compute, 400 - compute);
    run.traces.push_back(sketch.Build());
    auto built = BuildGraph(run.traces.back());
    EXPECT_TRUE(built.ok()) << built.status();
    run.built.push_back(*std::move(built));
    run.ranks.push_back(DescribeCollectives(run.built.back().graph, {.rank = r, .world_size = 2}));
    run.given.push_back({});
  }
  run.Match();
  return run;
}

TEST(JointReplay, WaitsAreComputedFromArrivals) {
  const JointSketch run = TwoRanks();
  ASSERT_EQ(run.matched.rows.size(), 1u);
  EXPECT_TRUE(run.matched.problems.empty());
  EXPECT_EQ(run.meetings.rows[0].transfer, Duration::Us(100));
  const JointSketch::Played played = run.Play();
  EXPECT_LT(played.duration_error, 1e-9);
  const auto& ranks = played.replay.ranks;
  EXPECT_EQ(ranks[0].wait, Duration::Us(200));
  EXPECT_EQ(ranks[1].wait, Duration{});
  EXPECT_EQ(ranks[0].transfer, Duration::Us(100));
  EXPECT_EQ(ranks[0].last, 0u);
  EXPECT_EQ(ranks[1].last, 1u);
  EXPECT_EQ(ranks[0].own_cycle, Duration::Us(210));
  EXPECT_EQ(ranks[1].own_cycle, Duration::Us(410));
  EXPECT_EQ(ranks[1].exposed, Duration::Us(100));
  EXPECT_EQ(played.replay.window, Duration::Us(410));
  EXPECT_EQ(played.replay.period, Duration::Us(410));
}

TEST(JointReplay, AGhostStandsForAMemberWithoutAFile) {
  JointSketch run = TwoRanks();
  run.traces.pop_back(), run.built.pop_back(), run.ranks.pop_back(), run.given.pop_back();
  run.Match();
  EXPECT_THAT(run.matched.problems, testing::SizeIs(1));
  EXPECT_EQ(run.matched.problems[0].kind, ProblemKind::kNotRecorded);
  EXPECT_THAT(run.matched.problems[0].ranks, testing::ElementsAre(1));
  // Nothing but one kernel is known: it takes as long as it did.
  EXPECT_EQ(run.Play().replay.window, Duration::Us(410));
}

TEST(Matching, AnOppositeOrderIsADeadlockThatNamesBoth) {
  std::vector<RankCollectives> ranks(2);
  for (int r : {0, 1}) {
    ranks[r].rank = {r, 2};
    ranks[r].communicators.push_back({.name = "0", .members = {0, 1}, .size = 2, .order = {0, 1}});
    for (int i : {0, 1}) {
      RankCollective c;
      c.kind = CollectiveKind::kAllReduce, c.bytes = 1000;
      c.sequence = 340 + (r == 0 ? i : 1 - i);
      ranks[r].all.push_back(c);
    }
  }
  const MatchedRanks matched = MatchCollectives(ranks);
  ASSERT_TRUE(matched.deadlock());
  EXPECT_THAT(matched.problems[0].message,
              testing::AllOf(HasSubstr("#340 before"), HasSubstr("#341 on rank 0,"),
                             HasSubstr("after it on rank 1")));
}

// Nothing but its number says where a collective belongs: one whose op was not recorded may be
// between any two.
TEST(Matching, ACollectiveWithoutNumberIsInNoOrder) {
  std::vector<RankCollectives> ranks(2);
  for (int r : {0, 1}) {
    ranks[r].rank = {r, 2};
    ranks[r].communicators.push_back(
        {.name = "0", .members = {0, 1}, .size = 2, .order = {0, 1, 2}});
    for (int64_t number : {340, -1, 341}) {
      ranks[r].all.push_back(
          {.kind = CollectiveKind::kAllReduce, .bytes = 1000, .sequence = number});
    }
  }
  const MatchedRanks matched = MatchCollectives(ranks);
  EXPECT_TRUE(matched.problems.empty());
  EXPECT_THAT(matched.rows, testing::SizeIs(2));
  EXPECT_EQ(matched.unmatched, 2u);
  // With no other rank there is nobody to disagree with.
  ranks.pop_back();
  ranks[0].all[2].sequence = 339;
  const MatchedRanks alone = MatchCollectives(ranks);
  EXPECT_FALSE(alone.deadlock());
  EXPECT_THAT(alone.rows, testing::SizeIs(3));
}

TEST(Matching, ADifferentSizeIsAMismatchAndLeftOut) {
  std::vector<RankCollectives> ranks(3);
  for (int r : {0, 1, 2}) {
    ranks[r].rank = {r, 3};
    ranks[r].communicators.push_back({.name = "0", .members = {0, 1, 2}, .size = 3, .order = {0}});
    RankCollective c;
    c.kind = CollectiveKind::kAllReduce, c.bytes = r == 1 ? 5 : 1000, c.sequence = 7;
    ranks[r].all.push_back(c);
  }
  const MatchedRanks matched = MatchCollectives(ranks);
  ASSERT_EQ(matched.problems[0].kind, ProblemKind::kMismatch);
  EXPECT_THAT(matched.problems[0].ranks, testing::ElementsAre(1));
  EXPECT_EQ(
      matched.problems[0].message,
      "rank 1 does all_reduce of 5 B #7 where ranks 0, 2 do all_reduce of 1 kB #7, in group 0 "
      "(ranks 0 to 2)");
  EXPECT_EQ(matched.problems[0].communicator, "group 0 (ranks 0 to 2)");
  EXPECT_EQ(matched.problems[0].sequence, 7);
  EXPECT_EQ(matched.rows[0].members.size(), 2u);
  EXPECT_EQ(matched.unmatched, 1u);
  // What is there, and does something else, is not lacking.
  EXPECT_THAT(matched.problems, testing::SizeIs(1));
}

// Rule N3 on one rank of several: a message can be sent in pieces, so none takes more than a
// shorter one does, times as often as it goes into it (sums of the study of these traces).
TEST(Meetings, TransfersOfOneRankAreBoundByThoseOfOtherSizes) {
  const std::pair<const char*, double> kSums[] = {
      {"training/recsys-a100-rank3of8.json.gz", 62.8},
      {"gpus/resnet50-bs32.a100-ddp2.json.gz", 30.5},
      {"training/recsys-a100-compiled-graphs-rank0of16.json.gz", 123.8}};
  for (const auto& [file, sum] : kSums) {
    const auto path = RealTraceFolder() / file;
    std::error_code error;
    if (!std::filesystem::exists(path, error)) GTEST_SKIP() << "no " << path;
    const auto trace = ImportFile(path.string(), {});
    ASSERT_TRUE(trace.ok()) << trace.status();
    JointSketch run;
    auto built = BuildGraph(*trace);
    ASSERT_TRUE(built.ok()) << built.status();
    run.ranks.push_back(DescribeCollectives(built->graph, (*trace)->ranks[0]));
    run.given.push_back({});
    run.Match();
    double least = 0;
    for (const TransferClass& c : run.meetings.classes) {
      // The study knows nothing of what was launched before the recording began.
      if (c.bytes == 0 && c.kind == CollectiveKind::kSendRecv) continue;
      least += c.least.ms() * static_cast<double>(c.count);
      for (const TransferClass& o : run.meetings.classes) {
        if (o.kind != c.kind || o.size != c.size || o.bytes == 0 || o.bytes > c.bytes) continue;
        const double pieces = static_cast<double>(c.bytes) / static_cast<double>(o.bytes);
        EXPECT_LE(c.least.ms(), o.least.ms() * pieces + 2e-6);  // whole nanoseconds
        EXPECT_GE(c.least.ms(), o.least.ms() - 2e-6);
      }
    }
    EXPECT_NEAR(least, sum, 0.1) << file;
  }
}

// --- eight ranks of a tensor-parallel step (numbers of the study of these traces)

class Megatron : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    run_ = new JointSketch;
    for (int r = 0; r < 8; ++r) {
      const auto path =
          RealTraceFolder() / "ranks" / "megatron-tp8" / fmt::format("rank{}.json.gz", r);
      std::error_code error;
      if (!std::filesystem::exists(path, error)) return;
      auto trace = ImportFile(path.string(), {});
      ASSERT_TRUE(trace.ok()) << trace.status();
      run_->traces.push_back(*trace);
      auto built = BuildGraph(*trace);
      ASSERT_TRUE(built.ok()) << built.status();
      run_->built.push_back(*std::move(built));
      run_->ranks.push_back(DescribeCollectives(run_->built.back().graph, (*trace)->ranks[0]));
      run_->given.push_back(Duration{(*trace)->clock_origin_ns - run_->traces[0]->clock_origin_ns});
    }
    run_->Match();
  }
  static void TearDownTestSuite() { delete run_; }
  void SetUp() override {
    if (run_->traces.size() != 8) GTEST_SKIP() << "no traces/ranks/megatron-tp8 beside the tree";
  }
  static void Near(Duration got, double ms) { EXPECT_NEAR(got.ms(), ms, 0.002 * ms); }
  static std::vector<size_t> Last(const JointSketch::Played& p) {
    std::vector<size_t> last;
    for (const RankAccount& a : p.replay.ranks) last.push_back(a.last);
    return last;
  }
  static JointSketch* run_;
};
JointSketch* Megatron::run_ = nullptr;

TEST_F(Megatron, OneTransferAClassReproducesEveryWait) {
  EXPECT_EQ(run_->matched.rows.size(), 84u);
  EXPECT_TRUE(run_->matched.problems.empty());
  ASSERT_EQ(run_->meetings.classes.size(), 2u);
  const JointSketch::Played p = run_->Play();
  EXPECT_LE(p.duration_error, 0.01);  // 0.82 %
  Near(p.replay.window, 651.96);
  Near(p.replay.period, 632.53);
  EXPECT_THAT(Last(p), testing::ElementsAre(32, 0, 3, 3, 0, 0, 46, 0));
  Near(p.replay.ranks[0].wait + p.replay.ranks[0].transfer, 240.0);
  Near(p.replay.ranks[4].wait + p.replay.ranks[4].transfer, 495.1);
}

TEST_F(Megatron, WhatIfsAreThoseOfTheReference) {
  JointSketch::Played p = run_->WithHosts({0}, 0.95);
  Near(p.replay.window, 645.00);
  Near(p.replay.period, 632.53);
  p = run_->WithHosts({0}, 0.5);
  EXPECT_THAT(Last(p), testing::ElementsAre(1, 0, 12, 9, 0, 2, 59, 1));
  p = run_->WithHosts({6}, 0.9);
  Near(p.replay.window, 651.96);
  EXPECT_THAT(Last(p), testing::ElementsAre(38, 2, 7, 7, 1, 2, 26, 1));
  p = run_->WithHosts({0, 6}, 0.9);
  Near(p.replay.window, 634.53);
  EXPECT_NEAR(run_->WithHosts({5}, 0.98).replay.period.ms(), 627.18, 0.1);
  p = run_->WithHosts({0}, 2);
  Near(p.replay.window, 1254);
  Near(p.replay.period, 1206.6);
  p = run_->WithHosts({0, 1, 2, 3, 4, 5, 6, 7}, 0.5);
  Near(p.replay.window, 350.8);
  Near(p.replay.period, 324.9);
  Near(run_->Play(2).replay.window, 651.99);
  Near(run_->Play(2).replay.period, 632.53);
  Near(run_->Play(10).replay.window, 683.7);
  Near(run_->Play(10).replay.period, 664.7);
}

TEST_F(Megatron, FalseClocksAreFound) {
  const int64_t off_ms[] = {40, -30, 50, -50, 7, 0, -12, 33};
  JointSketch run = *run_;
  std::vector<Duration> truth = run.clocks.shift;
  for (size_t r = 0; r < 8; ++r) run.given[r] += Duration::Ms(off_ms[r]);
  run.Match();
  std::vector<int64_t> difference;
  for (size_t r = 0; r < 8; ++r) {
    difference.push_back((run.clocks.shift[r] - truth[r] - (run.clocks.shift[0] - truth[0])).ns);
  }
  for (int64_t d : difference) EXPECT_LE(std::abs(d), 20'000);
  Near(run.Play().replay.period, 632.53);
}

TEST_F(Megatron, EachRankCanBeMissing) {
  for (size_t missing = 0; missing < 8; ++missing) {
    JointSketch run = *run_;
    const auto at = static_cast<ptrdiff_t>(missing);
    run.traces.erase(run.traces.begin() + at), run.built.erase(run.built.begin() + at);
    run.ranks.erase(run.ranks.begin() + at), run.given.erase(run.given.begin() + at);
    run.Match();
    const JointSketch::Played p = run.Play();
    EXPECT_LE(p.duration_error, 0.01) << missing;
    // The longest own cycle is that of rank 5, whoever else was not recorded.
    Near(p.replay.period, missing == 5 ? 627.18 : 632.53);
    if (missing == 7) Near(run.WithHosts({5}, 0.9).replay.period, 627.19);
    ASSERT_EQ(run.matched.problems.size(), 1u);
    EXPECT_THAT(run.matched.problems[0].ranks, testing::ElementsAre(missing));
    if (missing == 0) {
      EXPECT_GT(run.meetings.ghosts, 20u);
    }
    if (missing == 1 || missing == 4 || missing == 5 || missing == 7) {
      EXPECT_LE(run.meetings.ghosts, 5u) << missing;
    }
  }
}

TEST_F(Megatron, WithoutNumbersTheShiftIsFoundWhereWindowsAreCut) {
  JointSketch run = *run_;
  run.given[3] += Duration::Ms(40), run.given[5] -= Duration::Ms(30);
  for (size_t r = 0; r < 8; ++r) {
    RankCollectives& own = run.ranks[r];
    for (RankCollective& c : own.all) c.sequence = -1;
    if (r != 2 && r != 5) continue;
    own.communicators[0].order.erase(own.communicators[0].order.begin(),
                                     own.communicators[0].order.begin() + 10);
  }
  run.Match();
  EXPECT_TRUE(run.matched.by_order);
  ASSERT_EQ(run.matched.rows.size(), 84u);
  EXPECT_EQ(run.matched.rows[9].members.size(), 6u);
  for (size_t i = 10; i < 84; ++i) {
    ASSERT_EQ(run.matched.rows[i].members.size(), 8u);
    for (const RowMember& m : run.matched.rows[i].members) EXPECT_EQ(m.collective, i);
  }
  EXPECT_LE(run.Play().duration_error, 0.01);
}

}  // namespace
}  // namespace daydream
