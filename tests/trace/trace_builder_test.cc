#include "trace/trace_builder.h"

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
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

// As a profiler writes a lane: ops, then the calls inside them, then ranges in no order.
std::vector<std::pair<int64_t, int64_t>> LongLane(int64_t rows) {
  std::vector<std::pair<int64_t, int64_t>> times;
  for (int64_t i = 0; i < rows; ++i) times.emplace_back(100 * i, 90);
  for (int64_t i = 0; i < rows; ++i) times.emplace_back(100 * i + (i % 7 == 0 ? 0 : 50), 10);
  std::mt19937_64 random(11);
  for (int64_t i = 0; i < 1000; ++i) {
    times.emplace_back(static_cast<int64_t>(random() % static_cast<uint64_t>(100 * rows)), i % 3);
  }
  return times;
}

TEST(TraceBuilder, ALongLaneIsInOrderAndSoIsWhoReadsFromWhom) {
  const auto times = LongLane(200'000);
  TraceBuilder builder;
  const LaneId lane = builder.AddLane(LaneKind::kThread, 1, 1, -1);
  const LaneId other = builder.AddLane(LaneKind::kThread, 1, 2, -1);
  const NameId name = builder.names().Intern("op");
  using Key = std::tuple<int64_t, int64_t, uint32_t>;
  std::vector<Key> expected;
  for (uint32_t i = 0; i < times.size(); ++i) {
    TraceBuilder::Event event = At(lane, times[i].first, times[i].second, name);
    event.correlation = i + 1;
    builder.AddEvent(event);
    if (i % 1000 == 0) builder.AddEvent(At(other, times[i].first, 1, name));
    // Each reads what the one before it was given; those of the other lane count, too.
    if (i > 0) {
      const auto last = static_cast<uint32_t>(builder.events()) - (i % 1000 == 0 ? 2 : 1);
      builder.AddDependency(last - ((i - 1) % 1000 == 0 ? 2 : 1), last);
    }
    expected.emplace_back(times[i].first, -times[i].second, i);
  }
  std::sort(expected.begin(), expected.end());
  const auto built = builder.Build();
  ASSERT_TRUE(built.ok());
  const Trace& t = **built;
  ASSERT_EQ(t.lane_begin[1], expected.size());
  for (uint32_t row = 0; row < expected.size(); ++row) {
    ASSERT_EQ(t.correlation[row], std::get<2>(expected[row]) + 1) << row;
  }
  ASSERT_EQ(t.dependencies.size(), expected.size() - 1);
  for (const DataDependency& d : t.dependencies) {
    ASSERT_EQ(t.correlation[d.producer] + 1, t.correlation[d.consumer]);
  }
}

// Most memory that this process held since the last ForgetPeak(), in bytes; 0 = the system does not
// tell.
size_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}
bool ForgetPeak() { return static_cast<bool>(std::ofstream("/proc/self/clear_refs") << 5); }

TEST(TraceBuilder, NeedsTheMemoryOfTheTraceAndATenth) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep what was freed";
#endif
  const auto times = LongLane(2'000'000);
  TraceBuilder builder;
  const LaneId lane = builder.AddLane(LaneKind::kThread, 1, 1, -1);
  const NameId name = builder.names().Intern("op");
  if (!ForgetPeak() || PeakBytes() == 0) GTEST_SKIP() << "the system does not tell peaks";
  const size_t before = PeakBytes();
  for (const auto& [start, duration] : times) builder.AddEvent(At(lane, start, duration, name));
  const auto built = builder.Build();
  ASSERT_TRUE(built.ok());
  // Each of seven columns has begun a huge page, and a few blocks are being emptied.
  constexpr double kBegun = 16 << 20;
  EXPECT_LT(static_cast<double>(PeakBytes() - before),
            1.1 * static_cast<double>((*built)->MemoryBytes()) + kBegun);
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

constexpr int64_t kSecond = 1'000'000'000, kDay = 86'400 * kSecond;

// 200 events of 1 us in 200 us, and others of 1 us at `far`, added among the first.
absl::StatusOr<std::shared_ptr<const Trace>> WithFarEvents(const std::vector<int64_t>& far) {
  TraceBuilder builder;
  const LaneId lane = builder.AddLane(LaneKind::kThread, 1, 1, -1);
  auto add = [&](int64_t at, const std::string& name) {
    builder.AddEvent(At(lane, at, 1000, builder.names().Intern(name)));
  };
  add(0, "0");
  for (int64_t at : far) add(at, "far");
  for (int i = 1; i < 200; ++i) add(1000 * i, std::to_string(i));
  // The last reads what the second last and the first far one have written.
  const auto last = static_cast<uint32_t>(builder.events() - 1);
  builder.AddDependency(last - 1, last);
  builder.AddDependency(1, last);
  return builder.Build();
}

