// Batch and size what-ifs against recordings of other sizes, where those are at hand, and what
// holds for them on every trace.
#include <gtest/gtest.h>

#include <cctype>
#include <optional>

#include "graph/build.h"
#include "simulator/simulate.h"
#include "tests/real_traces.h"
#include "trace/importer.h"
#include "transforms/core/transform.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

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
  const double predicted = GpuTime(*before).ms(), measured = GpuTime(*after).ms();
  RecordProperty("predicted_ms", std::to_string(predicted));
  EXPECT_NEAR(predicted / measured, 1, GetParam().allowed);
}

INSTANTIATE_TEST_SUITE_P(Pairs, ParticleTransformer,
                         testing::Values(BatchPair{128, 512, 0.1}, BatchPair{512, 128, 0.1}),
                         [](const auto& info) {
                           return "From" + std::to_string(info.param.from) + "To" +
                                  std::to_string(info.param.to);
                         });

// Of its steps half wait for eight workers, in bursts.
TEST(Prefetch, AsManyWorkersAsRecordedChangeNothing) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  auto graph = GraphOf("training/resnet18-bs128-2080ti.json.gz");
  ASSERT_TRUE(graph.ok());
  const double before = StepTime(*graph, Simulate(*graph).value()).ms();
  for (const char* spec : {"prefetch(workers=8,recorded=8)", "prefetch(workers=4,recorded=4)"}) {
    Graph copy = *graph;
    const auto applied = ApplyTo(copy, spec);
    ASSERT_TRUE(applied.ok()) << Message(applied.status());
    EXPECT_NEAR(StepTime(copy, Simulate(copy).value()).ms() / before, 1, 0.03) << spec;
  }
}

class EveryTrace : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "none") GTEST_SKIP() << "no ../shared/traces beside the repository";
    auto graph = GraphOf(GetParam());
    if (!graph.ok()) {
      ASSERT_EQ(DiagnosticOf(graph.status()).code, "E0301") << Message(graph.status());
      GTEST_SKIP() << "recorded without GPU work";
    }
    graph_ = *std::move(graph);
  }

  // The step time under `spec`; nothing when the optimization refuses, which it must do with a
  // code.
  std::optional<Duration> StepUnder(const std::string& spec, Graph* edited = nullptr) {
    Graph copy = graph_;
    const auto applied = ApplyTo(copy, spec);
    if (!applied.ok()) {
      EXPECT_FALSE(DiagnosticOf(applied.status()).code.empty()) << Message(applied.status());
      EXPECT_NE(DiagnosticOf(applied.status()).code, "E0901") << Message(applied.status());
      return std::nullopt;
    }
    const auto timeline = Simulate(copy);
    EXPECT_TRUE(timeline.ok()) << spec << ": " << Message(timeline.status());
    if (!timeline.ok()) return std::nullopt;
    const Duration step = StepTime(copy, *timeline);
    if (edited != nullptr) *edited = std::move(copy);
    return step;
  }

  Graph graph_;
};

TEST_P(EveryTrace, NeutralSizesChangeNothing) {
  for (const char* spec : {"batch(x1)", "layers(x1)", "accumulate(1)", "hidden(x1)"}) {
    Graph edited;
    if (!StepUnder(spec, &edited)) continue;
    ASSERT_EQ(edited.size(), graph_.size()) << spec;
    for (size_t i = 0; i < graph_.size(); ++i) {
      const Task &was = graph_.task(TaskId(i)), &is = edited.task(TaskId(i));
      ASSERT_EQ(was.duration, is.duration) << spec << " task " << i;
      ASSERT_EQ(was.gap, is.gap) << spec << " task " << i;
    }
  }
}

TEST_P(EveryTrace, MoreExamplesNeverTakeLess) {
  Duration gpu;
  for (const char* spec : {"batch(x0.25)", "batch(x0.5)", "batch(x1)", "batch(x2)", "batch(x3)",
                           "batch(x4)", "batch(x16)"}) {
    Graph edited;
    const std::optional<Duration> now = StepUnder(spec, &edited);
    if (!now) continue;  // nothing depends on the batch, or less than one example
    EXPECT_GE(GpuTime(edited), gpu) << spec;
    gpu = GpuTime(edited);
  }
}

TEST_P(EveryTrace, EverySizeCanBePlayedOrIsRefusedWithAReason) {
  for (const char* spec :
       {"accumulate(2)", "accumulate(4)", "layers(x2)", "layers(x1.5)", "layers(x0.5)", "layers(1)",
        "hidden(x2)", "hidden(x0.5)", "sparse(kind:kernel)", "cache", "cache(10%)",
        "prefetch(8, cores=2)", "prefetch(2, recorded=4)"}) {
    StepUnder(spec);
  }
}

TEST_P(EveryTrace, PassesAreRepeatedAndTheOptimizerIsNot) {
  Graph twice, thrice;
  if (!StepUnder("accumulate(2)", &twice) || !StepUnder("accumulate(3)", &thrice)) {
    GTEST_SKIP() << "no optimizer";
  }
  const Duration once = GpuTime(graph_), two = GpuTime(twice), three = GpuTime(thrice);
  EXPECT_GT(two, once);
  EXPECT_EQ(three - two, two - once);
}

TEST_P(EveryTrace, EveryRepetitionOfTheLayersAddsTheSame) {
  Graph twice, thrice;
  if (!StepUnder("layers(x2)", &twice) || !StepUnder("layers(x3)", &thrice)) {
    GTEST_SKIP() << "no layers with numbers";
  }
  const Duration once = GpuTime(graph_), two = GpuTime(twice), three = GpuTime(thrice);
  EXPECT_GT(two, once);
  // Kernels of the optimizer are scaled, and rounded.
  EXPECT_NEAR((three - two).us(), (two - once).us(), 1 + 1e-6 * once.us());
}

INSTANTIATE_TEST_SUITE_P(All, EveryTrace, testing::ValuesIn(RealTracesOrNone()),
                         [](const auto& info) { return TestNameOf(info.param); });

}  // namespace
}  // namespace daydream
