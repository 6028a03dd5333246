// The sentence that says what became of the work that a cause took away.
#include "report/predict/why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/text.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Explanation Explain(const Graph& before, const std::function<void(Editor&)>& change) {
  Graph after = before;
  Editor edit(after);
  change(edit);
  edit.Finish();
  const std::vector<CauseJournal> journals = {
      {"x",
       {edit.causes().begin(), edit.causes().end()},
       {edit.edits().begin(), edit.edits().end()},
       {edit.edge_edits().begin(), edit.edge_edits().end()}}};
  const Timeline a = Simulate(before, {.blockers = true}).value();
  const Timeline b = Simulate(after, {.blockers = true}).value();
  const Duration step = StepTime(after, b);
  const auto causes = ShareByCause({&before, &after, StepTime(before, a), step, journals});
  const auto path_before = PathByLimiter(before, a), path_after = PathByLimiter(after, b);
  Replays replays(after);
  auto why = ExplainPrediction({.before = &before,
                                .after = &after,
                                .step_after = step,
                                .path_before = &path_before,
                                .path_after = &path_after,
                                .causes = &causes,
                                .journals = journals,
                                .replays = &replays});
  EXPECT_TRUE(why.has_value());
  return why.value_or(Explanation());
}

// Four launches of 10 us, kernels of 20 us: bound by the GPU until kernels take half.
Graph FourKernels() {
  return ParseGraph(R"(
lane main thread
lane gpu0.7 stream
c1 main call 10us "cudaLaunchKernel"
c2 main call 10us "cudaLaunchKernel"
c3 main call 10us "cudaLaunchKernel"
c4 main call 10us "cudaLaunchKernel"
k1 gpu0.7 kernel 20us "sgemm" after c1 launch
k2 gpu0.7 kernel 20us "sgemm" after c2 launch
k3 gpu0.7 kernel 20us "sgemm" after c3 launch
k4 gpu0.7 kernel 20us "sgemm" after c4 launch
)")
      .value();
}

void Faster(Editor& edit, double factor) {
  edit.BeginCause("GEMMs run on tensor cores");
  for (int t = 4; t < 8; ++t) edit.Scale(std::vector<TaskId>{TaskId(t)}, 1 / factor);
}

TEST(Why, WhatIsLostIsBlamedOnWhatBecameExposed) {
  // From 10 + 4 * 20 = 90 us to 40 + 4 = 44: of 64 us of GPU work 46 show.
  Explanation e = Explain(FourKernels(), [](Editor& edit) { Faster(edit, 5); });
  EXPECT_EQ(e.work, Duration::Us(64));
  EXPECT_EQ(e.gained, Duration::Us(46));
  ASSERT_FALSE(e.exposed.empty());
  EXPECT_EQ(e.exposed[0].limiter.what, "cudaLaunchKernel");
  EXPECT_EQ(e.exposed[0].growth(), Duration::Us(30));
  ASSERT_TRUE(e.next.has_value());
  EXPECT_EQ(e.next->what, "cudaLaunchKernel");
  EXPECT_THAT(e.text, HasSubstr("GPU work shrinks by 64"));
  EXPECT_THAT(e.text,
              HasSubstr("the GPU no longer hides 3 more calls of cudaLaunchKernel on thread"));
  EXPECT_THAT(e.text, HasSubstr("then bound by cudaLaunchKernel"));
}

TEST(Why, WhatLiesOnAChannelIsCalledByTheChannelOnce) {
  const Graph graph = ParseGraph(R"(
lane cpu0 thread
lane held channel name="waits of a host that was held up"
h1 cpu0 host 10us "aten::mm"
w1 held host 90us "waits" after h1 handoff
)")
                          .value();
  const std::vector<Limiter> path =
      PathByLimiter(graph, Simulate(graph, {.blockers = true}).value());
  ASSERT_EQ(path.size(), 2);
  EXPECT_EQ(path[0].what, "waits of a host that was held up");
  EXPECT_EQ(path[0].lane, "");
  EXPECT_EQ(path[1].what, "host work");
}

// A recording of kernels alone has no host that could hide anything.
TEST(Why, WithoutAHostOtherGpuWorkHidWhatIsExposed) {
  Graph graph = ParseGraph(R"(
lane gpu0.7 stream
lane gpu0.8 stream
k1 gpu0.7 kernel 100us "sgemm"
k2 gpu0.8 kernel 80us "copy_kernel"
)")
                    .value();
  const Explanation e = Explain(graph, [](Editor& edit) {
    edit.BeginCause("GEMMs run on tensor cores");
    edit.SetDuration(TaskId(0), Duration::Us(10));
  });
  EXPECT_THAT(e.text, HasSubstr("other GPU work no longer hides copy kernels"));
}

TEST(Why, WhatIsExposedByMoreThanWasLostIsNamedWithoutItsTime) {
  // From 10 + 4 * 20 = 90 us to 40 + 10: of 50 us of GPU work 40 show, 10 are lost; 30 us of
  // launches lie open.
  Explanation e = Explain(FourKernels(), [](Editor& edit) {
    edit.BeginCause("GEMMs run on tensor cores");
    for (int t = 4; t < 7; ++t) edit.SetDuration(TaskId(t), Duration::Us(20) / 6);
    edit.SetDuration(TaskId(7), Duration::Us(10));
  });
  const Duration lost = e.work - e.gained;
  ASSERT_FALSE(e.exposed.empty());
  ASSERT_GT(e.exposed[0].growth(), lost);
  EXPECT_THAT(e.text, HasSubstr("no longer hides"));
  EXPECT_THAT(e.text, Not(HasSubstr("there the step takes")));
}

