// A graph that is played once with other numbers plays as a plan with these does.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "simulator/simulate.h"
#include "tests/graph/random_graph.h"

namespace daydream {
namespace {

TEST(PlayOnceWith, TakesWhatAPlanTakes) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto drawn = [&] { return Duration::Ns(static_cast<int64_t>(random() % 60)); };
    const Graph graph = RandomGraph(seed, {.tasks = 1 + seed % 70, .lanes = 1 + seed % 6});
    std::vector<Duration> durations(graph.size()), gaps(graph.size());
    std::ranges::generate(durations, drawn);
    std::ranges::generate(gaps, drawn);
    std::vector<Edge> edges(graph.edges().begin(), graph.edges().end());
    for (Edge& e : edges) e.lag = drawn() - Duration::Ns(20);
    Timeline planned;
    Plan::Make(graph)->Run(durations, gaps, edges, planned);
    const auto once = PlayOnceWith(graph, durations, gaps, edges);
    ASSERT_TRUE(once.has_value());
    ASSERT_EQ(once->start, planned.start);
    ASSERT_EQ(once->end, planned.end);
  }
}

TEST(PlayOnceWith, PlaysNoLanesThatMayReorder) {
  const Graph graph = RandomGraph(1, {.priority_lanes = 1});
  const std::vector<Duration> times(graph.size());
  EXPECT_FALSE(PlayOnceWith(graph, times, times, graph.edges()).has_value());
}

}  // namespace
}  // namespace daydream
