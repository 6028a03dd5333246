// What recorded data dependencies say of tensors, against what shapes alone would have it.
#include "transforms/analysis/data_flow.h"

#include <gtest/gtest.h>

#include "tests/graph/built_sketch.h"
#include "transforms/analysis/op_access.h"
#include "transforms/analysis/saved_tensors.h"

namespace daydream {
namespace {

// Ops of one thread, each with a kernel, but for views.
struct Program {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  double us = 0;

  // The number of the op among the events.
  uint32_t Op(std::string_view name, std::string_view shapes) {
    s.Op(cpu, name, us, 8, -1, shapes);
    const uint32_t event = s.Last();
    if (name != "aten::view") {
      s.Launch(cpu, gpu, "vectorized_elementwise_kernel", us + 2, 3, us + 20, 5);
    }
    us += 10;
    return event;
  }
};

std::vector<TaskId> KernelsOf(const Graph& graph) {
  std::vector<TaskId> kernels;
  for (uint32_t t = 0; t < graph.size(); ++t) {
    if (graph.task(TaskId(t)).kind == TaskKind::kKernel) kernels.push_back(TaskId(t));
  }
  return kernels;
}

// gelu reads a view of what add made; the latest tensor of that size is the result of relu.
double KeptForBackward(bool said) {
  Program p;
  const uint32_t add = p.Op("aten::add", "[[4, 8], [4, 8]]");
  const uint32_t relu = p.Op("aten::relu", "[[4, 8]]");
  const uint32_t view = p.Op("aten::view", "[[4, 8]]");
  const uint32_t gelu = p.Op("aten::gelu", "[[4, 8]]");
  p.Op("autograd::engine::evaluate_function: GeluBackward0", "");
  if (said) {
    p.s.Depend(add, relu);
    p.s.Depend(add, view);
    p.s.Depend(view, gelu);
  }
  const BuiltGraph built = Build(p.s);
  double kept = 0;
  for (const ForwardOp& op : ForwardOps(built.graph)) kept += op.kept;
  return kept;
}

TEST(DataFlow, WhatIsKeptForBackwardIsWhatWasRead) {
  constexpr double kTensor = 4 * 8 * 4;
  EXPECT_EQ(KeptForBackward(false),
            kTensor);  // the result of relu, and gelu's input is taken for it
  EXPECT_EQ(KeptForBackward(true), 2 * kTensor);  // gelu keeps what add made
}

TEST(DataFlow, OpsWithoutWorkHandOnWhatTheyRead) {
  Program p;
  const uint32_t add = p.Op("aten::add", "[[4, 8], [4, 8]]");
  const uint32_t view = p.Op("aten::view", "[[4, 8]]");
  const uint32_t relu = p.Op("aten::relu", "[[32]]");
  p.s.Depend(add, view);
  p.s.Depend(view, relu);
  const BuiltGraph built = Build(p.s);
  const std::vector<TaskId> kernels = KernelsOf(built.graph);
  ASSERT_EQ(kernels.size(), 2u);
  DataFlow flow(built.graph);
  const ScopeId first = built.graph.task(kernels[0]).scope,
                second = built.graph.task(kernels[1]).scope;
  EXPECT_EQ(flow.Sources(second), std::vector<ScopeId>{first});
  EXPECT_TRUE(flow.Reads(second, first));
  EXPECT_FALSE(flow.Reads(first, second));
}

// Sizes say that the second op reads nothing of the first; a link says that it does.
TEST(DataFlow, WorkStaysBehindWhatItReadsWhateverItsSize) {
  for (const bool said : {false, true}) {
    Program p;
    const uint32_t add = p.Op("aten::add", "[[4, 8], [4, 8]]");
    const uint32_t relu = p.Op("aten::relu", "[[2, 2]]");
    if (said) p.s.Depend(add, relu);
    const BuiltGraph built = Build(p.s);
    const std::vector<TaskId> kernels = KernelsOf(built.graph);
    ASSERT_EQ(kernels.size(), 2u);
    OpAccesses accesses(built.graph);
    const auto earlier = accesses.Of(kernels[0]), later = accesses.Of(kernels[1]);
    ASSERT_TRUE(earlier && later);
    EXPECT_EQ(accesses.Needs(*later, *earlier), said);
    EXPECT_FALSE(accesses.Needs(*earlier, *later));
  }
}

TEST(DataFlow, WithoutLinksNothingIsKnown) {
  Program p;
  p.Op("aten::add", "[[4, 8], [4, 8]]");
  const BuiltGraph built = Build(p.s);
  DataFlow flow(built.graph);
  EXPECT_TRUE(flow.empty());
  EXPECT_TRUE(flow.Sources(ScopeId(0)).empty());
}

}  // namespace
}  // namespace daydream
