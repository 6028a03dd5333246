// Algorithms of Boost.Graph run on a Graph as it is.
#include "graph/bgl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <vector>

#include "graph/order.h"
#include "graph/text.h"
#include "tests/graph/random_graph.h"

namespace daydream {
namespace {

using testing::ElementsAre;

constexpr char kDiamond[] = R"(
lane a thread
lane s stream
lane u stream
t0 a call
t1 s kernel after t0
t2 u kernel after t0
t3 a wait until t1 until t2
t4 a host
)";

TEST(Bgl, EdgesAreLaneOrderAndThenTheOthers) {
  const Graph g = ParseGraph(kDiamond).value();
  const BglGraph view(g);
  EXPECT_EQ(num_vertices(view), 5u);
  EXPECT_EQ(num_edges(view), 6u);
  std::vector<size_t> targets;
  for (auto [e, end] = out_edges(0, view); e != end; ++e) targets.push_back(target(*e, view));
  EXPECT_THAT(targets, ElementsAre(3, 1, 2));
  std::vector<size_t> sources;
  for (auto [e, end] = in_edges(3, view); e != end; ++e) sources.push_back(source(*e, view));
  EXPECT_THAT(sources, ElementsAre(0, 1, 2));
  EXPECT_EQ(out_degree(3, view), 1u);
  EXPECT_EQ(in_degree(0, view), 0u);
}

TEST(Bgl, TopologicalSortAgreesWithEveryDependency) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph g = RandomGraph(seed, {.tasks = 30});
    const BglGraph view(g);
    std::vector<size_t> backwards;
    boost::topological_sort(view, std::back_inserter(backwards));
    ASSERT_EQ(backwards.size(), g.size());
    std::vector<size_t> place(g.size());
    for (size_t i = 0; i < g.size(); ++i) place[backwards[i]] = g.size() - i;
    for (auto [v, v_end] = vertices(view); v != v_end; ++v) {
      for (auto [e, end] = out_edges(*v, view); e != end; ++e) {
        EXPECT_LT(place[source(*e, view)], place[target(*e, view)]);
      }
    }
  }
}

TEST(Bgl, TopologicalSortRefusesACycle) {
  Graph g = ParseGraph(kDiamond).value();
  g.AddEdge({.from = TaskId(4), .to = TaskId(0)});
  const BglGraph view(g);
  std::vector<size_t> order;
  EXPECT_THROW(boost::topological_sort(view, std::back_inserter(order)), boost::not_a_dag);
  EXPECT_THAT(FindCycle(g), ElementsAre(TaskId(0), TaskId(3), TaskId(4)));
}

TEST(Bgl, DominatorTreeFindsWhatEverythingPassesThrough) {
  const Graph g = ParseGraph(kDiamond).value();
  const BglGraph view(g);
  std::vector<size_t> dominator(g.size(), boost::graph_traits<BglGraph>::null_vertex());
  boost::lengauer_tarjan_dominator_tree(
      view, size_t{0},
      boost::make_iterator_property_map(dominator.begin(), get(boost::vertex_index, view)));
  EXPECT_EQ(dominator[1], 0u);
  EXPECT_EQ(dominator[2], 0u);
  EXPECT_EQ(dominator[3], 0u);  // either kernel may decide
  EXPECT_EQ(dominator[4], 3u);
}

}  // namespace
}  // namespace daydream
