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
