// Published figures: what counts as agreement, and that each row says what it rests on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/accuracy/published.h"
#include "transforms/core/transform.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

fs::path Csv() { return fs::path(DAYDREAM_SOURCE_DIR) / "tests/accuracy/published.csv"; }

TEST(Published, LessThanFivePercentIsNoChange) {
  EXPECT_EQ(SizeClass(1.049), "none");
  EXPECT_EQ(SizeClass(1 / 1.049), "none");
  EXPECT_EQ(SizeClass(1.051), "small gain");
  EXPECT_EQ(SizeClass(0.9), "small loss");
  EXPECT_EQ(SizeClass(1.3), "medium gain");
  EXPECT_EQ(SizeClass(0.5), "large loss");
}

// Of one size class is not enough: 2.07x is a large gain as 4.48x is.
TEST(Published, WhatIsOutsideOfItsIntervalDoesNotAgree) {
  EXPECT_EQ(Compare(1.3, {1.5, 1.2, 1.8}), Agreement::kAgrees);
  EXPECT_EQ(Compare(4.48, {2.07, 1.62, 2.54}), Agreement::kDirection);
  EXPECT_EQ(Compare(1.3, {1.04, 1.0, 1.1}), Agreement::kDiffers);
  EXPECT_EQ(Compare(1.3, {0.8, 0.7, 0.9}), Agreement::kDiffers);
}

TEST(Published, WithoutAnIntervalLessThanFivePercentAgrees) {
  EXPECT_EQ(Compare(1.01, {0.99}), Agreement::kAgrees);
  EXPECT_EQ(Compare(1.3, {1.5}), Agreement::kDirection);
  EXPECT_EQ(Compare(1.3, {0.8}), Agreement::kDiffers);
}

TEST(Published, GainsAreThoseOfExamplesASecond) {
  PublishedRow row{.before = 100, .after = 500, .examples = 10, .unit = "ms"};
  EXPECT_DOUBLE_EQ(row.gain(), 2);
  row.unit = "rate";
  EXPECT_DOUBLE_EQ(row.gain(), 5);
}

TEST(Published, EveryRowNamesItsSourceAndWhyItsTraceIsTheClosest) {
  auto rows = ReadPublished(Csv());
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_GT(rows->size(), 40u);
  for (const PublishedRow& row : *rows) {
    EXPECT_FALSE(row.name.empty() || row.source.empty() || row.why.empty()) << row.name;
    EXPECT_EQ(row.judged(), !row.to.empty()) << row.name;
  }
}

TEST(Published, EveryScenarioCanBeRead) {
  auto rows = ReadPublished(Csv());
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (const PublishedRow& row : *rows) {
    if (!row.judged()) continue;
    for (const std::string& scenario : {row.base(), row.changed()}) {
      if (scenario.empty()) continue;
      auto parsed = ParseScenario(scenario);
      EXPECT_TRUE(parsed.ok()) << row.name << ": " << parsed.status();
    }
  }
}

}  // namespace
}  // namespace daydream
