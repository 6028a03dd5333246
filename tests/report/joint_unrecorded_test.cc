// What recording cost is taken out of each rank, and out of both sides of a difference: programs as
// they are recorded, and as they are without, of which every time is known. Times are in
// microseconds.
#include "report/questions/joint_unrecorded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/predict/intervals.h"
#include "report/predict/unrecorded.h"
#include "report/questions/diff.h"
#include "tests/graph/built_sketch.h"
#include "trace/collective_group.h"
#include "trace/join/ranks.h"
#include "trace/range_names.h"

namespace daydream {
namespace {

using testing::HasSubstr;

constexpr int kSteps = 6, kLaunches = 8;
constexpr double kTransfer = 30;

// A rank, and what each of its calls and pieces of GPU work costs when it is recorded.
struct Program {
  double host = 20;  // before each of eight launches a step
  double call = 0, work = 0;
  bool recorded() const { return call > 0; }
};

// Steps of launches, an all-reduce and a wait for it, of `ranks` that begin each step together.
std::vector<std::shared_ptr<const Trace>> Record(const std::vector<Program>& ranks,
                                                 double error_ns = 10) {
  std::vector<TraceSketch> sketches(ranks.size());
  std::vector<LaneId> cpu, gpu;
  std::vector<double> now(ranks.size()), gpu_free(ranks.size()), begin(ranks.size());
  std::vector<uint32_t> calls(ranks.size());
  for (TraceSketch& s : sketches) cpu.push_back(s.Thread()), gpu.push_back(s.Stream());
  for (int step = 0; step < kSteps; ++step) {
    std::vector<double> arrival(ranks.size());
    double last = 0;
    for (size_t r = 0; r < ranks.size(); ++r) {
      const Program& p = ranks[r];
      begin[r] = now[r];
      for (int i = 0; i <= kLaunches; ++i) {
        now[r] += p.host;
        const double length = 5 + p.work, start = std::max(now[r] + length + 4, gpu_free[r]);
        sketches[r].Call(cpu[r], "cudaLaunchKernel", now[r], length, ++calls[r]);
        if (i < kLaunches) sketches[r].Kernel(gpu[r], "k", start, 2, calls[r]);
        gpu_free[r] = start + 2;
        arrival[r] = start;
        now[r] += length + p.call;
      }
      last = std::max(last, arrival[r]);
    }
    for (size_t r = 0; r < ranks.size(); ++r) {
      const double end = last + kTransfer;
      sketches[r].Collective(
          gpu[r], "ncclDevKernel_AllReduce_Sum_f32_RING_LL", arrival[r], end - arrival[r], calls[r],
          FormatCollectiveGroup({.name = "0", .members = "[0, 1]", .sequence = step}));
      gpu_free[r] = end;
      sketches[r].Call(cpu[r], "cudaStreamSynchronize", now[r], end + 2 - now[r], ++calls[r]);
      now[r] = end + 2 + ranks[r].call;
      sketches[r].Mark(cpu[r], fmt::format("{}{}", kStepRange, step), begin[r], now[r] - begin[r]);
    }
  }
  std::vector<std::shared_ptr<const Trace>> traces;
  for (size_t r = 0; r < ranks.size(); ++r) {
    Trace trace = *sketches[r].Build();
    trace.ranks = {{static_cast<int32_t>(r), static_cast<int32_t>(ranks.size())}};
    if (ranks[r].recorded()) {
      trace.provenance.cost = {.steps_with = 9,
                               .steps_without = 9,
                               .call = RecordingCost::Each{ranks[r].call * 1000, error_ns},
                               .work = RecordingCost::Each{ranks[r].work * 1000, error_ns}};
    }
    traces.push_back(std::make_shared<const Trace>(std::move(trace)));
  }
  return traces;
}

JointRun Join(const std::vector<Program>& ranks, double error_ns = 10) {
  std::vector<Duration> begins(ranks.size());
  absl::StatusOr<JointRun> run =
      MakeJointRun(Record(ranks, error_ns), begins, AlignClocks::kGiven, 1);
  EXPECT_TRUE(run.ok()) << run.status();
  return *std::move(run);
}

JointAnswer Play(const JointRun& run) {
  absl::StatusOr<JointAnswer> answer = PlayJoint(run, TransferFrom::kClass);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return *std::move(answer);
}

double Off(Duration found, Duration expected) {
  return std::abs(AsDouble(found) / AsDouble(expected) - 1);
}

// Recorded, rank 0 is the slower one, whose calls cost more; without, it waits for rank 1.
const std::vector<Program> kRecorded = {{.host = 24, .call = 8, .work = 2},
                                        {.host = 28, .call = 1, .work = 0.5}};
const std::vector<Program> kWithout = {{.host = 24}, {.host = 28}};

TEST(JointUnrecorded, EachRankLosesItsOwnCostBeforeRanksWaitForOneAnother) {
  const JointRun without = Join(kWithout);
  const JointAnswer expected = Play(without);
  JointRun run = Join(kRecorded);
  const JointAnswer recorded = Play(run);
  ASSERT_GT(Off(recorded.step, expected.step), 0.1);
  ASSERT_TRUE(LeaveOutRecording(run, 2).ok());
  ASSERT_TRUE(run.unrecorded.has_value());
  const JointAnswer answer = Play(run);
  EXPECT_LT(Off(answer.step, expected.step), 0.01);
  EXPECT_EQ(answer.step, run.unrecorded->step);
  EXPECT_EQ(recorded.step, run.unrecorded->recorded);
  for (size_t r = 0; r < 2; ++r) {
    const Program& p = kRecorded[r];
    const double cost = 10 * p.call + 9 * p.work;
    EXPECT_NEAR(run.unrecorded->taken[r].in_step.us(), cost, cost * 0.1) << r;
  }
  // Who is waited for is another one.
  EXPECT_LT(recorded.replay.waits[0][1], recorded.replay.waits[1][0]);
  EXPECT_GT(answer.replay.waits[0][1], answer.replay.waits[1][0]);
  EXPECT_LT(Off(answer.replay.waits[0][1], expected.replay.waits[0][1]), 0.1);
}

TEST(JointUnrecorded, RanksOfOneFileLoseWhatTheyLoseOutOfTheirOwnFiles) {
  JointRun apart = Join(kRecorded);
  ASSERT_TRUE(LeaveOutRecording(apart, 1).ok());
  const auto traces = Record(kRecorded);
  const auto merged =
      MergeRanks({{.file = "0", .trace = traces[0]}, {.file = "1", .trace = traces[1]}}, "run");
  ASSERT_TRUE(merged.ok()) << merged.status();
  std::vector<std::shared_ptr<const Trace>> taken;
  for (size_t r = 0; r < 2; ++r) taken.push_back(TakeRank(*merged->trace, r).value());
  JointRun run = MakeJointRun(taken, std::vector<Duration>(2), AlignClocks::kGiven, 1).value();
  ASSERT_TRUE(LeaveOutRecording(run, 1).ok());
  EXPECT_EQ(run.unrecorded->step, apart.unrecorded->step);
  EXPECT_EQ(UnrecordedText(run), UnrecordedText(apart));
  for (size_t r = 0; r < 2; ++r) {
    EXPECT_EQ(run.unrecorded->taken[r].taken, apart.unrecorded->taken[r].taken) << r;
    EXPECT_EQ(run.unrecorded->taken[r].each.call, kRecorded[r].call * 1000) << r;
  }
}

TEST(JointUnrecorded, TheCheckIsOfTheRecordingAndErrorsAreThoseOfTheStep) {
  JointRun run = Join(kRecorded, 400);
  const JointAnswer recorded = Play(run);
  ASSERT_TRUE(LeaveOutRecording(run, 1).ok());
  EXPECT_EQ(Play(run).check.span_error, recorded.check.span_error);
  EXPECT_LT(recorded.check.span_error, 0.001);
  // Rank 1 bounds the step: ten calls with 400 ns each; its work costs no more than 500.
  const JointUnrecorded& u = *run.unrecorded;
  EXPECT_NEAR((u.longest - u.step).us(), 10 * 0.4 + 9 * 0.4, 1);
  EXPECT_NEAR(UnsureShare(run), AsDouble(u.longest - u.step) / AsDouble(u.step), 0.01);
  EXPECT_THAT(UnrecordedText(run), HasSubstr("on rank 0, the most (a call 8.0 us"));
}

TEST(JointUnrecorded, ARankThatTellsNoCostKeepsItsTime) {
  std::vector<Program> ranks = kRecorded;
  ranks[1] = kWithout[1];
  JointRun run = Join(ranks);
  const Graph before = run.built[1].graph;
  ASSERT_TRUE(LeaveOutRecording(run, 1).ok());
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(run.built[1].graph.task(TaskId(i)).gap, before.task(TaskId(i)).gap);
  }
  EXPECT_THAT(UnrecordedText(run), HasSubstr("1 of 2 ranks tells no cost"));

