// Promises that hold for every graph, checked on random ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "graph/ranks/join.h"
#include "graph/text.h"
#include "graph/validate.h"
#include "simulator/accounting.h"
#include "simulator/critical_path.h"
#include "simulator/simulate.h"
#include "tests/graph/random_graph.h"

namespace daydream {
namespace {

constexpr uint64_t kSeeds = 300;

Graph GraphOf(uint64_t seed, size_t priority_lanes) {
  RandomGraphOptions options;
  options.tasks = 2 + seed % 80;
  options.lanes = priority_lanes + 1 + seed % 4;
  options.priority_lanes = priority_lanes;
  options.longest = seed % 3 == 0 ? 4 : 300;
  return RandomGraph(seed, options);
}

Duration DurationOf(const Task& t) { return t.removed ? Duration() : t.duration; }

TEST(Property, BusyGapAndIdleSumToTheMakespan) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph g = GraphOf(seed, seed % 3);
    const Timeline t = Simulate(g).value();
    const std::vector<LaneAccount> accounts = Account(g, t);
    ASSERT_EQ(accounts.size(), g.lanes().size());
    for (const LaneAccount& a : accounts) {
      EXPECT_EQ(a.busy + a.gap + a.idle, t.makespan);
      EXPECT_GE(a.idle, Duration());
      EXPECT_GE(a.gap, Duration());
      EXPECT_GE(a.waiting, Duration());
      EXPECT_LE(a.waiting, a.busy);
    }
  }
}

TEST(Property, EqualGraphsGiveEqualTimelines) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Timeline a = Simulate(GraphOf(seed, seed % 3), {.blockers = true}).value();
    const Timeline b = Simulate(GraphOf(seed, seed % 3), {.blockers = true}).value();
    EXPECT_EQ(a.start, b.start);
    EXPECT_EQ(a.end, b.end);
    for (size_t i = 0; i < a.start.size(); ++i) {
      EXPECT_EQ(a.start_blocker[i].task, b.start_blocker[i].task);
      EXPECT_EQ(a.end_blocker[i].edge, b.end_blocker[i].edge);
    }
  }
}

TEST(Property, EveryConstraintHolds) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph g = GraphOf(seed, seed % 3);
    const Timeline t = Simulate(g).value();
    for (size_t i = 0; i < g.size(); ++i) {
      EXPECT_GE(t.start[i], g.tasks()[i].earliest);
      EXPECT_GE(t.end[i], t.start[i] + DurationOf(g.tasks()[i]));
      EXPECT_LE(t.end[i] - Instant::AtNs(0), t.makespan);
    }
    for (const Edge& e : g.edges()) {
      const Instant from = (e.from_anchor == Anchor::kStart ? t.start : t.end)[e.from.index()];
      EXPECT_GE((e.to_anchor == Anchor::kStart ? t.start : t.end)[e.to.index()], from + e.lag);
    }
  }
}

TEST(Property, EveryInstantHasACause) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph g = GraphOf(seed, seed % 3);
    const Timeline t = Simulate(g, {.blockers = true}).value();
    for (size_t i = 0; i < g.size(); ++i) {
      const Blocker& b = t.start_blocker[i];
      if (b.edge == Blocker::kNothing) {
        EXPECT_EQ(t.start[i], g.tasks()[i].earliest);
      } else if (b.edge < g.edges().size()) {
        const Edge& e = g.edges()[b.edge];
        EXPECT_EQ(t.start[i],
                  (e.from_anchor == Anchor::kStart ? t.start : t.end)[e.from.index()] + e.lag);
      } else {
        EXPECT_EQ(b.edge, Blocker::kLane);
        EXPECT_EQ(g.task(b.task).lane, g.tasks()[i].lane);
      }
      EXPECT_NE(t.end_blocker[i].edge, Blocker::kNothing);
    }
  }
}

