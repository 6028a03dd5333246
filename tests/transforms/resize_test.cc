// What sizes of models say about their own limits.
#include "transforms/edits/resize.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "graph/text.h"
#include "transforms/core/transform.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

Applied ApplyTo(std::string_view text, std::string_view spec) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << Message(graph.status());
  auto applied = Apply(ParseScenario(spec).value()[0], *graph);
  EXPECT_TRUE(applied.ok()) << Message(applied.status());
  return *std::move(applied);
}

std::string TwoLayers(int us_of_second) {
  return fmt::format(
      "lane cpu0 thread\nlane gpu0.7 stream\nlayer l0 \"Block_0\"\nlayer l1 \"Block_1\"\n"
      "c0 cpu0 call 2us \"cudaLaunchKernel\" layer l0 phase forward\n"
      "c1 cpu0 call 2us \"cudaLaunchKernel\" layer l1 phase forward\n"
      "k0 gpu0.7 kernel 10us \"sgemm\" layer l0 phase forward after c0 launch\n"
      "k1 gpu0.7 kernel {}us \"sgemm\" layer l1 phase forward after c1 launch\n",
      us_of_second);
}

TEST(Layers, MembersThatAreNotAlikeAreWarnedOf) {
  EXPECT_TRUE(ApplyTo(TwoLayers(20), "layers(x2)").changes.warnings.empty());
  const auto warnings = ApplyTo(TwoLayers(21), "layers(x2)").changes.warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("are not alike"), std::string::npos) << warnings[0];
}

// Which of the repeated ones would go is not known: there and back would not be where it began.
TEST(Layers, AreCountedOnceInAScenario) {
  const std::string text = TwoLayers(20) + "h0 cpu0 host 1us \"loss\"\n";
  auto graph = ParseGraph(text);
  ASSERT_TRUE(graph.ok()) << Message(graph.status());
  const std::vector<Application> scenario = *ParseScenario("layers(x2),layers(x0.5)");
  ASSERT_TRUE(Apply(scenario[0], *graph).ok());
  const absl::Status again = Apply(scenario[1], *graph).status();
  EXPECT_EQ(DiagnosticOf(again).code, "E0616") << Message(again);
}

// A product that says that 512 is a width, and a kernel of `us` whose op shows no width.
std::string WithoutWidth(int us) {
  return fmt::format(
      "lane cpu0 thread\nlane gpu0.7 stream\n"
      "scope mm op cpu0 \"aten::mm\" shapes=\"[[64, 512], [512, 512]]\" "
      "types=\"[\\\"float\\\", \\\"float\\\"]\"\n"
      "scope mask op cpu0 \"aten::mul\" shapes=\"[[512, 7], [512, 7]]\" "
      "types=\"[\\\"float\\\", \\\"float\\\"]\"\n"
      "c0 cpu0 call 5us \"cudaLaunchKernel\" scope mm\n"
      "c1 cpu0 call 5us \"cudaLaunchKernel\" scope mask\n"
      "k0 gpu0.7 kernel 900us \"sgemm\" phase forward scope mm after c0 launch\n"
      "k1 gpu0.7 kernel {}us \"vectorized_elementwise_kernel\" phase forward scope mask "
      "after c1 launch\n",
      us);
}

TEST(Hidden, IsALimitWhereMuchHasNoWidth) {
  const Applied little = ApplyTo(WithoutWidth(50), "hidden(2)");
  EXPECT_FALSE(little.bound);
  EXPECT_TRUE(little.changes.warnings.empty());
  const Applied much = ApplyTo(WithoutWidth(500), "hidden(2)");
  EXPECT_TRUE(much.bound);
  ASSERT_EQ(much.changes.warnings.size(), 1u);
  EXPECT_NE(much.changes.warnings[0].find("36 % of the kernel time"), std::string::npos)
      << much.changes.warnings[0];
  EXPECT_FALSE(ApplyTo(WithoutWidth(500), "hidden(0.5)").bound) << "what stays may shrink, too";
}

}  // namespace
}  // namespace daydream
