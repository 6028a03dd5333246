#include "graph/recent_ends.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "tests/graph/built_sketch.h"

namespace daydream {
namespace {

constexpr int64_t kFirstIdle = 1000;  // number of the first stream that is beside the matter
constexpr size_t kMany = 100;         // more than what counts as few

// Streams of which each runs one kernel, long after all else. They have a part in nothing.
void AddIdleStreams(TraceSketch& s, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    s.Kernel(s.Stream(kFirstIdle + static_cast<int64_t>(i)), "idle", 1e6, 1);
  }
}

// All that a rule about streams may look for: rests, kernels that hold one another up, branches of
// CUDA graphs, waits for events and for streams.
BuiltGraph RandomProgram(uint32_t seed, size_t idle_streams) {
  std::mt19937 random(seed);
  TraceSketch s;
  const LaneId threads[] = {s.Thread(100), s.Thread(200)};
  std::vector<LaneId> streams;
  for (size_t i = 0, n = 2 + random() % 6; i < n; ++i) {
    streams.push_back(s.Stream(7 + static_cast<int64_t>(i)));
  }
  const uint32_t longest = random() % 2 == 0 ? 30 : 400;
  std::map<LaneId, double> ends;
  double now = 1;
  for (uint32_t i = 1, n = 40 + random() % 60; i < n; ++i, now += 12) {
    const LaneId thread = threads[random() % 8 == 0 ? 1 : 0];
    if (random() % 4 == 0) s.Call(thread, "cudaStreamWaitEvent", now, 1);
    if (random() % 8 == 0) {
      const double until = std::max(now + 2, ends[streams[random() % streams.size()]] + 3);
      s.Call(threads[0], "cudaStreamSynchronize", now + 1.5, until - now);
      now = until + 2;
    }
    if (random() % 10 == 0) {
      const LaneId stream = streams[random() % streams.size()];
      const double until = std::max(now + 2, ends[stream] + 3 - random() % 40);
      const bool frees = random() % 3 == 0;
      s.Call(thread, frees ? "cudaFree" : "cudaDeviceSynchronize", now + 1.5, until - now);
      now = until + 2;
    }
    const bool is_graph = random() % 6 == 0;
    s.Call(thread, is_graph ? "cudaGraphLaunch" : "cudaLaunchKernel", now + 2, 3, i);
    double at = now + 6;
    for (size_t k = 0, kernels = is_graph ? 2 + random() % 4 : 1; k < kernels; ++k) {
      const LaneId stream = streams[random() % streams.size()];
      if (!is_graph || random() % 2 == 0) at = std::max(at, ends[stream] + 1);
      if (random() % 3 == 0) at += random() % 300;
      const double length = 1 + random() % longest;
      s.Kernel(stream, fmt::format("k{}.{}", i, k), at, length, i);
      ends[stream] = std::max(ends[stream], at + length);
    }
  }
  AddIdleStreams(s, idle_streams);
  return Build(s);
}

std::string Name(const Graph& g, TaskId t) {
  const Task& task = g.task(t);
  return fmt::format("{} on {} at {} for {}", g.TaskName(t), g.lane(task.lane).lane.number,
                     task.recorded_start.ns, task.duration.ns);
}

std::vector<std::string> EdgesBesideIdle(const Graph& g) {
  std::vector<std::string> edges;
  for (const Edge& e : g.edges()) {
    if (g.lane(g.task(e.to).lane).lane.number >= kFirstIdle) continue;
    if (g.lane(g.task(e.from).lane).lane.number >= kFirstIdle) continue;
    edges.push_back(fmt::format("{} -> {} rule {} lag {} {}{}", Name(g, e.from), Name(g, e.to),
                                static_cast<int>(e.rule), e.lag.ns, static_cast<int>(e.from_anchor),
                                static_cast<int>(e.to_anchor)));
  }
  std::ranges::sort(edges);
  return edges;
}

// Among few streams all are searched, among many those that can matter.
TEST(RecentEnds, ManyStreamsBesideTheMatterChangeNothing) {
  uint64_t contended = 0, unexplained = 0, waits = 0, blocking = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const BuiltGraph few = RandomProgram(seed, 1), many = RandomProgram(seed, kMany);
    ASSERT_EQ(EdgesBesideIdle(few.graph), EdgesBesideIdle(many.graph));
    EXPECT_EQ(few.report.contended, many.report.contended);
    EXPECT_EQ(few.report.unexplained, many.report.unexplained);
    EXPECT_EQ(few.report.event_waits, many.report.event_waits);
    contended += few.report.contended;
    unexplained += few.report.unexplained;
    waits += few.report.event_waits;
    blocking += few.report.blocking_calls;
  }
  EXPECT_GT(contended, 500u);
  EXPECT_GT(unexplained, 500u);
  EXPECT_GT(waits, 500u);
  EXPECT_GT(blocking, 200u);
}

// Stream i has kernels from 10 i to 10 i + 5 and from 10,000 + 10 i on, in us; the last has a short
// one beside its first, too.
Builder ManyStreams() {
  TraceSketch s;
  s.Thread();
  for (size_t i = 0; i < kMany; ++i) {
    const LaneId stream = s.Stream(static_cast<int64_t>(i));
    s.Kernel(stream, "a", 10.0 * static_cast<double>(i), 5);
    if (i + 1 == kMany) s.Kernel(stream, "beside", 991, 2);
    s.Kernel(stream, "b", 10'000 + 10.0 * static_cast<double>(i), 5);
  }
  Builder b(s.Build(), {});
  AddHostThreads(b);
  AddStreams(b);
  return b;
}

Instant At(int64_t us) { return Instant::AtNs(us * 1000); }

std::vector<int64_t> Numbers(const Builder& b, std::span<const LaneId> streams) {
  std::vector<int64_t> numbers;
  for (const LaneId lane : streams) numbers.push_back(b.trace.lanes[lane.index()].number);
  return numbers;
}

TEST(RecentEnds, OnlyStreamsWhoseWorkEndedThenAreSearched) {
  const Builder b = ManyStreams();
  RecentEnds ends(b);
  EXPECT_EQ(Numbers(b, ends.Streams(At(25), At(45))), (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(Numbers(b, ends.Streams(At(26), At(44))), (std::vector<int64_t>{3}));
  EXPECT_EQ(Numbers(b, ends.Streams(At(993), At(995))), (std::vector<int64_t>{99})) << "once";
  EXPECT_TRUE(ends.Streams(At(26), At(34)).empty());
  EXPECT_TRUE(ends.Streams(At(34), At(26)).empty());
  EXPECT_EQ(ends.Streams(At(0), At(20'000)).size(), kMany) << "each once";
}

TEST(LatestEnds, OnlyStreamsWhoseWorkGoesOnAreSearched) {
  const Builder b = ManyStreams();
  LatestEnds ends(b);
  EXPECT_TRUE(ends.Streams(At(0)).empty()) << "nothing began";
  for (size_t i = 0; i < kMany + 3; ++i) ends.Add(b.ops[i]);
  EXPECT_EQ(ends.Streams(At(0)).size(), kMany) << "each once";
  EXPECT_EQ(Numbers(b, ends.Streams(At(995))), (std::vector<int64_t>{0, 1, 99}));
  EXPECT_EQ(Numbers(b, ends.Streams(At(985))), (std::vector<int64_t>{0, 1, 98, 99}));
  EXPECT_EQ(Numbers(b, ends.Streams(At(10'005))), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(Numbers(b, ends.Streams(At(10'006))), (std::vector<int64_t>{1}));
}

}  // namespace
}  // namespace daydream
