// What all copies of a graph share of their tables is what each of them would find alone.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "graph/text.h"
#include "transforms/analysis/kernel_table.h"
#include "transforms/analysis/op_shapes.h"
#include "transforms/analysis/op_work.h"
#include "transforms/analysis/precision.h"

namespace daydream {
namespace {

constexpr std::string_view kProduct = R"(lane cpu0 thread
lane gpu0.7 stream
scope s0 op cpu0 "aten::mm" shapes="[[4, 8], [8, 16]]" types="[\"float\", \"float\"]"
k0 gpu0.7 kernel 10us "sgemm" phase forward scope s0
k1 gpu0.7 kernel 10us "no_op" phase forward
)";
const TaskId kKernel(0), kOutside(1);
const ScopeId kOp(0);

Graph Product() {
  auto graph = ParseGraph(kProduct);
  EXPECT_TRUE(graph.ok()) << Message(graph.status());
  return graph.ok() ? *std::move(graph) : Graph();
}

TEST(TableFacts, AreFoundOnceForAllCopies) {
  const Graph graph = Product();
  Graph edited = graph;
  edited.mutable_task(kKernel).duration = Duration::Us(1);
  edited.AddEdge({.from = kKernel, .to = kOutside});
  OpShapes of_graph(graph), of_edited(edited);
  EXPECT_EQ(&of_graph.Of(kKernel).inputs.front(), &of_edited.Of(kKernel).inputs.front());
  EXPECT_EQ(of_graph.Of(kKernel).largest, 128);
  EXPECT_FALSE(of_graph.Of(kOutside).known());
  OpWorkTable work_of_graph(graph), work_of_edited(edited);
  ASSERT_NE(work_of_graph.Of(kKernel).work, nullptr);
  EXPECT_EQ(work_of_graph.Of(kKernel).work, work_of_edited.Of(kKernel).work);
  EXPECT_EQ(work_of_graph.Of(kOutside).work, nullptr);
}

TEST(TableFacts, OfACopyWithOtherShapesAreItsOwn) {
  const Graph graph = Product();
  Graph wide = graph;
  OpShapes before(wide);
  EXPECT_EQ(before.Of(kKernel).largest, 128);
  SetInputs(wide, kOp, {{4, 80}, {80, 16}});
  EXPECT_EQ(before.Of(kKernel).largest, 1280);
  EXPECT_EQ(OpShapes(wide).Of(kKernel).largest, 1280);
  EXPECT_EQ(OpShapes(graph).Of(kKernel).largest, 128);
  OpWorkTable of_wide(wide), of_graph(graph);
  ASSERT_NE(of_wide.Of(kKernel).work, nullptr);
  EXPECT_EQ(of_wide.Of(kKernel).work->products[0].k, 80);
  EXPECT_EQ(of_graph.Of(kKernel).work->products[0].k, 8);
}

// Names that copies add have numbers of their own graph only.
TEST(TableFacts, AnAddedNameIsReadInTheGraphThatAddedIt) {
  const Graph graph = Product();
  Graph a = graph, b = graph;
  const NameId softmax = a.AddName("softmax_warp_forward"), gemm = b.AddName("ampere_hgemm_nn");
  ASSERT_EQ(softmax, gemm);
  KernelTable of_a(a), of_b(b);
  EXPECT_EQ(of_a.Of(softmax).kind, KernelClass::kSoftmax);
  EXPECT_EQ(of_b.Of(gemm).kind, KernelClass::kGemm);
  const NameId recorded = graph.task(kKernel).name;
  EXPECT_EQ(&of_a.Of(recorded), &of_b.Of(recorded));
}

// Three ops: two that are equal, and one whose types differ.
TEST(TableFacts, OpsThatAreEqualHaveTheirShapesAndWorkInCommon) {
  const auto graph = ParseGraph(R"(lane cpu0 thread
lane gpu0.7 stream
scope s0 op cpu0 "aten::mm" shapes="[[4, 8], [8, 16]]" types="[\"float\", \"float\"]"
scope s1 op cpu0 "aten::mm" shapes="[[4, 8], [8, 16]]" types="[\"float\", \"float\"]"
scope s2 op cpu0 "aten::mm" shapes="[[4, 8], [8, 16]]" types="[\"c10::Half\", \"c10::Half\"]"
k0 gpu0.7 kernel 10us "sgemm" phase forward scope s0
k1 gpu0.7 kernel 10us "product" phase forward scope s1
k2 gpu0.7 kernel 10us "product" phase forward scope s2
)");
  ASSERT_TRUE(graph.ok()) << Message(graph.status());
  OpShapes shapes(*graph);
  const OpShape one = shapes.Of(TaskId(0)), equal = shapes.Of(TaskId(1)),
                other = shapes.Of(TaskId(2));
  EXPECT_EQ(&one.inputs.front(), &equal.inputs.front());
  EXPECT_EQ(one.scope, ScopeId(0));
  EXPECT_EQ(equal.scope, ScopeId(1));
  EXPECT_NE(&one.inputs.front(), &other.inputs.front());
  EXPECT_EQ(one.dtype, DType::kFp32);
  EXPECT_EQ(other.dtype, DType::kFp16);
  OpWorkTable works(*graph);
  EXPECT_EQ(works.Of(TaskId(0)).work, works.Of(TaskId(1)).work);
  EXPECT_EQ(works.Of(TaskId(1)).scope, ScopeId(1));
  EXPECT_NE(works.Of(TaskId(0)).work, works.Of(TaskId(2)).work);
  PrecisionRules rules(*graph);
  EXPECT_FALSE(rules.Of(TaskId(1)).half_already);
  EXPECT_TRUE(rules.Of(TaskId(2)).half_already);
}

TEST(TableFacts, SeveralThreadsGetTheSame) {
  const Graph graph = Product();
  std::vector<const Dims*> shapes(8);
  std::vector<const OpWork*> works(8);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < shapes.size(); ++i) {
      threads.emplace_back([&, i] {
        shapes[i] = &OpShapes(graph).Of(kKernel).inputs.front();
        works[i] = OpWorkTable(graph).Of(kKernel).work;
      });
    }
  }
  for (size_t i = 1; i < shapes.size(); ++i) {
    EXPECT_EQ(shapes[i], shapes[0]);
    EXPECT_EQ(works[i], works[0]);
  }
}

}  // namespace
}  // namespace daydream