// Only true where the order is fixed: see Schedule.ShorterTaskCanMakeTheWholeLonger.
TEST(Property, LongerTaskNeverMakesAnythingEarlier) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Graph g = GraphOf(seed, 0);
    const Timeline before = Simulate(g).value();
    g.mutable_task(TaskId(seed * 7919 % g.size())).duration += Duration::Ns(17);
    const Timeline after = Simulate(g).value();
    for (size_t i = 0; i < g.size(); ++i) {
      EXPECT_GE(after.start[i], before.start[i]);
      EXPECT_GE(after.end[i], before.end[i]);
    }
    EXPECT_LE(after.makespan, before.makespan + Duration::Ns(17) * int64_t(g.size()));
  }
}

TEST(Property, CriticalPathHasNoHolesAndEndsLast) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph g = GraphOf(seed, seed % 3);
    const Timeline t = Simulate(g, {.blockers = true}).value();
    const std::vector<PathSegment> path = CriticalPath(g, t);
    // Negative lags can lead back to a start that comes after the instant which it decides.
    if (path.empty()) continue;
    EXPECT_EQ(path.back().end - Instant::AtNs(0), t.makespan);
    for (size_t i = 0; i < path.size(); ++i) {
      EXPECT_LT(path[i].begin, path[i].end);
      const Instant joint = i == 0 ? path[i].begin : path[i - 1].end;
      EXPECT_EQ(path[i].begin, joint);
    }
    const BoundBy sum = SumByResource(path);
    EXPECT_EQ(sum.gpu + sum.cpu + sum.comm + sum.data, path.back().end - path.front().begin);
  }
}

// Blockers are looked for along the path where none were recorded.
TEST(Property, ThePathIsTheSameWhereItsBlockersAreLookedFor) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph g = GraphOf(seed, 0);
    const Timeline recorded = Simulate(g, {.blockers = true}).value(), bare = Simulate(g).value();
    ASSERT_TRUE(bare.start_blocker.empty());
    ASSERT_TRUE(HasPath(g, bare));
    const auto as_text = [](const std::vector<PathSegment>& path) {
      std::string text;
      for (const PathSegment& s : path) {
        text += fmt::format("{} {} {} {} {} {}\n", s.begin.ns, s.end.ns, s.task.value,
                            static_cast<int>(s.rule), s.lag, static_cast<int>(s.resource));
      }
      return text;
    };
    for (size_t i = 0; i < g.size(); ++i) {
      EXPECT_EQ(as_text(CriticalPath(g, bare, TaskId(i))),
                as_text(CriticalPath(g, recorded, TaskId(i))));
    }
  }
}

TEST(Property, LanesThatMayReorderHaveAPathOnlyWithBlockers) {
  const Graph g = GraphOf(5, 2);
  EXPECT_FALSE(HasPath(g, Simulate(g).value()));
  EXPECT_TRUE(HasPath(g, Simulate(g, {.path = true}).value()));
}

// Work of a host in a row is one task there, which begins with the first and ends with the last.
TEST(Property, JoiningRanksMovesNothing) {
  size_t merged = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Graph g = GraphOf(seed, 0);
    if (seed % 2 == 0) g.mutable_edges().resize(g.edges().size() / 4);
    const Timeline own = Simulate(g).value();
    const Graph* const ranks[] = {&g, &g};
    const RankCollectives none[2];
    const Duration begin[2];
    const JointGraph joint = JoinGraphs(ranks, none, {}, {}, {}, begin);
    const Timeline both = Simulate(joint.graph).value();
    for (size_t r : {0u, 1u}) {
      const RankAlone alone = TakeAlone(joint, r);
      const Timeline one = Simulate(alone.graph).value();
      std::vector<int> tasks(joint.graph.size());
      for (TaskId t : joint.task[r]) ++tasks[t.index()];
      for (size_t i = 0; i < g.size(); ++i) {
        const size_t place = joint.task[r][i].index();
        EXPECT_EQ(both.start[place], one.start[alone.task[i].index()]);
        EXPECT_EQ(both.end[place], one.end[alone.task[i].index()]);
        EXPECT_LE(both.start[place], own.start[i]);
        EXPECT_GE(both.end[place], own.end[i]);
        if (tasks[place] > 1) {
          ++merged;
          continue;
        }
        EXPECT_EQ(both.start[place], own.start[i]);
        EXPECT_EQ(both.end[place], own.end[i]);
      }
    }
  }
  EXPECT_GT(merged, kSeeds);
}

}  // namespace
}  // namespace daydream
