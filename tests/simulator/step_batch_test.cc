// Eight step times in one pass are the eight step times one by one.
#include "simulator/step_batch.h"

#include <gtest/gtest.h>

#include <random>

#include <fmt/format.h>

#include "graph/build.h"
#include "simulator/simulate.h"
#include "tests/graph/random_graph.h"
#include "tests/real_traces.h"
#include "trace/importer.h"

namespace daydream {
namespace {

void ExpectSameSteps(const Graph& graph, uint64_t seed) {
  auto batch = StepBatch::Make(graph);
  ASSERT_TRUE(batch.ok()) << batch.status();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 3; ++round) {
    batch->Reset();
    std::vector<Graph> variants(StepBatch::kWidth, graph);
    for (size_t s = 0; s < variants.size(); ++s) {
      for (size_t i = 0; i < graph.size(); ++i) {
        if (round > 0 && random() % 2 == 0) continue;  // some stay as they are
        Task& task = variants[s].mutable_task(TaskId(i));
        double factor = static_cast<double>(random() % 200) / 100;
        task.duration = task.duration.Scaled(factor);
        task.gap = task.gap.Scaled(factor);
        batch->Set(s, TaskId(i), task.duration, task.gap);
      }
    }
    for (int again = 0; again < 2; ++again) {
      auto steps = batch->Run();
      for (size_t s = 0; s < variants.size(); ++s) {
        EXPECT_EQ(steps[s], StepTime(variants[s], Simulate(variants[s]).value())) << "column " << s;
      }
    }
  }
  batch->Reset();
  EXPECT_EQ(batch->Run()[3], StepTime(graph, Simulate(graph).value()));
}

TEST(StepBatch, AgreesWithSimulateOnRandomGraphs) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    ExpectSameSteps(RandomGraph(seed, {.tasks = 1 + seed % 80, .lanes = 1 + seed % 5}), seed);
  }
}

TEST(StepBatch, AgreesWithSimulateOnRealTraces) {
  for (const char* name :
       {"gpus/resnet50-bs32.v100-sxm2.json.gz", "gpus/bert-small.h100.json.gz",
        "inference/prefill-b200-eager.json.gz", "training/recsys-a100-rank3of8.json.gz"}) {
    if (!std::filesystem::exists(RealTraceFolder() / name)) GTEST_SKIP() << "no real traces";
    SCOPED_TRACE(name);
    auto built = BuildGraph(ImportFile((RealTraceFolder() / name).string()).value());
    ASSERT_TRUE(built.ok());
    ExpectSameSteps(built->graph, 1);
  }
}

TEST(StepBatch, RefusesLanesThatMayReorder) {
  EXPECT_FALSE(StepBatch::Make(RandomGraph(1, {.tasks = 20, .priority_lanes = 1})).ok());
}

}  // namespace
}  // namespace daydream
