// Waits for the whole device: how many edges they need, and that those that stay wait for as much
// as before when others go.
#include "graph/device_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <unordered_map>

#include "tests/graph/built_sketch.h"
#include "transforms/core/editor.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::string_view kSync = "cudaDeviceSynchronize";

// A program as it runs: launches take 2 us, synchronizations return 3 us after the work.
class Program {
 public:
  explicit Program(int streams) : cpu_(s_.Thread()) {
    for (int i = 0; i < streams; ++i) lanes_.push_back(s_.Stream(7 + i));
    free_at_.resize(lanes_.size(), 0);
  }
  void Launch(size_t stream, double length) {
    const double start = std::max(now_ + 3, free_at_[stream] + 1);
    s_.Launch(cpu_, lanes_[stream], "k", now_, 2, start, length);
    free_at_[stream] = start + length;
    now_ += 2.5;
  }
  void Wait(std::string_view name = kSync) {
    const double done = *std::max_element(free_at_.begin(), free_at_.end());
    const double end = std::max(now_ + 4, done + 3);
    s_.Call(cpu_, name, now_, end - now_, ++correlation_);
    now_ = end + 0.5;
  }
  BuiltGraph Built() { return Build(s_); }

 private:
  TraceSketch s_;
  LaneId cpu_;
  std::vector<LaneId> lanes_;
  std::vector<double> free_at_;
  double now_ = 0;
  uint32_t correlation_ = 0;
};

BuiltGraph ManyOfBoth(int streams, int waits) {
  Program p(streams);
  for (int i = 0; i < streams; ++i) p.Launch(static_cast<size_t>(i), 10);
  for (int i = 0; i < waits; ++i) p.Wait();
  p.Launch(0, 10);
  return p.Built();
}

TEST(DeviceWaits, ThousandsOfStreamsAndWaitsHaveFewEdges) {
  const BuiltGraph built = ManyOfBoth(2000, 2000);
  EXPECT_EQ(built.report.blocking_calls, 2000u);
  // A launch and a wait for each stream, a target for each wait; a few are told twice, for they
  // ended just before a wait returned.
  EXPECT_LT(built.graph.edges().size(), 4u * 2000);
  EXPECT_GE(built.graph.edges().size(), 3u * 2000 - 1);
}

TEST(DeviceWaits, StreamsThatMetInManyWaitsMeetInFewEdges) {
  BuiltGraph built = ManyOfBoth(300, 300);
  const auto scenario = ParseScenario("no-sync");
  ASSERT_TRUE(scenario.ok());
  Graph g = built.graph;
  ASSERT_TRUE(Apply(scenario->front(), g).ok());
  EXPECT_TRUE(Validate(g).ok()) << Validate(g);
  EXPECT_LT(g.edges().size(), 4u * 300) << "pairwise they are 90,000 for each wait";
}

int SynchronizationsIn(const Graph& g) {
  int calls = 0;
  for (size_t i = 0; i < g.size(); ++i) {
    calls += !g.task(TaskId(i)).removed && g.TaskName(TaskId(i)) == kSync;
  }
  return calls;
}

// Profilers and benchmarks make the last one; a program with such a wait launches behind it.
TEST(DeviceWaits, NoSyncKeepsTheOneBehindTheLastLaunch) {
  Program p(1);
  for (int step = 0; step < 3; ++step) {
    p.Launch(0, 10);
    p.Wait();
  }
  Graph g = p.Built().graph;
  ASSERT_EQ(SynchronizationsIn(g), 3);
  const auto scenario = ParseScenario("no-sync");
  ASSERT_TRUE(scenario.ok());
  const auto applied = Apply(scenario->front(), g);
  ASSERT_TRUE(applied.ok());
  EXPECT_EQ(SynchronizationsIn(g), 1);
  EXPECT_THAT(applied->changes.notes, Contains(HasSubstr("at an end of the recording")));
}

// What each wait has to wait for: the last kernel of each stream that was launched before it.
std::vector<std::pair<TaskId, std::vector<TaskId>>> Awaited(const Graph& g) {
  std::unordered_map<uint32_t, TaskId> launched;  // by call
  for (const Edge& e : g.edges()) {
    if (e.rule == Rule::kLaunch && e.from_anchor == Anchor::kEnd) launched[e.from.value] = e.to;
  }
  std::vector<std::pair<TaskId, std::vector<TaskId>>> waits;
  std::vector<TaskId> before;
  for (TaskId t = g.lanes()[0].first; t.valid(); t = g.task(t).lane_next) {
    if (auto it = launched.find(t.value); it != launched.end()) before.push_back(it->second);
    if (g.TaskName(t) == kSync) waits.emplace_back(t, before);
  }
  return waits;
}

