// Work that waits for itself, as after a clock was set: each cycle is cut at its weakest edge.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "graph/order.h"
#include "tests/graph/random_graph.h"
#include "tests/graph/trace_sketch.h"

namespace daydream {
namespace {

Builder BuilderOf(Graph graph) {
  TraceSketch sketch;
  sketch.Call(sketch.Thread(), "cudaMalloc", 0, 1);
  Builder builder(sketch.Build(), {});
  builder.graph = std::move(graph);
  builder.next_on_lane.clear();
  for (const Task& task : builder.graph.tasks()) builder.next_on_lane.push_back(task.lane_next);
  return builder;
}

uint64_t CountOf(const Graph& graph, Rule rule) {
  return static_cast<uint64_t>(std::count_if(graph.edges().begin(), graph.edges().end(),
                                             [&](const Edge& e) { return e.rule == rule; }));
}

// Any edges whatever between its tasks, of the rule that is trusted least; `random` as in
// RandomGraph().
void AddWrongEdges(Graph& graph, int edges, uint64_t seed) {
  uint64_t state = seed;
  auto any = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return TaskId((state >> 33) % graph.size());
  };
  for (int i = 0; i < edges; ++i)
    graph.AddEdge({.from = any(), .to = any(), .lag = {}, .rule = Rule::kQueue});
}

TEST(Contradictions, OnlyTheEdgesThatMadeThemAreCut) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Graph graph = RandomGraph(seed);
    const uint64_t right = graph.edges().size();
    AddWrongEdges(graph, static_cast<int>(seed % 40), seed);
    Builder b = BuilderOf(std::move(graph));
    ASSERT_TRUE(CutContradictions(b).ok()) << seed;
    EXPECT_TRUE(EvaluationOrder(b.graph).ok()) << seed;
    EXPECT_EQ(b.graph.edges().size() - CountOf(b.graph, Rule::kQueue), right) << seed;
  }
}

TEST(Contradictions, NothingIsCutWithoutOne) {
  Graph graph = RandomGraph(7);
  const uint64_t edges = graph.edges().size();
  Builder b = BuilderOf(std::move(graph));
  ASSERT_TRUE(CutContradictions(b).ok());
  EXPECT_EQ(b.graph.edges().size(), edges);
  EXPECT_TRUE(b.report.warnings.empty());
}

TEST(Contradictions, MoreThanARepairAreRefused) {
  Graph graph = RandomGraph(3, {.tasks = 2000, .lanes = 4});
  AddWrongEdges(graph, 4000, 3);
  Builder b = BuilderOf(std::move(graph));
  const absl::Status status = CutContradictions(b);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(DiagnosticOf(status).code, "E0304");
}

}  // namespace
}  // namespace daydream
