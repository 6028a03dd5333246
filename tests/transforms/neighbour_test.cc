#include "transforms/edits/neighbour.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

// A stream of kernels that fill the GPU, launched without delay; two steps, so that the guest's
// tasks have a step to belong to.
Graph Program(int kernels, const std::string& time, const std::string& shape) {
  std::string text =
      "device 0 \"Tesla V100-SXM2-32GB\" memory=34089730048 capability=7.0 multiprocessors=80\n"
      "lane cpu0   thread\nlane gpu0.7 stream\n";
  for (int i = 0; i < kernels; ++i) {
    text += fmt::format("c{0} cpu0 call 1us \"cudaLaunchKernel\"\n", i);
    text += fmt::format("k{0} gpu0.7 kernel {1} \"volta_sgemm\" {2} after c{0} launch\n", i, time,
                        shape);
  }
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

Duration Together(const Graph& a, const Graph& b, GpuPolicy policy) {
  Graph both = a;
  Editor edit(both);
  AddProgram(edit, b);
  TakeTurns(edit, policy, {});
  edit.Finish();
  auto timeline = Simulate(both);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline->makespan;
}

constexpr const char* kFull = "grid=80000,1,1 block=512,1,1";
constexpr const char* kQuarter = "grid=20,1,1 block=512,1,1";

TEST(Neighbour, KernelsThatFillTheGpuTakeTurns) {
  const Graph a = Program(4, "100us", kFull);
  // 1 us to the first launch, then 8 kernels.
  EXPECT_EQ(Together(a, a, GpuPolicy::kTime), Duration::Ns(801'000));
  EXPECT_NEAR(Together(a, a, GpuPolicy::kSpace).seconds(), 801e-6, 8e-6);
}

TEST(Neighbour, SmallKernelsRunSideBySideInSpaceOnly) {
  const Graph a = Program(4, "100us", kQuarter);
  EXPECT_EQ(Together(a, a, GpuPolicy::kTime), Duration::Ns(801'000));
  // A turn is a quarter of a kernel: the other program's begin 25 us later.
  EXPECT_EQ(Together(a, a, GpuPolicy::kSpace), Duration::Ns(426'000));
}

TEST(Neighbour, AProgramAloneRunsAsRecorded) {
  for (const char* shape : {kFull, kQuarter}) {
    Graph alone = Program(5, "70us", shape);
    auto before = Simulate(alone);
    Editor edit(alone);
    TakeTurns(edit, GpuPolicy::kTime, {});
    edit.Finish();
    auto after = Simulate(alone);
    ASSERT_TRUE(before.ok() && after.ok());
    EXPECT_EQ(before->makespan, after->makespan);
    for (size_t i = 0; i < before->start.size(); ++i) EXPECT_EQ(before->start[i], after->start[i]);
  }
}

}  // namespace
}  // namespace daydream
