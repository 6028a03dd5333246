// What the host does at the end of a recording of one step is no part of the step where the step
// before did not end so.
#include "report/questions/recording_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/steady_answers.h"

namespace daydream {
namespace {

// One marked step of ten operators of 2 ms, whose host goes on for `end_ms` behind the last. The
// GPU does work from before the recording until `earlier_ms`; the step begins at 1 ms.
std::shared_ptr<const Trace> Record(double end_ms, double earlier_ms) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  const double begin = 1000;
  double now = begin, done = earlier_ms * 1000;
  s.Kernel(gpu, "earlier", 0, done);
  for (int op = 0; op < 10; ++op, now += 2000) {
    s.Op(cpu, "aten::linear", now, 1950);
    const double ready = std::max(now + 1930, done + 2);
    s.Launch(cpu, gpu, "kernel", now + 1900, 10, ready, 1900);
    done = ready + 1900;
  }
  s.Mark(cpu, "ProfilerStep#9", begin, now - begin + end_ms * 1000);
  return s.Build();
}

TEST(RecordingEnd, WhatTheStepBeforeDidNotDoIsNoPartOfAStep) {
  const SteadyAnswers usual = AskSteady(Record(0, 4));
  for (const double end_ms : {15, 80}) {
    SCOPED_TRACE(end_ms);
    const SteadyAnswers late = AskSteady(Record(end_ms, 4));
    ExpectTheSame(late, usual);
    ASSERT_FALSE(late.findings.empty());
    EXPECT_EQ(late.findings[0].kind, FindingKind::kPause);
    EXPECT_NEAR(late.findings[0].time.ms(), end_ms, 0.2) << late.findings[0].text;
  }
}

// The step before may have ended so, too: the GPU had nothing left when this one began.
TEST(RecordingEnd, ItIsWhereTheGpuHadNothingToDoBefore) {
  auto built = BuildGraph(Record(80, 0.5));
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(LeaveOutEnd(built->graph), std::nullopt);
}

}  // namespace
}  // namespace daydream
