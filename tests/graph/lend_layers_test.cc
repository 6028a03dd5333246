#include "graph/lend_layers.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/build.h"
#include "tests/graph/trace_sketch.h"
#include "trace/range_names.h"

namespace daydream {
namespace {

// One launch: what it launches, and the layer that marks say ("" = none).
struct Call {
  std::string kernel, layer;
};
using StepCalls = std::vector<Call>;

const StepCalls kStep = {
    {"conv", "Net.conv1"}, {"relu", "Net.act"},  {"conv", "Net.conv2"},
    {"relu", "Net.act"},   {"gemm", "Net.head"}, {"sgd", ""},
};

StepCalls WithoutLayers(StepCalls calls) {
  for (Call& call : calls) call.layer.clear();
  return calls;
}

// A step each 1000 us; those with layers are labelled.
BuiltGraph Build(const std::vector<StepCalls>& steps) {
  TraceSketch sketch;
  const LaneId thread = sketch.Thread(), stream = sketch.Stream();
  double us = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    bool labelled = false;
    double at = us;
    for (const Call& call : steps[i]) {
      if (!call.layer.empty()) sketch.Frame(thread, call.layer, at, 9);
      labelled = labelled || !call.layer.empty();
      sketch.Launch(thread, stream, call.kernel, at + 1, 4, at + 6, 3);
      at += 10;
    }
    const std::string_view range = labelled ? kLabelledStepRange : kStepRange;
    sketch.Mark(thread, std::string(range) + std::to_string(i), us, 1000);
    us += 1000;
  }
  auto built = BuildGraph(sketch.Build());
  EXPECT_TRUE(built.ok()) << Message(built.status());
  return *std::move(built);
}

// The layers of the kernels of a step, in order.
std::vector<std::string> LayersOf(const BuiltGraph& built, uint16_t step) {
  std::vector<std::string> layers;
  for (const Task& task : built.graph.tasks()) {
    if (!IsGpu(task.kind) || task.step != step) continue;
    layers.emplace_back(
        task.layer.valid() ? built.graph.Name(built.graph.layers()[task.layer.index()].name) : "-");
  }
  return layers;
}

std::vector<std::string> Expected(const StepCalls& calls) {
  std::vector<std::string> layers;
  for (const Call& call : calls) layers.push_back(call.layer.empty() ? "-" : call.layer);
  return layers;
}

TEST(LendLayers, EqualStepsTakeLayerAndPhase) {
  const StepCalls plain = WithoutLayers(kStep);
  const BuiltGraph built = Build({kStep, kStep, plain, plain, plain});
  for (uint16_t step : {2, 3, 4}) EXPECT_EQ(LayersOf(built, step), Expected(kStep)) << step;
  EXPECT_EQ(built.report.unlabelled_calls, 18u);
  EXPECT_EQ(built.report.matched_calls, 18u);
  for (const Task& task : built.graph.tasks()) {
    if (!IsGpu(task.kind) || !task.layer.valid()) continue;
    EXPECT_EQ(task.phase, Phase::kForward);
  }
  EXPECT_TRUE(built.report.warnings.empty());
}

TEST(LendLayers, AStepThatDiffersTakesWhatIsEqual) {
  // Without the first activation, with a launch more in the head, and something new at the end.
  StepCalls other = {
      {"conv", "Net.conv1"}, {"conv", "Net.conv2"}, {"relu", "Net.act"},
      {"gemm", "Net.head"},  {"sgd", ""},           {"log", ""},
  };
  const BuiltGraph built =
      Build({kStep, WithoutLayers(kStep), WithoutLayers(other), WithoutLayers(kStep)});
  EXPECT_EQ(LayersOf(built, 2), Expected(other));
  EXPECT_EQ(built.report.matched_calls, 17u);
  EXPECT_EQ(built.report.unlabelled_calls, 18u);
  ASSERT_EQ(built.report.warnings.size(), 1u);
  EXPECT_NE(built.report.warnings[0].find("1 of 18 calls"), std::string::npos);
}

TEST(LendLayers, ACallBetweenTwoOfOneLayerBelongsToIt) {
  const StepCalls labelled = {{"a", "Net.x"}, {"b", "Net.x"}, {"c", "Net.y"}};
  const StepCalls other = {{"a", ""}, {"new", ""}, {"b", ""}, {"odd", ""}, {"c", ""}};
  const BuiltGraph built = Build({labelled, other, other, other});
  const std::vector<std::string> expected = {"Net.x", "Net.x", "Net.x", "-", "Net.y"};
  EXPECT_EQ(LayersOf(built, 2), expected);
}

TEST(LendLayers, StepsThatHaveNothingInCommonStayWithout) {
  const StepCalls other = {{"x", ""}, {"y", ""}, {"z", ""}};
  const BuiltGraph built = Build({kStep, other, other, other});
  EXPECT_EQ(LayersOf(built, 2), (std::vector<std::string>{"-", "-", "-"}));
  EXPECT_EQ(built.report.matched_calls, 0u);
}

TEST(LendLayers, LongStepsThatDifferEverywhereTakeBoundedTime) {
  StepCalls labelled, other;
  for (int i = 0; i < 3000; ++i) {
    labelled.push_back({"k" + std::to_string(i), "Net.a"});
    other.push_back({"j" + std::to_string(i), ""});
  }
  const BuiltGraph built = Build({labelled, other, other, other});
  EXPECT_EQ(built.report.matched_calls, 0u);
}

TEST(LendLayers, LayersOfARecordingAreThoseOfTheirPath) {
  const BuiltGraph built = Build({kStep, kStep});
  const auto layers = built.graph.layers();
  ASSERT_GE(layers.size(), 2u);
  EXPECT_EQ(built.graph.Name(layers[0].name), "Net");
  for (size_t i = 1; i < layers.size(); ++i) EXPECT_EQ(layers[i].parent, LayerId(0));
}

}  // namespace
}  // namespace daydream