TEST(TraceBuilder, FewEventsFarFromAllOthersAreLeftOutAndCounted) {
  for (int64_t far : {2 * 60 * kSecond, kDay, 30 * 365 * kDay, -kDay}) {
    const auto built = WithFarEvents({far, far + 5});
    ASSERT_TRUE(built.ok()) << built.status();
    const Trace& t = **built;
    ASSERT_EQ(t.rows(), 200u) << far;
    ASSERT_EQ(t.provenance.counts.size(), 1u);
    EXPECT_EQ(t.provenance.counts[0].count, 2u);
    EXPECT_TRUE(t.provenance.counts[0].loss);
    EXPECT_NE(t.provenance.counts[0].reason.find("'far'"), std::string::npos);
    EXPECT_EQ(t.End(199).ns, 200'000);
    // Who reads from whom is asked of events, not of places.
    ASSERT_EQ(t.dependencies.size(), 1u);
    EXPECT_EQ(t.EventName(t.dependencies[0].producer), "198");
    EXPECT_EQ(t.EventName(t.dependencies[0].consumer), "199");
  }
}

// What lies in a second window is one step with what lies in the first only if nobody looks.
TEST(TraceBuilder, TheWindowWithMostEventsStaysAndTheOthersAreCounted) {
  for (int64_t pause : {10 * 60 * kSecond, kDay, 30 * kDay}) {
    std::vector<int64_t> windows;
    for (int64_t w : {1, 2, 3}) {
      for (int64_t i = 0; i < 100; ++i) windows.push_back(w * pause + i * 1000);
    }
    const auto built = WithFarEvents(windows);
    ASSERT_TRUE(built.ok()) << built.status();
    const Trace& t = **built;
    EXPECT_EQ(t.rows(), 200u);
    EXPECT_EQ(t.End(199).ns, 200'000);
    ASSERT_EQ(t.provenance.counts.size(), 1u);
    EXPECT_EQ(t.provenance.counts[0].count, 300u);
    EXPECT_EQ(t.provenance.counts[0].what, "events of other windows");
  }
}

// Six events in ten seconds are the recording, not the one that begins and ends at one place.
TEST(TraceBuilder, OneStrayIsNotTheRecording) {
  TraceBuilder builder;
  const LaneId lane = builder.AddLane(LaneKind::kThread, 1, 1, -1);
  const NameId name = builder.names().Intern("op");
  for (int64_t i = 0; i < 6; ++i) builder.AddEvent(At(lane, i * 2 * kSecond, kSecond, name));
  builder.AddEvent(At(lane, 200 * kSecond, 5000, name));
  const auto built = builder.Build();
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ((*built)->rows(), 6u);
}

TEST(TraceBuilder, EventsThatAreNowhereTogetherAreRefused) {
  TraceBuilder builder;
  const LaneId lane = builder.AddLane(LaneKind::kThread, 1, 1, -1);
  for (int64_t hour = 0; hour < 72; ++hour) {
    builder.AddEvent(At(lane, hour * 3600 * kSecond, 1000, builder.names().Intern("hourly")));
  }
  EXPECT_EQ(DiagnosticOf(builder.Build().status()).code, "E0214");
}

TEST(TraceBuilder, KernelsFarFromTheirLaunchesAreRefused) {
  for (int64_t far : {2 * 60 * kSecond, kDay}) {
    TraceBuilder builder;
    const LaneId thread = builder.AddLane(LaneKind::kThread, 1, 1, -1);
    const LaneId stream = builder.AddLane(LaneKind::kStream, 1, 7, 0);
    for (uint32_t i = 1; i <= 100; ++i) {
      TraceBuilder::Event launch = At(thread, 1000 * i, 500, builder.names().Intern("launch"));
      TraceBuilder::Event kernel = At(stream, 1000 * i + 600, 200, builder.names().Intern("k"));
      launch.correlation = kernel.correlation = i;
      if (i > 90) kernel.start = kernel.start + Duration::Ns(far);
      builder.AddEvent(launch);
      builder.AddEvent(kernel);
    }
    const auto built = builder.Build();
    EXPECT_EQ(DiagnosticOf(built.status()).code, "E0214");
    EXPECT_NE(DiagnosticOf(built.status()).what.find("10 of 200"), std::string::npos);
  }
}

TEST(TraceBuilder, ClocksOfRanksMayBeApart) {
  TraceBuilder builder;
  for (int32_t rank : {0, 1}) {
    const LaneId lane = builder.AddLane(LaneKind::kThread, rank, 1, -1, rank);
    for (int64_t i = 0; i < 100; ++i) {
      builder.AddEvent(At(lane, rank * kDay + i * 1000, 1000, builder.names().Intern("op")));
    }
  }
  const auto built = builder.Build();
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ((*built)->rows(), 200u);
}

TEST(TraceBuilder, AllocationsFarFromAllEventsAreLeftOutAndCounted) {
  TraceBuilder builder;
  const LaneId lane = builder.AddLane(LaneKind::kThread, 1, 1, -1);
  for (int64_t i = 0; i < 100; ++i) {
    builder.AddEvent(At(lane, i * 1000, 1000, builder.names().Intern("op")));
  }
  for (int64_t at : {-kDay, -30 * kSecond, int64_t{50'000}, 30 * kSecond, 2 * 60 * kSecond}) {
    builder.AddAllocation({.at = Instant{at}, .bytes = 1});
  }
  const auto built = builder.Build();
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ((*built)->allocations.size(), 3u);
  ASSERT_EQ((*built)->provenance.counts.size(), 1u);
  EXPECT_EQ((*built)->provenance.counts[0].count, 2u);
  EXPECT_TRUE((*built)->provenance.counts[0].repair);  // told beside the events, not among them
}

TEST(TraceBuilder, APauseOfHalfAMinuteIsNotFar) {
  EXPECT_EQ((*WithFarEvents({30 * kSecond}))->rows(), 201u);
}

TEST(StringPool, GivesEqualTextsOneId) {
  StringPool pool;
  EXPECT_EQ(pool.Intern("").value, 0u);
  std::vector<std::string> texts;
  texts.reserve(20001);
  for (int i = 0; i < 20000; ++i) texts.push_back(std::string(i % 200, 'x') + std::to_string(i));
  texts.push_back(std::string(1 << 20, 'y'));
  std::vector<NameId> ids;
  ids.reserve(texts.size());
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
