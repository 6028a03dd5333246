#include "report/text/progress.h"

#include <gtest/gtest.h>

namespace daydream {
namespace {

TEST(Progress, TellsShareRateAndTimeLeft) {
  EXPECT_EQ(ProgressText("reading a", Counted::kBytes, 250'000'000, 1'000'000'000, 0, 2.5),
            "reading a 25 %, 100.0 MB a second, 8 s left");
  EXPECT_EQ(ProgressText("sweeping", Counted::kPieces, 3000, 10'000, 0, 2),
            "sweeping 30 %, 1,500 a second, 5 s left");
  EXPECT_EQ(ProgressText("sweeping", Counted::kPieces, 1, 100, 0, 4), "sweeping 1 %, 7 min left");
  EXPECT_EQ(ProgressText("sweeping", Counted::kPieces, 1, 10'000, 0, 4), "sweeping 0 %, 12 h left");
}

TEST(Progress, WhatWasThereBeforeIsNoRate) {
  EXPECT_EQ(ProgressText("sweeping", Counted::kPieces, 900, 1000, 800, 10),
            "sweeping 90 %, 10 a second, 10 s left");
  EXPECT_EQ(ProgressText("sweeping", Counted::kPieces, 800, 1000, 800, 10), "sweeping 80 %");
}

TEST(Progress, SaysNoMoreThanIsKnown) {
  EXPECT_EQ(ProgressText("reading a", Counted::kBytes, 5, 0, 0, 3), "reading a");
  EXPECT_EQ(ProgressText("reading a", Counted::kBytes, 5, 10, 0, 0.1), "reading a 50 %");
  EXPECT_EQ(ProgressText("playing", Counted::kPieces, 10, 10, 0, 2), "playing 100 %, 5 a second");
}

}  // namespace
}  // namespace daydream
