// XPlane of JAX.
#include <filesystem>

#include "graph/build.h"
#include "graph/repeat.h"
#include "simulator/simulate.h"
#include "tests/trace/recorded_files.h"
#include "trace/steps.h"

namespace daydream {
namespace {

BuildReport Built(const std::shared_ptr<const Trace>& trace) {
  const auto built = BuildGraph(trace);
  EXPECT_TRUE(built.ok()) << built.status();
  return built.ok() ? built->report : BuildReport();
}

TEST(ImportExamples, XPlane) {
  auto t = Load(ExampleFile("jax-small.xplane.pb"));
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->provenance.importer, "xplane");
  EXPECT_TRUE(t->provenance.no_waits);
  EXPECT_EQ(Joined(*t), std::pair(size_t{12}, size_t{0}));
  EXPECT_EQ(FindSteps(*t).steps.size(), 4u);
  EXPECT_EQ(t->dependencies.size(), 4u) << "Enqueue hands over to Execute";
  EXPECT_EQ(Built(t).handoffs, 4u);
  size_t backward = 0;
  for (size_t row = 0; row < t->rows(); ++row) {
    if (t->kind[row] != EventKind::kKernel) continue;
    const KernelDetail& kernel = t->kernels[t->detail[row]];
    EXPECT_EQ(t->Name(kernel.layer), "encoder.attention");
    EXPECT_EQ(kernel.grid[0], 64u);
    backward += kernel.backward;
  }
  EXPECT_EQ(backward, 4u);
}

// The job of a step follows from the step's own call, also where the step is played by itself.
TEST(ImportExamples, EachStepOfXPlaneExplainsTheNext) {
  const auto built = BuildGraph(Load(ExampleFile("jax-small.xplane.pb")));
  ASSERT_TRUE(built.ok()) << built.status();
  const auto length = [&](int times) {
    const auto repeated = RepeatStep(built->graph, 1, times);
    EXPECT_TRUE(repeated.ok()) << repeated.status();
    const auto timeline = Simulate(*repeated);
    EXPECT_TRUE(timeline.ok()) << timeline.status();
    return timeline->makespan;
  };
  EXPECT_EQ(length(4) - length(3), Duration::Us(300));
}

TEST(ImportSamples, XPlane) {
  if (!std::filesystem::exists(Sample("xplane"))) GTEST_SKIP() << "no samples beside";
  auto conv = Load(Sample("xplane/jax-conv-8xmi300x.xplane.pb"));
  auto attention = Load(Sample("xplane/jax-attention-mi350x.xplane.pb"));
  ASSERT_TRUE(conv && attention);
  EXPECT_EQ(Joined(*conv), std::pair(size_t{235}, size_t{0}));
  EXPECT_EQ(Joined(*attention), std::pair(size_t{150}, size_t{0}));
  EXPECT_TRUE(conv->provenance.no_waits);
  EXPECT_EQ(Built(conv).handoffs, 122u) << "pairs of _p and _c on two threads";
}

}  // namespace
}  // namespace daydream