TEST(Why, FewerWaitsForALoaderAreAReason) {
  // A batch of 100 us, for which the host waits, takes half: no work of the step goes.
  Graph before = ParseGraph(R"(
lane main thread
lane loader channel
lane gpu0.7 stream
b1 loader data 100us "loader workers"
c1 main call 10us "cudaLaunchKernel" after b1 handoff
k1 gpu0.7 kernel 1us "sgemm" after c1 launch
)")
                     .value();
  Explanation e = Explain(before, [](Editor& edit) {
    edit.BeginCause("batches are read from memory");
    edit.SetDuration(TaskId(0), Duration::Us(50));
  });
  EXPECT_EQ(e.cause, "batches are read from memory");
  EXPECT_EQ(e.gained, Duration::Us(50));
  EXPECT_THAT(e.text, HasSubstr("the step shrinks by 50 us, all of it waiting"));
  EXPECT_THAT(e.text, Not(HasSubstr("faster does not help")));
}

TEST(Why, MoreOfTheSameLevelsOff) {
  // The last kernel stays behind the last launch, so a little is gained up to the end.
  Explanation e = Explain(FourKernels(), [](Editor& edit) { Faster(edit, 2); });
  ASSERT_TRUE(e.enough.has_value());
  EXPECT_GT(*e.enough, 2);
}

TEST(Why, NamesALargerCauseThatCosts) {
  // Kernels lose 4 us of 20 each, but a call before them takes 100 us more.
  Explanation e = Explain(FourKernels(), [](Editor& edit) {
    Faster(edit, 1.25);
    edit.BeginCause("calls read back");
    edit.SetDuration(TaskId(0), Duration::Us(110));
  });
  EXPECT_EQ(e.cause, "GEMMs run on tensor cores");
  EXPECT_THAT(e.text, HasSubstr("calls read back: costs 100"));
}

TEST(Why, WhatItSaysAddsUpToWhatIsSaved) {
  // Four launches of 100, 80, 60 and 40 us take half: 140 us in all.
  Graph before = ParseGraph(R"(
lane main thread
lane gpu0.7 stream
c1 main call 100us "cudaLaunchKernel"
c2 main call 80us "cudaLaunchKernel"
c3 main call 60us "cudaLaunchKernel"
c4 main call 40us "cudaLaunchKernel"
k1 gpu0.7 kernel 1us "sgemm" after c4 launch
)")
                     .value();
  Explanation e = Explain(before, [](Editor& edit) {
    for (int t = 0; t < 4; ++t) {
      edit.BeginCause(fmt::format("call {}", t));
      edit.Scale(std::vector<TaskId>{TaskId(t)}, 0.5);
    }
  });
  EXPECT_EQ(e.cause, "call 0");
  EXPECT_EQ(e.gained, Duration::Us(50));
  EXPECT_THAT(e.text, HasSubstr("the step by 50 us; call 1: saves 40 us; call 2: saves 30 us; "
                                "all else: saves 20 us; then bound by"));
}

TEST(Why, WhatGoesMayBeWaiting) {
  Graph before = ParseGraph(R"(
lane main thread
lane gpu0.7 stream
c1 main call 10us "cudaLaunchKernel"
k1 gpu0.7 kernel 100us "sgemm" after c1 launch
s1 main call 2us "cudaStreamSynchronize" until k1 hostwait
h1 main host 80us "python"
c2 main call 10us "cudaLaunchKernel"
k2 gpu0.7 kernel 100us "sgemm" after c2 launch
)")
                     .value();
  // 10 + 100 + 80 + 10 + 100 before; then 10 + 100 + 100, for 2 us of host work that is gone.
  Explanation e = Explain(before, [](Editor& edit) {
    edit.BeginCause("nobody waits");
    edit.DropEdges([](const Graph&, const Edge& edge) { return edge.rule == Rule::kHostWait; });
    const TaskId wait(2);
    edit.Remove({&wait, 1});
  });
  EXPECT_EQ(e.gained, Duration::Us(90));
  EXPECT_THAT(e.text, HasSubstr("nobody waits: the step shrinks by 90 us, 2.0 us of it work and "
                                "the rest waiting; then bound by gemm kernels"));
}

TEST(Why, HiddenWorkSaysBehindWhat) {
  Graph before = ParseGraph(R"(
lane main thread
lane gpu0.7 stream
c1 main call 10us "cudaLaunchKernel"
h1 main host 500us "python"
k1 gpu0.7 kernel 100us "sgemm" after c1 launch
)")
                     .value();
  Explanation e = Explain(before, [](Editor& edit) {
    edit.BeginCause("faster");
    edit.SetDuration(TaskId(2), Duration::Us(20));
  });
  EXPECT_EQ(e.gained, Duration());
  ASSERT_TRUE(e.enough.has_value());
  EXPECT_EQ(*e.enough, 1);
  EXPECT_THAT(e.text, HasSubstr("hidden behind host work"));
  EXPECT_THAT(e.text, HasSubstr("making the changed work even faster gains nothing more"));
}

}  // namespace
}  // namespace daydream
