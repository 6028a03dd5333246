// Many ranks side by side against the same ranks one by one: each replayed alone, with collectives
// that may not begin before the last rank of the group came, again and again until nothing moves.
#include "simulator/ranks/columns.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/text.h"
#include "simulator/simulate.h"
#include "tests/graph/random_graph.h"
#include "tests/real_traces.h"

namespace daydream {
namespace {

// The slow way: graphs of their own, and Meetings found by repetition.
std::vector<Timeline> OneByOne(const Graph& graph, const RankSpeeds& speeds, size_t group) {
  std::vector<Graph> ranks;
  for (size_t r = 0; r < speeds.host.size(); ++r) {
    Graph& own = ranks.emplace_back(graph);
    for (size_t i = 0; i < own.size(); ++i) {
      Task& task = own.mutable_task(TaskId(i));
      if (task.removed) continue;
      const bool meets = task.kind == TaskKind::kCollective;
      const bool host = IsHost(task.kind) && task.kind != TaskKind::kWait;
      const double speed = host ? speeds.host[r] : IsGpu(task.kind) && !meets ? speeds.gpu[r] : 1;
      task.duration = task.duration.Scaled(speed);
      if (task.gap > Duration{}) task.gap = task.gap.Scaled(speed);
    }
  }
  std::vector<Timeline> timelines(ranks.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t r = 0; r < ranks.size(); ++r) timelines[r] = *Simulate(ranks[r]);
    for (size_t i = 0; i < graph.size(); ++i) {
      const Task& task = graph.task(TaskId(i));
      if (task.kind != TaskKind::kCollective || task.removed) continue;
      for (size_t first = 0; first < ranks.size(); first += group) {
        Instant latest;
        const size_t end = std::min(ranks.size(), first + group);
        for (size_t r = first; r < end; ++r) latest = std::max(latest, timelines[r].start[i]);
        for (size_t r = first; r < end; ++r) {
          moved |= timelines[r].start[i] != latest;
          ranks[r].mutable_task(TaskId(i)).earliest = latest;
        }
      }
    }
  }
  return timelines;
}

RankSpeeds Drawn(size_t ranks, uint64_t seed) {
  std::mt19937_64 random(seed);
  RankSpeeds speeds;
  // Sixteenths, and durations of whole microseconds: products are exact.
  auto draw = [&] { return 0.5 + static_cast<double>(random() % 16) / 16; };
  for (size_t r = 0; r < ranks; ++r) speeds.host.push_back(draw()), speeds.gpu.push_back(draw());
  return speeds;
}

// Two streams, a wait of the host, a kernel that overlaps, and two collectives.
Graph Small() {
  auto graph = ParseGraph(
      "lane cpu0   thread\n"
      "lane gpu0.7 stream\n"
      "lane gpu0.9 stream\n"
      "c0 cpu0   call   16us gap 32us \"cudaLaunchKernel\"\n"
      "k0 gpu0.7 kernel 320us \"a\" after c0 launch +2us\n"
      "c1 cpu0   call   16us \"cudaLaunchKernel\"\n"
      "r0 gpu0.9 collective 64us \"ncclDevKernel_AllReduce\" after c1 launch after k0 eventwait\n"
      "k1 gpu0.7 kernel 160us \"b\" after c1 launch\n"
      "k2 gpu0.7 kernel 48us overlaps \"b\"\n"
      "w0 cpu0   wait   \"cudaDeviceSynchronize\" until r0 hostwait until k2 hostwait\n"
      "c2 cpu0   call   160us \"cudaLaunchKernel\"\n"
      "r1 gpu0.9 collective 32us \"ncclDevKernel_AllReduce\" after c2:start launch +8us\n"
      "k3 gpu0.7 kernel 96us \"c\" after r1 eventwait\n");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

std::vector<TaskId> All(const Graph& graph) {
  std::vector<TaskId> all;
  for (size_t i = 0; i < graph.size(); ++i) all.emplace_back(i);
  return all;
}

void ExpectAsOneByOne(const Graph& graph, const RankSpeeds& speeds, size_t group) {
  const std::vector<TaskId> watched = All(graph);
  const auto columns = RankColumns::Make(graph, watched);
  ASSERT_TRUE(columns.ok()) << columns.status();
  const std::vector<Instant> ends = columns->Run(speeds, group);
  const std::vector<Timeline> slow = OneByOne(graph, speeds, group);
  for (size_t g = 0; g * group < slow.size(); ++g) {
    for (size_t i = 0; i < watched.size(); ++i) {
      Instant latest;
      for (size_t r = g * group; r < std::min(slow.size(), (g + 1) * group); ++r) {
        latest = std::max(latest, slow[r].end[i]);
      }
      EXPECT_EQ(ends[g * watched.size() + i], latest) << "task " << i << " of group " << g;
    }
  }
}

TEST(RankColumns, CollectivesWaitForTheSlowestOfTheirGroup) {
  for (size_t ranks : {1, 3, 32, 33, 70}) {
    for (size_t group : {size_t{1}, size_t{5}, ranks})
      ExpectAsOneByOne(Small(), Drawn(ranks, ranks), group);
  }
}

// Where one factor is all that differs, nothing of a rank is later than of a slower one: what
// `daydream scale` plays of n drawn ranks is that one.
TEST(RankColumns, TheSlowestStandsForItsGroup) {
  std::vector<Graph> graphs = {Small()};
  for (uint32_t seed = 1; seed <= 40; ++seed) graphs.push_back(RandomGraph(seed));
  int compared = 0;
  for (const Graph& graph : graphs) {
    const auto columns = RankColumns::Make(graph, All(graph));
    if (!columns.ok()) continue;
    ++compared;
    RankSpeeds all = Drawn(96, static_cast<uint64_t>(compared)), slowest;
    all.gpu = all.host;
    for (size_t group = 0; group < 3; ++group) {
      const auto first = all.host.begin() + static_cast<ptrdiff_t>(32 * group);
      slowest.host.push_back(*std::max_element(first, first + 32));
    }
    slowest.gpu = slowest.host;
    EXPECT_EQ(columns->Run(all, 32), columns->Run(slowest, 1));
  }
  EXPECT_GE(compared, 10);
}

TEST(RankColumns, RanksThatAreAlikeAreOne) {
  int compared = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    const Graph graph = RandomGraph(seed);
    const auto timeline = Simulate(graph);
    const std::vector<TaskId> watched = All(graph);
    const auto columns = RankColumns::Make(graph, watched);
    if (!timeline.ok() || !columns.ok()) continue;
    bool waits = false;  // what a collective waited for in a recording is no transfer
    for (TaskId t : watched) waits |= graph.Transfer(t) < graph.task(t).duration;
    if (waits) continue;
    ++compared;
    const RankSpeeds speeds{std::vector<double>(40, 1.0), std::vector<double>(40, 1.0)};
    const std::vector<Instant> ends = columns->Run(speeds, 40);
    for (size_t i = 0; i < watched.size(); ++i) {
      ASSERT_EQ(ends[i], timeline->end[i]) << "seed " << seed << ", task " << i;
    }
  }
  EXPECT_GE(compared, 10);
}

TEST(RankColumns, AnyOrderOfBlocksGivesTheSameNumbers) {
  const Graph graph = Small();
  const auto columns = RankColumns::Make(graph, All(graph));
  ASSERT_TRUE(columns.ok());
  const RankSpeeds speeds = Drawn(500, 9);
  const auto backwards = [](size_t count, const std::function<void(size_t)>& body) {
    for (size_t i = count; i-- > 0;) body(i);
  };
  EXPECT_EQ(columns->Run(speeds, 125), columns->Run(speeds, 125, backwards));
}

TEST(RankColumns, InstantsThatNobodyReadsAnyMoreAreForgotten) {
  std::string text = "lane cpu0 thread\nlane gpu0.7 stream\n";
  for (int i = 0; i < 1000; ++i) {
    text += "c" + std::to_string(i) + " cpu0 call 5us \"l\"\nk" + std::to_string(i) +
            " gpu0.7 kernel 5us \"k\" after c" + std::to_string(i) + " launch\n";
  }
  const auto graph = ParseGraph(text);
  ASSERT_TRUE(graph.ok());
  const auto columns = RankColumns::Make(*graph, {});
  ASSERT_TRUE(columns.ok());
  EXPECT_LT(columns->live_rows(), 1010u);
}

}  // namespace
}  // namespace daydream
