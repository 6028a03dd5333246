// Marks that are missing or end early take no work away from steps, and add none.
#include "trace/step_gaps.h"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "report/questions/mark_findings.h"
#include "tests/graph/trace_sketch.h"

namespace daydream {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

// A mark of the i-th iteration; without a name there is none, and `kernel` begins those of kernels.
struct MarkOf {
  std::string name;
  double length = 100;
  std::string kernel = "kernel";
};

// Iterations of ten kernels, the i-th from 100 * i us on.
BuiltGraph Recorded(int iterations, const std::function<MarkOf(int)>& mark) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < iterations; ++i) {
    const MarkOf m = mark(i);
    for (int k = 0; k < 10; ++k) {
      const double us = 100 * i + 10 * k;
      s.Launch(cpu, gpu, m.kernel + std::to_string(k), us, 4, us + 5, 5);
    }
    if (!m.name.empty()) s.Mark(cpu, m.name, 100 * i, m.length);
  }
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

std::vector<double> MeasuredUs(const BuiltGraph& built) {
  std::vector<double> out;
  for (const GraphStep& s : built.graph.steps()) {
    if (s.measured) out.push_back(static_cast<double>(s.recorded_period.ns) * 1e-3);
  }
  return out;
}

std::string Number(std::string_view word, int i) { return std::string(word) + std::to_string(i); }

TEST(StepGaps, OfMarksThatCountOnEverySecondIsMissing) {
  for (const int iterations : {4, 5, 8}) {
    const BuiltGraph built = Recorded(iterations, [](int i) {
      return MarkOf{i % 2 == 1 ? Number("ProfilerStep#", 100 + i) : ""};
    });
    const std::vector<double> steps = MeasuredUs(built);
    ASSERT_FALSE(steps.empty());
    EXPECT_THAT(steps, Each(testing::DoubleNear(100, 6))) << iterations;
    const auto found = FindingsOfMarks(built.report.steps);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].kind, FindingKind::kMarks);
    EXPECT_THAT(found[0].where, HasSubstr("first behind ProfilerStep#101"));
  }
}

TEST(StepGaps, AMarkThatIsMissingIsFoundByItsWorkToo) {
  const BuiltGraph built = Recorded(8, [](int i) { return MarkOf{i == 4 ? "" : "step 1"}; });
  EXPECT_THAT(MeasuredUs(built), Each(testing::DoubleNear(100, 6)));
  ASSERT_EQ(built.report.steps.steps.size(), 8u);
  EXPECT_TRUE(built.report.steps.steps[4].between);
  EXPECT_EQ(FindingsOfMarks(built.report.steps).size(), 1u);
}

TEST(StepGaps, MarksThatEndEarlyBeginTheirSteps) {
  const BuiltGraph built = Recorded(5, [](int i) {
    return MarkOf{Number("ProfilerStep#", i), 50};
  });
  EXPECT_THAT(MeasuredUs(built), Each(testing::DoubleNear(100, 6)));
  EXPECT_EQ(MeasuredUs(built).size(), 4u);
  const auto found = FindingsOfMarks(built.report.steps);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text, HasSubstr("marks of steps end early: 50 % of the launches"));
}

TEST(StepGaps, WorkOfAnotherKindBetweenTwoMarksIsOfNoStep) {
  const BuiltGraph built = Recorded(6, [](int i) {
    return i == 3 ? MarkOf{"", 0, "evaluate"} : MarkOf{Number("step ", i < 3 ? i : i - 1)};
  });
  ASSERT_EQ(built.report.steps.steps.size(), 6u);
  EXPECT_TRUE(built.report.steps.steps[3].between);
  EXPECT_THAT(MeasuredUs(built), Each(testing::DoubleNear(100, 6)));
}

TEST(StepGaps, NoneBetweenMarksThatHoldTheirSteps) {
  for (const double length : {100.0, 99.0, 85.0}) {
    const BuiltGraph built = Recorded(5, [&](int i) {
      return MarkOf{Number("ProfilerStep#", i), length};
    });
    EXPECT_THAT(FindingsOfMarks(built.report.steps), IsEmpty()) << length;
    EXPECT_EQ(built.report.steps.steps.size(), 5u);
  }
}

TEST(StepGaps, NumbersAreThoseAtTheEnd) {
  EXPECT_EQ(NumberOfLabel("ProfilerStep#12"), 12);
  EXPECT_EQ(NumberOfLabel("step"), INT64_MIN);
  EXPECT_EQ(NumberOfLabel("step 99999999999999999999"), INT64_MIN);
}

// A profiler that was on from the middle of a step to that of another one.
TEST(StepGaps, AroundTheOnlyMarkAreStepsThatDoNotCount) {
  const auto built = Recorded(5, [](int i) { return MarkOf{i == 2 ? "ProfilerStep#2" : ""}; });
  ASSERT_EQ(built.report.steps.steps.size(), 3u);
  EXPECT_THAT(MeasuredUs(built), testing::ElementsAre(100));
  // Other work is no piece of such a step.
  const auto other = Recorded(3, [](int i) {
    return i == 1 ? MarkOf{"ProfilerStep#2"} : MarkOf{"", 100, "evaluate"};
  });
  EXPECT_EQ(other.report.steps.steps.size(), 1u);
}

}  // namespace
}  // namespace daydream
