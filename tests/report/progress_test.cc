#include "report/text/progress.h"

#include <gtest/gtest.h>

namespace daydream {
namespace {

Doing Sweeping(uint64_t done, uint64_t total) {
  return {.what = "sweeping", .done = done, .total = total, .last = true};
}

Doing Reading(uint64_t done, uint64_t total) {
  return {.what = "reading a", .done = done, .total = total, .counted = Counted::kBytes};
}

TEST(Progress, TellsShareRateAndTimeLeft) {
  EXPECT_EQ(ProgressText(Reading(250'000'000, 1'000'000'000), {.seconds = 2.5}),
            "reading a 25 %, 100.0 MB a second, 8 s left of this");
  EXPECT_EQ(ProgressText(Sweeping(3000, 10'000), {.seconds = 2}),
            "sweeping 3,000 of 10,000, 1,500 a second, 5 s left");
  EXPECT_EQ(ProgressText(Sweeping(1, 100), {.seconds = 4}), "sweeping 1 of 100, 7 min left");
  EXPECT_EQ(ProgressText(Sweeping(1, 10'000), {.seconds = 4}), "sweeping 1 of 10,000, 12 h left");
}

TEST(Progress, WhatWasThereBeforeIsNoRate) {
  EXPECT_EQ(ProgressText(Sweeping(900, 1000), {.before = 800, .seconds = 10}),
            "sweeping 900 of 1,000, 10 a second, 10 s left");
  EXPECT_EQ(ProgressText(Sweeping(800, 1000), {.before = 800, .seconds = 10}),
            "sweeping 800 of 1,000, 10 s so far");
}

TEST(Progress, SaysNoMoreThanIsKnown) {
  EXPECT_EQ(ProgressText(Reading(5, 10), {.seconds = 0.1}), "reading a 50 %");
  EXPECT_EQ(ProgressText({.what = "building"}, {.seconds = 0.9}), "building");
  EXPECT_EQ(ProgressText({.what = "building"}, {.seconds = 3.9}), "building, 3 s so far");
  EXPECT_EQ(ProgressText({.what = "looking", .done = 31}, {.seconds = 4}),
            "looking, 31 done, 7 a second, 4 s so far");
  EXPECT_EQ(ProgressText(Sweeping(10, 10), {.seconds = 2}),
            "sweeping 10 of 10, 5 a second, 2 s so far");
}

// 32 pieces in 8 s: the last one would take a quarter of a second, and has not come in two.
TEST(Progress, APieceThatTakesLongerThanTheOthersHasNoTimeLeft) {
  EXPECT_EQ(ProgressText(Sweeping(32, 33), {.seconds = 10, .still = 2}),
            "sweeping 32 of 33, 3 a second, 10 s so far");
  EXPECT_EQ(ProgressText(Sweeping(32, 33), {.seconds = 10, .still = 0.5}),
            "sweeping 32 of 33, 3 a second, 1 s left");
}

}  // namespace
}  // namespace daydream
