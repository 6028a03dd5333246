// What our own optimizations leave behind is a graph that can be replayed: outside of debug builds
// nobody checks that but this test and the golden cases.
#include <gtest/gtest.h>

#include <string>

#include "graph/validate.h"
#include "tests/example_graph.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// Those that want to be told what: with something that is in both recordings.
std::string TextOf(const Transform& transform) {
  std::string name(transform.name);
  if (name == "speedup" || name == "remove") return name + "(kind:kernel)";
  if (name == "gpu") return "gpu(H100)";
  if (name == "batch") return "batch(x2)";
  return name;
}

// How many of all could be applied.
size_t ApplyEach(const Graph& graph) {
  size_t applied = 0;
  for (const Transform* transform : Transforms()) {
    SCOPED_TRACE(transform->name);
    auto scenario = ParseScenario(TextOf(*transform));
    if (!scenario.ok()) continue;  // needs a number
    Graph copy = graph;
    if (!Apply(scenario->front(), copy).ok()) continue;
    ++applied;
    EXPECT_TRUE(Validate(copy).ok()) << Validate(copy);
  }
  return applied;
}

TEST(ValidEdits, OfEachOptimizationInRecordings) {
  EXPECT_GE(ApplyEach(Example("resnet50").graph), 20U);
  EXPECT_GE(ApplyEach(Example("launch-bound").graph), 20U);
}

}  // namespace
}  // namespace daydream
