// What an edit can save at the most.
#include "report/predict/most_saved.h"

#include <gtest/gtest.h>

#include "report/predict/what_if.h"
#include "report/windows.h"
#include "simulator/simulate.h"
#include "tests/example_graph.h"
#include "transforms/core/editor.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

TEST(MostSaved, IsWhatTheEditTakesAway) {
  const BuiltGraph built = Example("resnet50");
  Graph graph = built.graph;
  EXPECT_EQ(MostSaved(built.graph, graph), Duration{});
  Editor edit(graph);
  const TaskId kernel = edit.Select([](const Graph& g, TaskId t) {
    return g.task(t).kind == TaskKind::kKernel && g.task(t).step > 0 && g.task(t).duration.ns > 99;
  })[0];
  Task added = graph.task(kernel);
  edit.InsertAfter(kernel, added);
  EXPECT_EQ(MostSaved(built.graph, graph), Duration{});  // more work saves nothing
  edit.SetDuration(kernel, added.duration - Duration::Ns(99));
  const auto steps = static_cast<int64_t>(CountedSteps(graph).size());
  EXPECT_EQ(MostSaved(built.graph, graph), Duration::Ns(99) / steps);
}

TEST(MostSaved, IsNotKnownWhereAWaitIsGone) {
  const BuiltGraph built = Example("resnet50");
  Graph graph = built.graph;
  Editor edit(graph);
  size_t seen = 0;
  edit.DropEdges(
      [&](const Graph&, const Edge& e) { return e.rule != Rule::kQueue && ++seen == 1; });
  EXPECT_EQ(MostSaved(built.graph, graph), Duration::Max());
}

// Alone, and beside another one.
TEST(MostSaved, NoOptimizationSavesMore) {
  for (const char* name : {"resnet50", "launch-bound"}) {
    const BuiltGraph built = Example(name);
    const auto step = [](const Graph& g) { return StepTime(g, *Simulate(g)); };
    const Duration before = step(built.graph);
    size_t known = 0;
    for (const Transform* t : Transforms()) {
      const auto alone = ParseScenario(t->name);
      if (!alone.ok()) continue;  // it needs a value
      Graph graph = built.graph;
      if (!ApplyAll(*alone, graph).ok()) continue;
      const Duration most = MostSaved(built.graph, graph);
      if (most == Duration::Max()) continue;
      ++known;
      const Duration rounding = Duration::Us(1);
      EXPECT_LE(before - step(graph), most + rounding) << name << ": " << t->name;
      const auto beside = ParseScenario("free-gpu");
      Graph other = built.graph, both = graph;
      if (!ApplyAll(*beside, other).ok() || !ApplyAll(*beside, both).ok()) continue;
      EXPECT_LE(step(other) - step(both), most + rounding) << name << ": " << t->name;
    }
    EXPECT_GT(known, 2);
  }
}

}  // namespace
}  // namespace daydream
