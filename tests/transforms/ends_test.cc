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

// Columns, and what to scale them by.
struct Scaled {
  explicit Scaled(uint64_t seed)
      : random(seed), factors(SomeFactors(random)), columns(kEnds), by(columns.Add(factors)) {}
  // What `of` each factor gives.
  template <class Of>
  std::vector<Duration> At(Of of) const {
    std::vector<Duration> times;
    times.reserve(kEnds);
    for (double factor : factors) times.push_back(of(factor));
    return times;
  }

  std::mt19937_64 random;
  std::vector<double> factors;
  TimeColumns columns;
  TimeColumns::Factors by;
};

TEST(TimeColumns, WhatIsScaledRoundsAsDurationsDo) {
  Scaled s(1);
  for (uint32_t i = 0; i < 20000; ++i) {
    const TaskId t(i);
    const Duration now =
        Duration::Ns(static_cast<int64_t>(s.random() >> (2 + s.random() % 61)) + 1);
    s.columns.Scale(t, now, s.by);
    ASSERT_EQ(Read(s.columns, t), s.At([&](double factor) { return now.Scaled(factor); }))
        << now.ns;
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
  Scaled s(2);
  for (uint32_t i = 0; i < 100; ++i) {
    const TaskId once(2 * i), twice(2 * i + 1);
    const Duration now = Duration::Ns(static_cast<int64_t>(s.random() % 1000) + 1);
    s.columns.Scale(once, now, s.by);
    s.columns.Scale(once, 0.7);
    s.columns.Scale(twice, now, s.by);
    s.columns.Scale(twice, now, s.by);
    EXPECT_EQ(Read(s.columns, once), s.At([&](double f) { return now.Scaled(f).Scaled(0.7); }));
    EXPECT_EQ(Read(s.columns, twice), s.At([&](double f) { return now.Scaled(f).Scaled(f); }));
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
  Scaled s(3);
  std::vector<TaskId> tasks;
  std::vector<double> expected(kEnds);
  for (uint32_t i = 0; i < 1000; ++i) {
    const TaskId t = tasks.emplace_back(i);
    if (i % 3 == 0) continue;  // has no column
    s.columns.Scale(t, Duration::Ns(static_cast<int64_t>(s.random() % 100'000) + 1), s.by);
    if (i % 3 == 1) s.columns.Scale(t, 0.9);
    for (size_t end = 0; end < kEnds; ++end) {
      expected[end] += static_cast<double>(s.columns.Of(end, t, {}).ns);
    }
  }
  const std::vector<double> about = s.columns.About(tasks);
  for (size_t end = 0; end < kEnds; ++end) {
    EXPECT_NEAR(about[end], expected[end], static_cast<double>(tasks.size())) << end;
  }
}

}  // namespace
}  // namespace daydream
