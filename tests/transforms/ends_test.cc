// Times at the ends of open parameters (transforms/core/ends.h).
#include "transforms/core/ends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace daydream {
namespace {

constexpr size_t kEnds = 21;  // no multiple of eight

std::vector<Duration> Read(const TimeColumns& columns, TaskId t) {
  std::vector<Duration> times;
  TimeColumns::Eight eight;
  for (size_t end = 0; end < kEnds; ++end) {
    if (end % eight.size() == 0) columns.ReadEight(t, end, eight);
    times.push_back(Duration::Ns(eight[end % eight.size()]));
    EXPECT_EQ(columns.Of(end, t, {}), times.back()) << end;
  }
  return times;
}

std::vector<double> SomeFactors(std::mt19937_64& random) {
  std::vector<double> factors = {1, 0.5, 0.25, 0, 1.5, 1e6, 1e-6};
  std::uniform_real_distribution<double> factor(0, 3);
  while (factors.size() < kEnds) factors.push_back(factor(random));
  return factors;
}

TEST(TimeColumns, WhatIsScaledRoundsAsDurationsDo) {
  std::mt19937_64 random(1);
  const std::vector<double> factors = SomeFactors(random);
  TimeColumns columns(kEnds);
  const TimeColumns::Factors by = columns.Add(factors);
  for (uint32_t i = 0; i < 20000; ++i) {
    const TaskId t(i);
    const Duration now = Duration::Ns(static_cast<int64_t>(random() >> (2 + random() % 61)) + 1);
    columns.Scale(t, now, by);
    std::vector<Duration> expected;
    expected.reserve(kEnds);
    for (double factor : factors) expected.push_back(now.Scaled(factor));
    ASSERT_EQ(Read(columns, t), expected) << now.ns;
  }
}

TEST(TimeColumns, WhatTakesNothingIsTheSameAtAllEnds) {
  TimeColumns columns(kEnds);
  const TimeColumns::Factors by = columns.Add(std::vector(kEnds, 0.5));
  for (Duration now : {Duration{}, Duration::Us(-1)}) {
    columns.Scale(TaskId(0), now, by);
    EXPECT_FALSE(columns.Has(TaskId(0)));
    EXPECT_EQ(columns.Of(3, TaskId(0), now), now);
  }
}

TEST(TimeColumns, ScaledAgainIsRoundedTwice) {
  std::mt19937_64 random(2);
  const std::vector<double> factors = SomeFactors(random);
  TimeColumns columns(kEnds);
  const TimeColumns::Factors by = columns.Add(factors);
  for (uint32_t i = 0; i < 100; ++i) {
    const TaskId once(2 * i), twice(2 * i + 1);
    const Duration now = Duration::Ns(static_cast<int64_t>(random() % 1000) + 1);
    columns.Scale(once, now, by);
    columns.Scale(once, 0.7);
    columns.Scale(twice, now, by);
    columns.Scale(twice, now, by);
    std::vector<Duration> expected, expected_twice;
    for (double factor : factors) {
      expected.push_back(now.Scaled(factor).Scaled(0.7));
      expected_twice.push_back(now.Scaled(factor).Scaled(factor));
    }
    EXPECT_EQ(Read(columns, once), expected);
    EXPECT_EQ(Read(columns, twice), expected_twice);
  }
}

TEST(TimeColumns, WhatIsSetIsReadAndForgotten) {
  TimeColumns columns(kEnds);
  std::vector<Duration> times;
  for (size_t end = 0; end < kEnds; ++end) times.push_back(Duration::Us(static_cast<int64_t>(end)));
  columns.Scale(TaskId(5), Duration::Us(7), columns.Add(std::vector(kEnds, 0.5)));
  columns.Set(TaskId(5), times);
  columns.Set(TaskId(2), times);
  EXPECT_EQ(Read(columns, TaskId(5)), times);
  std::vector<TaskId> tasks;
  columns.AddTasksTo(tasks);
  EXPECT_THAT(tasks, testing::ElementsAre(TaskId(2), TaskId(5)));
  columns.Forget(TaskId(2));
  EXPECT_FALSE(columns.Has(TaskId(2)));
  EXPECT_EQ(columns.Of(4, TaskId(2), Duration::Us(9)), Duration::Us(9));
}

TEST(TimeColumns, SumsAreAboutWhatTasksTake) {
  std::mt19937_64 random(3);
  const std::vector<double> factors = SomeFactors(random);
  TimeColumns columns(kEnds);
  const TimeColumns::Factors by = columns.Add(factors);
  std::vector<TaskId> tasks;
  std::vector<double> expected(kEnds);
  for (uint32_t i = 0; i < 1000; ++i) {
    const TaskId t = tasks.emplace_back(i);
    if (i % 3 == 0) continue;  // has no column
    columns.Scale(t, Duration::Ns(static_cast<int64_t>(random() % 100'000) + 1), by);
    if (i % 3 == 1) columns.Scale(t, 0.9);
    for (size_t end = 0; end < kEnds; ++end) {
      expected[end] += static_cast<double>(columns.Of(end, t, {}).ns);
    }
  }
  const std::vector<double> about = columns.About(tasks);
  for (size_t end = 0; end < kEnds; ++end) {
    EXPECT_NEAR(about[end], expected[end], static_cast<double>(tasks.size())) << end;
  }
}

}  // namespace
}  // namespace daydream
