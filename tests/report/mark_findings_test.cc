// Marks that cut through the work of steps are told, and none that hold it.
#include "report/questions/mark_findings.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "tests/graph/trace_sketch.h"

namespace daydream {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Eight steps of 100 us: a forward pass of four operators, 10 us each, on one thread, and its
// backward pass on another. Marks are `late`, and as many us long.
struct Moved {
  double late = 0, length = 100;
  bool numbers = true;  // autograd's
  double op_us = 9, between = 1;
  bool outer = false;  // an operator around each two steps
};

std::vector<Finding> Found(const Moved& m) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), engine = s.Thread(101), gpu = s.Stream();
  for (int i = 0; i < 8; ++i) {
    const double begin = 100 * i + 2;
    if (m.outer && i % 2 == 0) s.Op(cpu, "epoch", 100 * i, 200);
    for (int k = 0; k < 4; ++k) {
      const double us = begin + k * (m.op_us + m.between);
      const int64_t number = m.numbers ? 4 * i + k : -1;
      s.Op(cpu, "aten::conv2d", us, m.op_us, number);
      s.Launch(cpu, gpu, "kernel", us + 1, 2, us + 4, 5);
      const double back = begin + 85 - 10 * k;
      s.Op(engine, "ConvolutionBackward0", back, 8, number, "", m.numbers ? 1 : -1);
      s.Launch(engine, gpu, "back", back + 1, 2, back + 4, 5);
    }
    s.Mark(cpu, "ProfilerStep#" + std::to_string(i), 100 * i + m.late, m.length);
  }
  const auto trace = s.Build();
  const auto built = BuildGraph(trace);
  EXPECT_TRUE(built.ok()) << built.status();
  return FindingsOfMovedMarks(built->report.steps, *trace);
}

void ExpectOne(const std::vector<Finding>& found, std::string_view text) {
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kMarks);
  EXPECT_THAT(found[0].text, HasSubstr(text));
  EXPECT_FALSE(DoubtOf(found).empty()) << "low confidence";
}

TEST(MarkFindings, NoneOfMarksThatHoldTheirSteps) {
  EXPECT_THAT(Found({}), IsEmpty());
  EXPECT_THAT(Found({.late = 1.5}), IsEmpty());
  EXPECT_THAT(Found({.length = 50}), IsEmpty()) << "told as marks that end early";
  EXPECT_THAT(Found({.outer = true}), IsEmpty()) << "an operator may hold whole steps";
}

TEST(MarkFindings, MarksWithinOperators) {
  ExpectOne(Found({.late = 16, .numbers = false}),
            "8 of 8 begin in the middle of an operator; steps are made of");
}

TEST(MarkFindings, MarksWithinBackwardPassesOfAnotherThread) {
  ExpectOne(Found({.late = 72, .numbers = false}), "8 of 8 begin in the middle of an operator");
}

TEST(MarkFindings, BackwardPassesOfAnEarlierStep) {
  ExpectOne(Found({.late = 50}),
            "work: 28 of 28 backward operators belong to the forward pass of an earlier step");
  ExpectOne(Found({.late = 70}), "14 of 28 backward operators belong");
}

TEST(MarkFindings, BothAreToldAtOnce) {
  ExpectOne(Found({.late = 16}),
            "8 of 8 begin in the middle of an operator, "
            "and 14 of 30 backward operators belong to the forward pass");
}

TEST(MarkFindings, StepsThatNoMarkTellsAreNotJudged) {
  Steps steps{.method = StepMethod::kPeriod, .lane = {}, .steps = {}};
  EXPECT_THAT(FindingsOfMovedMarks(steps, Trace{}), IsEmpty());
}

}  // namespace
}  // namespace daydream
