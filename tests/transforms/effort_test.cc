#include "transforms/scenario/effort.h"

#include <gtest/gtest.h>

namespace daydream {
namespace {

TEST(Effort, IsOncePerPlace) {
  const Advice line{.effort = "1 line"}, lines{.effort = "~20 lines"};
  EXPECT_EQ(EffortOf(line, {}), "1 line");
  EXPECT_EQ(EffortOf(line, {.places = 7}), "~7 lines");
  EXPECT_EQ(EffortOf(lines, {.places = 1}), "~20 lines");
  EXPECT_EQ(EffortOf(lines, {.places = 7}), "~20 lines x 7");
}

TEST(Effort, IsCountedInLines) {
  EXPECT_EQ(LinesOf("~20 lines"), 20);
  EXPECT_EQ(LinesOf("~20 lines x 7"), 140);
  EXPECT_EQ(LinesOf("1 word"), 1);
  for (const char* text :
       {"new kernels", "", "20 lines x", "20 lines x many", "20 lines x 7 x 7"}) {
    EXPECT_GT(LinesOf(text), 1e300) << text;
  }
}

TEST(Ease, FallsWithTheLinesAndTheRisks) {
  const auto ease = [](std::string_view effort, std::string_view risk = "none") {
    return EaseOf({.effort = effort, .risk = risk});
  };
  EXPECT_DOUBLE_EQ(ease("1 word"), 1);
  EXPECT_DOUBLE_EQ(ease("~100 lines"), 0.1);
  // Ten times the lines for less than three times the gain can wait.
  EXPECT_GT(ease("~10 lines"), 3 * ease("~100 lines"));
  // Nobody can count it: as a thousand lines, and never easier than what is counted.
  EXPECT_DOUBLE_EQ(ease("new kernels"), ease("~1000 lines"));
  EXPECT_LE(ease("~50 lines x 140"), ease("~50 lines x 10"));
  EXPECT_LT(ease("2 lines", "numerics"), ease("2 lines", "host memory"));
  EXPECT_LT(ease("2 lines", "host memory"), ease("2 lines"));
}

}  // namespace
}  // namespace daydream
