#include "transforms/scenario/effort.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

TEST(Effort, IsOncePerPlace) {
  const Advice line{.effort = "1 line"}, lines{.effort = "~20 lines"};
  EXPECT_EQ(EffortOf(line, {}), "1 line");
  EXPECT_EQ(EffortOf(line, {.places = 7}), "~7 lines");
  EXPECT_EQ(EffortOf(lines, {.places = 1}), "~20 lines");
  EXPECT_EQ(EffortOf(lines, {.places = 7}), "~20 lines x 7");
}

TEST(Effort, IsCountedInLines) {
  EXPECT_EQ(LinesOf("~20 lines"), 20);
  EXPECT_EQ(LinesOf("~20 lines x 7"), 140);
  EXPECT_EQ(LinesOf("1 word"), 1);
  for (const char* text :
       {"new kernels", "", "20 lines x", "20 lines x many", "20 lines x 7 x 7"}) {
    EXPECT_GT(LinesOf(text), 1e300) << text;
  }
}

TEST(Ease, FallsWithTheLinesAndTheRisks) {
  const auto ease = [](std::string_view effort, std::string_view risk = "none") {
    return EaseOf({.effort = effort, .risk = risk});
  };
  EXPECT_DOUBLE_EQ(ease("1 word"), 1);
  EXPECT_DOUBLE_EQ(ease("~100 lines"), 0.1);
  // Ten times the lines for less than three times the gain can wait.
  EXPECT_GT(ease("~10 lines"), 3 * ease("~100 lines"));
  // Nobody can count it: as a thousand lines, and never easier than what is counted.
  EXPECT_DOUBLE_EQ(ease("new kernels"), ease("~1000 lines"));
  EXPECT_LE(ease("~50 lines x 140"), ease("~50 lines x 10"));
  EXPECT_LT(ease("2 lines", "numerics"), ease("2 lines", "host memory"));
  EXPECT_LT(ease("2 lines", "host memory"), ease("2 lines"));
}

// What fuse() changes where the optimizer has this name.
Changes FusedOptimizer(const std::string& name, const char* what = "fuse(optimizer)") {
  auto graph = ParseGraph(fmt::format(R"(lane cpu0   thread
lane gpu0.7 stream
scope step annotation cpu0 "Optimizer.step#{}.step"
c0 cpu0   call   5us "cudaLaunchKernel" scope step
k0 gpu0.7 kernel 100us "elementwise_kernel<mul>" phase optimizer scope step after c0 launch
c1 cpu0   call   5us "cudaLaunchKernel" scope step
k1 gpu0.7 kernel 100us "elementwise_kernel<mul>" phase optimizer scope step after c1 launch
)",
                                      name));
  EXPECT_TRUE(graph.ok()) << Message(graph.status());
  const auto scenario = ParseScenario(what);
  EXPECT_TRUE(scenario.ok());
  const auto applied = Apply((*scenario)[0], *graph);
  EXPECT_TRUE(applied.ok()) << Message(applied.status());
  return applied.ok() ? applied->changes : Changes();
}

TEST(Advice, IsOfTheOptimizerOfThisProgram) {
  const Advice fuse = ParseScenario("fuse")->front().transform->advice;
  const auto how = [&](const Changes& c) { return std::string(AdviceFor(fuse, c).how); };
  const Changes adam = FusedOptimizer("AdamW"), prop = FusedOptimizer("RMSprop");
  EXPECT_EQ(how(adam), "torch.optim.AdamW(..., fused=True)");
  EXPECT_EQ(EffortOf(fuse, adam), "1 word");
  EXPECT_EQ(how(FusedOptimizer("AdamW", "fuse")), fuse.how) << "that merges more";
  EXPECT_EQ(how(prop), "torch.optim.RMSprop(..., foreach=True)");
  EXPECT_EQ(EffortOf(fuse, prop), "1 word");
  for (const char* name : {"Shampoo", "Lion", "Muon"}) {
    const Changes own = FusedOptimizer(name);
    EXPECT_GT(LinesOf(EffortOf(fuse, own)), 1e300) << name;
    EXPECT_EQ(how(own), fmt::format("a kernel for {}, which PyTorch has no fused form of", name));
    EXPECT_EQ(AdviceFor(fuse, own).risk, "numerics");
  }
}

}  // namespace
}  // namespace daydream
