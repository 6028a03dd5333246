// Steps that differ: what is told beside their mean.
#include "report/step_lengths.h"

#include <gtest/gtest.h>

#include <vector>

namespace daydream {
namespace {

std::vector<Duration> Us(std::initializer_list<int> values) {
  std::vector<Duration> out;
  for (int v : values) out.push_back(Duration::Us(v));
  return out;
}

TEST(StepLengths, QuartilesLieBetweenTheNearestSteps) {
  const StepLengths l = LengthsOf(Us({400, 100, 200, 300}));
  EXPECT_EQ(l.shortest, Duration::Us(100));
  EXPECT_EQ(l.lower, Duration::Us(175));
  EXPECT_EQ(l.median, Duration::Us(250));
  EXPECT_EQ(l.upper, Duration::Us(325));
  EXPECT_EQ(l.longest, Duration::Us(400));
  EXPECT_EQ(l.mean, Duration::Us(250));
}

TEST(StepLengths, StepsAreUnevenWhenTheyDifferByMoreThanATenth) {
  EXPECT_FALSE(LengthsOf(Us({95, 100, 105})).uneven());
  EXPECT_TRUE(LengthsOf(Us({94, 100, 106})).uneven());
  EXPECT_FALSE(LengthsOf(Us({7})).uneven());
  EXPECT_FALSE(LengthsOf({}).uneven());
}

TEST(StepLengths, TheSparklineShowsTheStepsInOrder) {
  EXPECT_EQ(Sparkline(Us({100, 100, 800, 100})), "__#_");
  EXPECT_EQ(Sparkline(Us({1, 2, 3, 4, 5, 6, 7, 8})), "_.:-=+*#");
  EXPECT_EQ(Sparkline(Us({5, 5})), "__");
  EXPECT_EQ(Sparkline({}), "");
}

TEST(StepLengths, ALongSparklineKeepsTheLongestOfManySteps) {
  std::vector<Duration> steps(100, Duration::Us(1));
  steps[57] = Duration::Us(9);
  const std::string line = Sparkline(steps, 10);
  EXPECT_EQ(line, "_____#____");
}

}  // namespace
}  // namespace daydream
