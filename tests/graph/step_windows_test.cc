// Steps begin on the lanes on which they began when they were recorded, whatever runs ahead on
// others.
#include "graph/step_windows.h"

#include <gtest/gtest.h>

#include <vector>

#include <fmt/format.h>

#include "graph/build.h"
#include "graph/text.h"
#include "simulator/simulate.h"
#include "tests/real_traces.h"
#include "trace/importer.h"
#include "transforms/core/transform.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

Duration StepUnder(Graph& graph, std::string_view spec) {
  const auto scenario = ParseScenario(spec);
  EXPECT_TRUE(scenario.ok()) << Message(scenario.status());
  for (const Application& a : *scenario) {
    const auto applied = Apply(a, graph);
    EXPECT_TRUE(applied.ok()) << Message(applied.status());
  }
  return StepTime(graph, Simulate(graph).value());
}

// Each step copies 12 MB from pageable memory (1 ms) and then computes for 5 ms.
std::string Steps(int n) {
  std::string text = "lane cpu0 thread\nlane gpu0.7 stream\n";
  for (int i = 0; i < n; ++i) text += fmt::format("step \"{}\"\n", i);
  for (int i = 0; i < n; ++i) {
    text += fmt::format(
        "a{0} cpu0   call 2us \"cudaMemcpyAsync\" step={0}\n"
        "m{0} gpu0.7 memcpy 1000us \"Memcpy HtoD\" bytes=12000000 from=pageable to=device step={0} "
        "after a{0} launch\n"
        "b{0} cpu0   call 2us \"cudaLaunchKernel\" step={0}\n"
        "k{0} gpu0.7 kernel 5000us \"sgemm\" step={0} after b{0} launch\n",
        i);
  }
  return text;
}

TEST(StepWindows, WorkThatRunsAheadOnALaneOfItsOwnStartsNoStep) {
  auto graph = ParseGraph(Steps(6));
  ASSERT_TRUE(graph.ok()) << Message(graph.status());
  EXPECT_EQ(StepTime(*graph, Simulate(*graph).value()), Duration::Us(6000));
  // All copies run at once, and the kernels one after the other as before.
  EXPECT_EQ(StepUnder(*graph, "pin-memory"), Duration::Us(5000));
}

TEST(StepWindows, LanesBesideAreWrittenAndReadAsText) {
  auto graph = ParseGraph("lane cpu0 thread\nlane side stream beside\nlane gpu0.7 stream\n");
  ASSERT_TRUE(graph.ok()) << Message(graph.status());
  EXPECT_FALSE(graph->lane(LaneId(1)).marks_steps);
  EXPECT_TRUE(graph->lane(LaneId(2)).marks_steps);
  EXPECT_NE(FormatGraph(*graph).find("lane side stream beside"), std::string::npos);
}

// What each lane has to do in each step.
std::vector<std::vector<Duration>> Busy(const Graph& graph) {
  std::vector<std::vector<Duration>> busy(graph.lanes().size(),
                                          std::vector<Duration>(graph.steps().size()));
  for (const Task& task : graph.tasks()) {
    if (IsGpu(task.kind) && !task.removed) busy[task.lane.index()][task.step] += task.duration;
  }
  return busy;
}

TEST(StepWindows, NoStepIsShorterThanWhatTheLaneItBeginsOnHasToDo) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  for (const char* name :
       {"training/resnet18-bs128-2080ti.json.gz", "loader/resnet50-v100.workers4.a.json.gz",
        "loader/resnet50-v100.workers0.b.json.gz"}) {
    const auto trace = ImportFile((RealTraceFolder() / name).string());
    ASSERT_TRUE(trace.ok());
    auto built = BuildGraph(*trace);
    ASSERT_TRUE(built.ok());
    Graph& graph = built->graph;
    StepUnder(graph, "pin-memory");
    const std::vector<Duration> periods = StepPeriods(graph, Simulate(graph).value());
    const auto busy = Busy(graph);
    for (size_t l = 0; l < busy.size(); ++l) {
      if (!graph.lane(LaneId(l)).marks_steps) continue;
      // The last step has no next one to begin.
      for (size_t s = 1; s + 1 < graph.steps().size(); ++s) {
        if (!graph.steps()[s].measured || !graph.steps()[s + 1].measured) continue;
        EXPECT_GE(periods[s - 1], busy[l][s]) << name << ", lane " << l << ", step " << s;
      }
    }
  }
}

}  // namespace
}  // namespace daydream
