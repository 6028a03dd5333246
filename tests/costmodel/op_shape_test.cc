#include "costmodel/op_shape.h"

#include <gtest/gtest.h>

namespace daydream {
namespace {

TEST(ParseShapes, ReadsTensorsScalarsAndLists) {
  const auto shapes = ParseShapes("[[32, 3, 224, 224], [], [[5], [6, 7]], [64]]");
  ASSERT_TRUE(shapes.has_value());
  const std::vector<Dims> expected = {{32, 3, 224, 224}, {}, {5}, {6, 7}, {64}};
  EXPECT_EQ(*shapes, expected);
  EXPECT_EQ(ParseShapes("[]")->size(), 0u);
  for (std::string_view bad :
       {"[[1]", "]", "[[-1]]", "[[1.5]]", "[[x]]", "3", "[[99999999999999999999]]"}) {
    EXPECT_FALSE(ParseShapes(bad).has_value()) << bad;
  }
}

TEST(ParseDType, TakesTheFirstFloatingPointTensor) {
  EXPECT_EQ(ParseDType(R"(["long int", "c10::Half", "float"])"), DType::kFp16);
  EXPECT_EQ(ParseDType(R"(["float", "Scalar"])"), DType::kFp32);
  EXPECT_EQ(ParseDType(R"(["", "Scalar"])"), DType::kUnknown);
  EXPECT_EQ(ParseDType(""), DType::kUnknown);
}

GemmShape ProductOf(std::string_view op, std::string_view shapes, size_t i = 0) {
  const auto work = WorkOf(op, shapes, R"(["float"])");
  if (!work || work->products.size() <= i) return {};
  return work->products[i];
}

TEST(WorkOf, MatrixProducts) {
  EXPECT_EQ(ProductOf("aten::mm", "[[8, 16], [16, 32]]"), (GemmShape{1, 8, 32, 16}));
  EXPECT_EQ(ProductOf("aten::addmm", "[[32], [8, 16], [16, 32], [], []]"),
            (GemmShape{1, 8, 32, 16}));
  EXPECT_EQ(ProductOf("aten::bmm", "[[4, 8, 16], [4, 16, 32]]"), (GemmShape{4, 8, 32, 16}));
  EXPECT_EQ(ProductOf("aten::linear", "[[2, 10, 16], [32, 16], [32]]"), (GemmShape{1, 20, 32, 16}));
  EXPECT_EQ(ProductOf("aten::matmul", "[[2, 3, 8, 16], [2, 3, 16, 32]]"),
            (GemmShape{6, 8, 32, 16}));
  EXPECT_EQ(ProductOf("aten::matmul", "[[2, 3, 16], [16, 32]]"), (GemmShape{1, 6, 32, 16}));
  EXPECT_FALSE(WorkOf("aten::mm", "[[8, 16], [15, 32]]", "").has_value());
  EXPECT_FALSE(WorkOf("aten::mm", "[[8, 16]]", "").has_value());
  EXPECT_FALSE(WorkOf("aten::mm", "", "").has_value());
  const auto work = WorkOf("mm", "[[8, 16], [16, 32]]", R"(["c10::Half", "c10::Half"])");
  EXPECT_EQ(work->flops, 2.0 * 8 * 16 * 32);
  EXPECT_EQ(work->Bytes(), 2.0 * (8 * 16 + 16 * 32 + 8 * 32));
  EXPECT_TRUE(work->AlignedForTensorCores());
  EXPECT_FALSE(WorkOf("mm", "[[8, 15], [15, 32]]", "")->AlignedForTensorCores());
}

// A row is read and written, and its index of 8 bytes read; a bag writes one row for each offset.
TEST(WorkOf, LookupsMoveTheirRows) {
  const std::string_view types = R"(["float", "long int"])";
  const double each = 4096 * (2 * 768 * 4 + 8);
  EXPECT_EQ(WorkOf("aten::embedding", "[[30522, 768], [32, 128], [], [], []]", types)->Bytes(),
            each);
  EXPECT_EQ(WorkOf("aten::index_select", "[[30522, 768], [], [4096]]", types)->Bytes(), each);
  EXPECT_EQ(WorkOf("aten::_embedding_bag", "[[1000, 64], [4096], [512], [], []]", types)->Bytes(),
            4096 * (64 * 4 + 8) + 512 * 64 * 4);
  EXPECT_FALSE(WorkOf("aten::index_select", "[[30522, 768], []]", types).has_value());
  EXPECT_FALSE(WorkOf("aten::index_select", "[[755000], [], [1024]]", types).has_value());
  EXPECT_FALSE(WorkOf("aten::embedding", "[[30522, 768]]", types).has_value());
}

// 28 bytes for each parameter in fp32: four tensors read, three of them written.
TEST(WorkOf, FusedAdamMovesSevenTensors) {
  const auto work = WorkOf(
      "aten::_fused_adamw_",
      "[[[8, 16], [16]], [[8, 16], [16]], [[8, 16], [16]], [[8, 16], [16]], [], [[], []], []]",
      R"(["float"])");
  EXPECT_EQ(work->Bytes(), 28.0 * (8 * 16 + 16));
  EXPECT_FALSE(WorkOf("aten::_fused_adam_", "[[], [], [], []]", "").has_value());
}

TEST(WorkOf, ConvolutionsAreProductsOfPatches) {
  // 1x1: the output is as large as the input, unless there is a stride.
  const auto work = WorkOf("aten::conv2d", "[[32, 64, 56, 56], [256, 64, 1, 1], []]", "");
  EXPECT_EQ(work->products[0], (GemmShape{1, 32 * 56 * 56, 256, 64}));
  EXPECT_FALSE(WorkOf("aten::cudnn_convolution", "[[32, 3, 224, 224], [64, 3, 7, 7]]", "")->exact);
  // The first layer of ResNet-50, backward: 118 GFLOP for each of the two gradients at batch 512.
  const std::string_view backward =
      "[[32, 64, 112, 112], [32, 3, 224, 224], [64, 3, 7, 7], [0], [], [], []]";
  const auto both = WorkOf("aten::convolution_backward", backward, R"(["float"])");
  ASSERT_TRUE(both.has_value());
  ASSERT_EQ(both->products.size(), 2u);
  EXPECT_TRUE(both->exact);
  const double one_way = 2.0 * 32 * 112 * 112 * 64 * 3 * 49;
  EXPECT_NEAR(both->flops / (2 * one_way), 1, 1e-3);
  EXPECT_EQ(both->products[1], (GemmShape{1, 64, 3 * 49, 32 * 112 * 112}));
  // Groups.
  const auto depthwise = WorkOf("aten::conv2d", "[[8, 96, 14, 14], [96, 1, 3, 3], [96]]", "");
  EXPECT_EQ(depthwise->products[0], (GemmShape{96, 8 * 14 * 14, 1, 9}));
}

// Two layers of width 64 on 10 steps of 4 sequences of 32 numbers: four gates each.
TEST(WorkOf, RecurrentLayersAreProductsOfTheirWeightsWithAllSteps) {
  const std::string_view shapes =
      "[[10, 4, 32], [[256, 32], [256, 64], [256], [256], [256, 64], [256, 64], [256], [256]], [], "
      "[33792], [2, 4, 64], [2, 4, 64]]";
  const auto work = WorkOf("aten::_cudnn_rnn", shapes, R"(["float"])");
  ASSERT_TRUE(work.has_value());
  ASSERT_EQ(work->products.size(), 4u);
  EXPECT_EQ(work->kind, OpWork::Kind::kRecurrent);
  EXPECT_EQ(work->products[0], (GemmShape{1, 40, 256, 32}));
  EXPECT_EQ(work->products[3], (GemmShape{1, 40, 256, 64}));
  const auto backward = WorkOf("aten::_cudnn_rnn_backward", shapes, R"(["float"])");
  EXPECT_EQ(backward->flops, 2 * work->flops);
  EXPECT_FALSE(WorkOf("aten::_cudnn_rnn", "[[10, 4, 32], [256]]", "").has_value());
  EXPECT_FALSE(WorkOf("aten::_cudnn_rnn", "[[10, 4]]", "").has_value());
}

TEST(WorkOf, MemoryBoundOperatorsMoveTheirTensors) {
  const auto add = WorkOf("aten::add_", "[[10, 10], [10, 10], []]", R"(["float", "float"])");
  EXPECT_EQ(add->Bytes(), 4.0 * 300);
  EXPECT_EQ(WorkOf("aten::cudnn_batch_norm", "[[2, 50], [50], [50]]", "")->elements, 300);
  EXPECT_FALSE(WorkOf("aten::view", "[[10, 10], []]", "").has_value());
  EXPECT_FALSE(WorkOf("aten::add", "[[], []]", "").has_value());
}

TEST(WorkOf, SurvivesAnySizes) {
  const std::string_view big = "[[1099511627776, 1099511627776], [1099511627776, 1099511627776]]";
  EXPECT_TRUE(WorkOf("aten::mm", big, "").has_value());
  EXPECT_FALSE(WorkOf("aten::mm", "[[0, 0], [0, 0]]", "").has_value());
  EXPECT_FALSE(WorkOf("aten::conv2d", "[[1, 1, 0], [0, 0, 0]]", "").has_value());
}

}  // namespace
}  // namespace daydream
