#include "trace/trace_builder.h"

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace daydream {
namespace {

TraceBuilder::Event At(LaneId lane, int64_t start, int64_t duration, NameId name) {
  return {.start = Instant::AtNs(start),
          .duration = Duration::Ns(duration),
          .lane = lane,
          .name = name};
}

TEST(TraceBuilder, SortsByLaneThenStartThenLongerFirstThenInputOrder) {
  std::mt19937_64 random(7);
  for (int spread : {3, 1000, 1000000}) {
    TraceBuilder builder;
    using Key = std::tuple<uint32_t, int64_t, int64_t, uint32_t>;
    std::vector<Key> expected;
    int64_t earliest = INT64_MAX;
    for (uint32_t i = 0; i < 100000; ++i) {
      LaneId lane = builder.AddLane(LaneKind::kThread, 1, static_cast<int64_t>(random() % 3), -1);
      // Nearly in order, with jumps back, as profilers write.
      int64_t start = 5000 + i % 40000 * 10 + static_cast<int64_t>(random() % spread);
      int64_t duration = static_cast<int64_t>(random() % 4);
      builder.AddEvent(At(lane, start, duration, builder.names().Intern(std::to_string(i))));
      expected.emplace_back(lane.value, start, -duration, i);
      earliest = std::min(earliest, start);
    }
    std::sort(expected.begin(), expected.end());
    auto trace = builder.Build();
    ASSERT_TRUE(trace.ok());
    const Trace& t = **trace;
    ASSERT_EQ(t.rows(), expected.size());
    EXPECT_EQ(t.clock_origin_ns, earliest);
    for (size_t row = 0; row < t.rows(); ++row) {
      auto [lane, start, minus_duration, i] = expected[row];
      ASSERT_EQ(t.lane[row].value, lane);
      ASSERT_EQ(t.start[row].ns, start - earliest);
      ASSERT_EQ(t.duration[row].ns, -minus_duration);
      ASSERT_EQ(t.EventName(row), std::to_string(i));
      ASSERT_GE(row, t.lane_begin[lane]);
      ASSERT_LT(row, t.lane_begin[lane + 1]);
    }
  }
}

TEST(TraceBuilder, EqualDetailsShareARow) {
  TraceBuilder builder;
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < 1000; ++i) {
      EXPECT_EQ(builder.AddKernel({.grid = {i, 1, 1}}), i);
      EXPECT_EQ(builder.AddOp({.sequence = i}), i);
      EXPECT_EQ(builder.AddCopy({.bytes = i}), i);
      EXPECT_EQ(builder.AddSync({.event = i}), i);
      EXPECT_EQ(builder.AddCollective({.elements_in = i}), i);
    }
  }
}

TEST(TraceBuilder, EqualLanesAreOneLane) {
  TraceBuilder builder;
  LaneId a = builder.AddLane(LaneKind::kThread, 1, 2, -1);
  EXPECT_EQ(builder.AddLane(LaneKind::kThread, 1, 2, -1), a);
  EXPECT_NE(builder.AddLane(LaneKind::kThread, 1, 3, -1), a);
  EXPECT_NE(builder.AddLane(LaneKind::kStream, 1, 2, -1), a);
}

TEST(TraceBuilder, CountsOfOneKindAddUp) {
  TraceBuilder builder;
  builder.Count("flow events", "why", false, 2, 10);
  builder.Count("flow events", "why", false, 3, 5);
  builder.Count("repaired", "why", false, 1, 7, false);
  auto trace = builder.Build();
  ASSERT_TRUE(trace.ok());
  const auto& counts = (*trace)->provenance.counts;
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0].count, 5u);
  EXPECT_EQ(counts[0].first_byte, 10);
  EXPECT_FALSE(counts[0].repair);
  EXPECT_TRUE(counts[1].repair);
}

TEST(TraceBuilder, AnEmptyTraceHasOneRankAndNoRows) {
  auto trace = TraceBuilder().Build();
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ((*trace)->rows(), 0u);
  EXPECT_EQ((*trace)->ranks.size(), 1u);
  EXPECT_EQ((*trace)->lane_begin.size(), 1u);
}

TEST(TraceBuilder, TooManyLanesAreRefused) {
  TraceBuilder builder;
  for (int64_t i = 0; i <= 65536; ++i) builder.AddLane(LaneKind::kThread, 1, i, -1);
  auto trace = builder.Build();
  EXPECT_TRUE(absl::IsResourceExhausted(trace.status()));
  EXPECT_EQ(DiagnosticOf(trace.status()).code, "E0212");
}

TEST(StringPool, GivesEqualTextsOneId) {
  StringPool pool;
  EXPECT_EQ(pool.Intern("").value, 0u);
  std::vector<std::string> texts;
  for (int i = 0; i < 20000; ++i) texts.push_back(std::string(i % 200, 'x') + std::to_string(i));
  texts.push_back(std::string(1 << 20, 'y'));
  std::vector<NameId> ids;
  for (const std::string& text : texts) ids.push_back(pool.Intern(text));
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSERT_EQ(pool.Intern(texts[i]), ids[i]);
    ASSERT_EQ(pool.Find(texts[i]), ids[i]);
    ASSERT_EQ(pool.Get(ids[i]), texts[i]);
  }
  EXPECT_EQ(pool.size(), texts.size() + 1);
  EXPECT_FALSE(pool.Find("not there").valid());
}

}  // namespace
}  // namespace daydream
