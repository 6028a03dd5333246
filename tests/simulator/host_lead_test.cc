// A lead of the host is used up once; a run that goes on takes what the host does.
#include "graph/host_lead.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "graph/text.h"
#include "simulator/simulate.h"
#include "simulator/step_batch.h"

namespace daydream {
namespace {

// Five steps of a call and a kernel of 3 ms on a GPU that has 4 ms to do first; as it plays is as
// it was recorded. Steps 1 to 3 count.
Graph Record(std::string_view call, std::string_view after, bool queue) {
  std::string text =
      "lane cpu thread\nlane gpu stream\nstep \"first\" unmeasured\nstep \"1\"\nstep \"2\"\n"
      "step \"3\"\nstep \"last\" unmeasured\nbefore gpu kernel 4ms step=0\n";
  for (int s = 0; s < 5; ++s) {
    const bool waits = queue && s > 0;
    text += fmt::format("c{0} cpu call {1} step={0}{2}\n", s, call,
                        waits ? fmt::format(" until k{}:start queue", s - 1) : "");
    text += fmt::format("k{0} gpu kernel 3ms step={0} after c{0}{1} launch\n", s, after);
  }
  Graph graph = ParseGraph(text).value();
  const Timeline timeline = Simulate(graph).value();
  for (size_t i = 0; i < graph.size(); ++i) {
    graph.mutable_task(TaskId(i)).recorded_start = timeline.start[i];
  }
  for (size_t s = 0; s < 5; ++s) {
    graph.mutable_step(s).begin = {TaskId(1 + 2 * s), TaskId(2 + 2 * s)};
  }
  return graph;
}

// The step when all tasks of a kind take `duration`, by a replay and by a batch.
Duration StepWith(const Graph& recorded, TaskKind kind, Duration duration) {
  Graph graph = recorded;
  for (size_t i = 1; i < graph.size(); ++i) {
    if (graph.task(TaskId(i)).kind == kind) graph.mutable_task(TaskId(i)).duration = duration;
  }
  const Duration step = StepTime(graph, Simulate(graph).value());
  StepBatch batch = StepBatch::Make(graph).value();
  EXPECT_EQ(batch.Run()[3], step);
  EXPECT_EQ(batch.StepWith({}), step);
  return step;
}

TEST(HostLead, AGpuFasterThanItsHostWaitsForIt) {
  const Graph recorded = Record("2ms", ":start", /*queue=*/false);
  EXPECT_EQ(StepTime(recorded, Simulate(recorded).value()), Duration::Ms(3));
  // Kernels follow each other, 1 ms apart, until the lead of 4 ms is used up.
  EXPECT_EQ(StepWith(recorded, TaskKind::kKernel, Duration::Ms(1)), Duration::Ms(2));
}

TEST(HostLead, AHostSlowerThanItsGpuIsWaitedFor) {
  const Graph recorded = Record("2ms", ":start", /*queue=*/false);
  EXPECT_EQ(StepWith(recorded, TaskKind::kCall, Duration::Ms(4)), Duration::Ms(4));
}

TEST(HostLead, AFullQueueHoldsLessTimeOfAFasterGpu) {
  // A call returns when the kernel before it starts: the lead is one kernel, whatever that takes.
  const Graph recorded = Record("500us", "", /*queue=*/true);
  EXPECT_EQ(StepTime(recorded, Simulate(recorded).value()), Duration::Ms(3));
  EXPECT_EQ(StepWith(recorded, TaskKind::kKernel, Duration::Ms(1)), Duration::Ms(1));
}

TEST(HostLead, WithoutALaunchOfTheFirstWorkNothingIsKnown) {
  Graph graph = Record("2ms", ":start", /*queue=*/false);
  ASSERT_TRUE(HostLead::Of(graph).has_value());
  graph.mutable_step(1).begin.call = TaskId::None();
  EXPECT_FALSE(HostLead::Of(graph).has_value());
  EXPECT_EQ(StepWith(graph, TaskKind::kKernel, Duration::Ms(1)), Duration::Ms(1));
}

}  // namespace
}  // namespace daydream
