// Batch and size what-ifs against recordings of other sizes, where those are at hand, and what
// holds for them on every trace.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "graph/build.h"
#include "simulator/simulate.h"
#include "tests/real_traces.h"
#include "trace/importer.h"
#include "transforms/transform.h"

namespace daydream {
namespace {

absl::StatusOr<Graph> GraphOf(const std::string& name) {
  DD_ASSIGN_OR_RETURN(auto trace, ImportFile((RealTraceFolder() / name).string()));
  DD_ASSIGN_OR_RETURN(BuiltGraph built, BuildGraph(trace));
  return std::move(built.graph);
}

Duration GpuTime(const Graph& graph) {
  Duration sum;
  for (const Task& task : graph.tasks()) {
    if (IsGpu(task.kind) && !task.removed) sum += task.duration;
  }
  return sum;
}

absl::StatusOr<Applied> ApplyTo(Graph& graph, std::string_view spec) {
  DD_ASSIGN_OR_RETURN(std::vector<Application> scenario, ParseScenario(spec));
  return Apply(scenario[0], graph);
}

struct BatchPair {
  int from, to;
  double allowed;  // relative error of GPU time
};

class ParticleTransformer : public testing::TestWithParam<BatchPair> {};

std::string TraceOfBatch(int batch) {
  return "batch/particle-transformer.bs" + std::to_string(batch) + ".json.gz";
}

TEST_P(ParticleTransformer, GpuTimeOfAnotherBatchIsPredicted) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  auto before = GraphOf(TraceOfBatch(GetParam().from));
  const auto after = GraphOf(TraceOfBatch(GetParam().to));
  ASSERT_TRUE(before.ok() && after.ok());
  const auto applied = ApplyTo(*before, "batch(" + std::to_string(GetParam().to) + ")");
  ASSERT_TRUE(applied.ok()) << Message(applied.status());
  for (const std::string& note : applied->changes.notes) std::printf("%s\n", note.c_str());
  const double predicted = GpuTime(*before).ms(), measured = GpuTime(*after).ms();
  std::printf("%.2f ms against %.2f measured\n", predicted, measured);
  EXPECT_NEAR(predicted / measured, 1, GetParam().allowed);
  if (const char* dump = std::getenv("DD_DUMP")) {
    std::ofstream out(dump);
    for (size_t i = 0; i < before->size(); ++i) {
      const Task& task = before->task(TaskId(i));
      if (!IsGpu(task.kind)) continue;
      const Scope* s = before->ScopeOf(TaskId(i));
      out << task.duration.us() << "\t" << (s ? before->Name(s->name) : "") << "\t"
          << before->TaskName(TaskId(i)).substr(0, 60) << "\n";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, ParticleTransformer,
                         testing::Values(BatchPair{128, 512, 0.1}, BatchPair{512, 128, 0.1}),
                         [](const auto& info) {
                           return "From" + std::to_string(info.param.from) + "To" +
                                  std::to_string(info.param.to);
                         });

}  // namespace
}  // namespace daydream
