#include "graph/last_of_streams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/graph/built_sketch.h"

namespace daydream {
namespace {

constexpr size_t kFew = 5, kMany = 100;

// Launches on random streams, by two threads; ends of several streams fall together.
Builder RandomLaunches(std::mt19937& random, size_t streams) {
  TraceSketch s;
  const LaneId threads[] = {s.Thread(100), s.Thread(200)};
  std::vector<LaneId> lanes;
  for (size_t i = 0; i < streams; ++i) lanes.push_back(s.Stream(7 + static_cast<int64_t>(i)));
  std::map<LaneId, double> ends;
  for (uint32_t i = 0; i < 300; ++i) {
    const LaneId lane = lanes[random() % streams];
    const double now = 10.0 * i, start = std::max(now + 5, ends[lane] + 1);
    s.Launch(threads[random() % 2], lane, "k", now, 2, start, static_cast<double>(random() % 40));
    ends[lane] = std::max(ends[lane], start + 40);
  }
  Builder b(s.Build(), {});
  AddHostThreads(b);
  AddStreams(b);
  return b;
}

uint32_t LatestBySearch(const Builder& b, Instant t, Instant limit) {
  uint32_t latest = Builder::kNone;
  for (size_t lane = 0; lane < b.stream_ops.size(); ++lane) {
    const uint32_t op = b.LastLaunchedBefore(LaneId(lane), t);
    if (op == Builder::kNone || b.ops[op].end > limit) continue;
    if (latest == Builder::kNone || b.ops[op].end > b.ops[latest].end) latest = op;
  }
  return latest;
}

Instant At(uint32_t us) { return Instant::AtNs(int64_t{us} * 1000); }

// Forward, back, and over so much that all streams are looked at.
TEST(LastOfStreams, TellsWhatASearchOfAllStreamsFinds) {
  for (const size_t streams : {kFew, kMany}) {
    for (uint32_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(seed);
      std::mt19937 random(seed);
      const Builder b = RandomLaunches(random, streams);
      LastOfStreams last(b);
      std::vector<uint32_t> told(b.stream_ops.size(), Builder::kNone);  // by the changes alone
      uint32_t at = 0;
      for (int i = 0; i < 100; ++i) {
        at = random() % 10 == 0 ? random() % 3100 : at + random() % 60;
        const Instant t = At(at), limit = At(at + random() % 100);
        for (const LastOfStreams::Change& change : last.GoTo(t)) {
          EXPECT_EQ(told[change.lane.index()], change.before);
          EXPECT_NE(change.before, change.now);
          told[change.lane.index()] = change.now;
        }
        for (size_t lane = 0; lane < b.stream_ops.size(); ++lane) {
          ASSERT_EQ(told[lane], b.LastLaunchedBefore(LaneId(lane), t)) << "at " << at;
          ASSERT_EQ(told[lane], last.Of(LaneId(lane)));
        }
        ASSERT_EQ(last.LatestBy(limit), LatestBySearch(b, t, limit)) << "at " << at;
        ASSERT_EQ(last.Latest(), LatestBySearch(b, t, At(1'000'000)));
        EXPECT_EQ(last.AllEndBy(limit),
                  last.Latest() == last.LatestBy(limit) &&
                      (last.Latest() == Builder::kNone || b.ops[last.Latest()].end <= limit));
      }
    }
  }
}

}  // namespace
}  // namespace daydream