  JointRun none = Join(kWithout);
  ASSERT_TRUE(LeaveOutRecording(none, 1).ok());
  EXPECT_FALSE(none.unrecorded.has_value());
}

struct Side {
  BuiltGraph built;
  ReplayCheck replay;
};

Side Load(const Program& program, double error_ns = 10) {
  absl::StatusOr<BuiltGraph> built = BuildGraph(Record({program}, error_ns)[0]);
  EXPECT_TRUE(built.ok()) << built.status();
  Side side{*std::move(built), {}};
  side.replay = CheckReplay(side.built, nullptr).value();
  return side;
}

Diff CompareUnrecorded(Side& before, Side& after) {
  for (Side* side : {&before, &after}) {
    side->replay.unrecorded = LeaveOutRecording(side->built.graph).value();
  }
  return Compare(AsSteady(before.built, before.replay).value(),
                 AsSteady(after.built, after.replay).value(), GroupBy::kClass);
}

TEST(DiffUnrecorded, OneProgramThatIsRecordedAtTwoCostsHasNoDifference) {
  Side cheap = Load({.host = 24, .call = 2, .work = 0.5});
  Side dear = Load({.host = 24, .call = 8, .work = 2});
  const Side without = Load({.host = 24});
  const Duration expected = MeanOf(MeasuredSteps(without.built));
  const Diff recorded = Compare(AsRecorded(cheap.built), AsRecorded(dear.built), GroupBy::kClass);
  ASSERT_GT(Off(recorded.step.after, recorded.step.before), 0.15);
  ASSERT_LT(recorded.step.p, 0.001);

  const Diff diff = CompareUnrecorded(cheap, dear);
  EXPECT_LT(Off(diff.step.before, expected), 0.02);
  EXPECT_LT(Off(diff.step.after, expected), 0.02);
  for (const DiffRow& row : diff.rows) EXPECT_EQ(row.before, row.after) << row.name;
}

TEST(DiffUnrecorded, AChangeOfTheProgramIsFoundBelowTheCostOfItsRecording) {
  Side before = Load({.host = 24, .call = 8, .work = 2});
  Side after = Load({.host = 26, .call = 2, .work = 0.5});  // 18 us longer, 67 us cheaper
  const Diff diff = CompareUnrecorded(before, after);
  EXPECT_NEAR((diff.step.after - diff.step.before).us(), 9 * 2, 1.8);
}

TEST(DiffUnrecorded, WhatTheErrorsOfTheCostsExplainHasNoStars) {
  Side before = Load({.host = 24, .call = 8, .work = 2}, 1500);
  Side after = Load({.host = 24.5, .call = 2, .work = 2}, 1500);
  const Diff diff = CompareUnrecorded(before, after);
  EXPECT_GT(diff.step.after, diff.step.before);
  EXPECT_GT(diff.step.p, 0.05);
}

}  // namespace
}  // namespace daydream