BuiltGraph RandomProgram(std::mt19937& random) {
  const size_t streams = 1 + random() % 6;
  Program program(static_cast<int>(streams));
  for (int i = 0; i < 60; ++i) {
    switch (random() % 4) {
      case 0:
        program.Wait();
        break;
      case 1:
        program.Wait(random() % 3 == 0 ? "cudaFree" : kSync);
        break;
      default:
        program.Launch(random() % streams, static_cast<double>(random() % 90));
    }
  }
  return program.Built();
}

void ExpectWaitsForAll(const Graph& g, uint32_t seed) {
  const Timeline t = Play(g);
  for (const auto& [wait, awaited] : Awaited(g)) {
    if (g.task(wait).removed) continue;
    for (TaskId kernel : awaited) {
      EXPECT_GE(t.end[wait.index()], t.end[kernel.index()])
          << "seed " << seed << ", wait " << wait.value << ", kernel " << kernel.value;
    }
  }
}

TEST(DeviceWaits, WhicheverWaitsGoTheOthersWaitForTheWholeDevice) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const BuiltGraph built = RandomProgram(random);
    ExpectReplaysExactly(built.graph);
    Graph g = built.graph;
    Editor edit(g);
    for (TaskId t : edit.Select([](const Graph&of, TaskId i) { return IsGpu(of.task(i).kind); })) {
      edit.SetDuration(t, Duration::Us(static_cast<int64_t>(random() % 500)));
    }
    ExpectWaitsForAll(g, seed);
    for (TaskId t : edit.Select([](const Graph&of, TaskId i) { return of.TaskName(i) == kSync; })) {
      if (random() % 2 == 0) edit.Remove({&t, 1});
    }
    edit.Finish();
    EXPECT_TRUE(Validate(g).ok()) << Validate(g);
    ExpectWaitsForAll(g, seed);
  }
}

// More streams than meet two by two. What was awaited still comes before what was launched behind.
TEST(DeviceWaits, ManyStreamsThatMetInAWaitThatGoesStillMeet) {
  const auto scenario = ParseScenario("no-sync");
  ASSERT_TRUE(scenario.ok());
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Program program(20);
    for (size_t stream = 0; stream < 20; ++stream) program.Launch(stream, 10);
    for (int i = 0; i < 80; ++i) {
      if (random() % 3 == 0) program.Wait();
      program.Launch(random() % 20, static_cast<double>(random() % 90));
    }
    Graph g = program.Built().graph;
    const auto awaited_of = Awaited(g);
    const std::vector<TaskId> all = awaited_of.back().second;  // before the last wait
    ASSERT_TRUE(Apply(scenario->front(), g).ok());
    Editor edit(g);
    for (const TaskId kernel : all) {
      edit.SetDuration(kernel, Duration::Us(static_cast<int64_t>(random() % 500)));
    }
    edit.Finish();
    const Timeline t = Play(g);
    size_t gone = 0;
    for (const auto& [wait, awaited] : awaited_of) {
      gone += g.task(wait).removed;
      Instant met = Instant::Min();
      for (const TaskId kernel : awaited) met = std::max(met, t.end[kernel.index()]);
      for (size_t i = awaited.size(); i < all.size(); ++i) {
        EXPECT_GE(t.start[all[i].index()], met) << "wait " << wait.value;
      }
    }
    EXPECT_GT(gone, 10u);
  }
}

TEST(DeviceWaits, AWaitThatGoesPassesOnWhatLaterOnesNeed) {
  Program p(2);
  p.Launch(0, 50), p.Launch(1, 10);
  for (int i = 0; i < 9; ++i) p.Wait();
  const BuiltGraph built = p.Built();
  const Graph& g = built.graph;
  const TaskId last = Find(g, kSync, TaskKind::kCall, 8);
  const auto edges_of = [](TaskId wait, const auto& edges) {
    size_t n = 0;
    for (const Edge& e : edges) n += e.rule == Rule::kHostWait && e.to == wait;
    return n;
  };
  EXPECT_EQ(edges_of(last, g.edges()), 1u) << "the kernel that ended last";
  const std::vector<PassedEdge> passed = EdgesPassedOn(g, [&](TaskId t) { return t != last; });
  ASSERT_EQ(passed.size(), 1u);
  EXPECT_EQ(g.task(passed[0].edge.from).duration, Duration::Us(10)) << "and the other stream's";
  EXPECT_EQ(passed[0].edge.to, last);
  EXPECT_TRUE(EdgesPassedOn(g, [](TaskId) { return false; }).empty());
}

}  // namespace
}  // namespace daydream
