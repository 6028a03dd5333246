// Promises that every optimization keeps.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "graph/text.h"
#include "simulator/simulate.h"
#include "tests/graph/random_graph.h"
#include "tests/real_traces.h"
#include "tests/transforms/every_option.h"
#include "trace/importer.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// A step of a training loop: a batch from the loader, a blocking copy, two layers, the optimizer.
constexpr std::string_view kStep = R"text(
device 0 "Tesla V100-SXM2-32GB" memory=34089730048 capability=7.0 multiprocessors=80
collective a "all_reduce" dtype="Float" group="0" in=250000 size=2
lane main   thread
lane gpu0.7 stream
lane gpu0.9 stream
step "0"
scope next  annotation main "enumerate(DataLoader)#__next__"
scope mm    op main "aten::mm" shapes="[[512, 1024], [1024, 1024]]" types="[\"float\", \"float\"]"
scope opt   annotation main "Optimizer.step#SGD.step"
l0 main   host   50us "load" at 0us scope next phase data
c0 main   call   5us  "cudaMemcpyAsync" at 50us
m0 gpu0.7 memcpy 90us at 52us bytes=1048576 from=pageable to=device after c0 launch
w0 main   wait        "cudaMemcpyAsync" at 55us until m0 hostwait -10us
h1 main   host   5us  "aten::mm" at 130us scope mm
c1 main   call   5us  gap 2us "cudaLaunchKernel" at 135us scope mm
k1 gpu0.7 kernel 90us gap 1us "volta_sgemm_nn" at 145us phase forward scope mm after c1 launch
c2 main   call   5us  gap 2us "cudaLaunchKernel" at 142us
k2 gpu0.7 kernel 40us "elementwise_kernel<add>" at 240us grid=512,1,1 block=128,1,1 after c2 launch
c3 main   call   5us  gap 2us "cudaLaunchKernel" at 149us
k3 gpu0.7 kernel 40us "elementwise_kernel<relu>" at 280us grid=512,1,1 block=128,1,1 after c3 launch
c4 main   call   5us  gap 2us "cudaLaunchKernel" at 156us
r4 gpu0.9 collective 60us "ncclAllReduce" collective=a at 320us after c4 launch after k3 eventwait
c5 main   call   5us  gap 2us "cudaLaunchKernel" at 163us scope opt phase optimizer
k5 gpu0.7 kernel 30us "mul_elementwise" at 380us phase optimizer after c5 launch after r4 eventwait
c6 main   call   5us  gap 2us "cudaLaunchKernel" at 170us scope opt phase optimizer
k6 gpu0.7 kernel 30us "elementwise_kernel<add>" at 410us phase optimizer after c6 launch
s7 main   call   3us  "cudaDeviceSynchronize" at 177us until k6 hostwait +5us
c8 main   call   5us  "cudaLaunchKernel" at 420us
k8 gpu0.7 kernel 5us  "elementwise_kernel<add>" at 440us after c8 launch
)text";

Graph Step() {
  auto graph = ParseGraph(kStep);
  EXPECT_TRUE(graph.ok()) << Message(graph.status());
  return graph.ok() ? *std::move(graph) : Graph();
}

// The trace does not have what the optimization changes or needs: what lies wrong with the trace,
// not with the question.
bool IsAboutTheTrace(const absl::Status& status) {
  const std::string code = DiagnosticOf(status).code;
  return code.starts_with("E06") || code.starts_with("E081") || code.starts_with("E082");
}

absl::StatusOr<Applied> ApplyTo(Graph& graph, std::string_view spec) {
  auto scenario = ParseScenario(spec);
  if (!scenario.ok()) return scenario.status();
  return Apply(scenario->front(), graph);
}

Duration MakespanOf(const Graph& graph) {
  auto timeline = Simulate(graph);
  EXPECT_TRUE(timeline.ok()) << Message(timeline.status());
  return timeline.ok() ? timeline->makespan : Duration();
}

TEST(EveryTransform, ChangesATrainingStepOrSaysWhyNot) {
  for (const Transform* t : Transforms()) {
    Graph graph = Step();
    auto applied = ApplyTo(graph, SpecOf(*t));
    constexpr std::string_view kNotHere[] = {
        // too few launches
        "graphs",
        "compile",
        // no such kernels
        "flash-attn",
        "channels-last",
        // nothing is independent
        "rbn",
        "multi-stream",
        // no layers, or one step only
        "layers",
        "colocate",
        // no backward pass, or gradients are not exchanged
        "checkpointing",
        "offload",
        "gist",
        "accumulate",
        "fp16-compress",
        "dgc",
        "powersgd",
        "local-sgd",
        "blueconnect",
        "p3",
        "bucket",
    };
    if (std::find(std::begin(kNotHere), std::end(kNotHere), t->name) != std::end(kNotHere)) {
      EXPECT_TRUE(IsAboutTheTrace(applied.status())) << t->name;
      continue;
    }
    EXPECT_TRUE(applied.ok()) << t->name << ": " << Message(applied.status());
    if (!applied.ok()) continue;
    EXPECT_TRUE(applied->changes.any()) << t->name;
    EXPECT_EQ(applied->bound, t->bound);
    MakespanOf(graph);
  }
}

TEST(EveryTransform, GoesWithEveryOther) {
  for (const Transform* a : Transforms()) {
    for (const Transform* b : Transforms()) {
      Graph graph = Step();
      (void)ApplyTo(graph, SpecOf(*a));
      auto applied = ApplyTo(graph, SpecOf(*b));
      if (!applied.ok()) {
        EXPECT_TRUE(IsAboutTheTrace(applied.status()))
            << a->name << ", " << b->name << ": " << Message(applied.status());
      }
      MakespanOf(graph);
    }
  }
}

TEST(EveryTransform, LeavesTheGraphAloneWhenNothingMatches) {
  for (const Transform* t : Transforms()) {
    Graph graph = ParseGraph("lane other channel\nd0 other data 5us \"x\"\n").value();
    const std::string before = FormatGraph(graph);
    auto applied = ApplyTo(graph, SpecOf(*t));
    if (applied.ok()) continue;  // free-host and no-data-wait know this kind of work
    EXPECT_TRUE(IsAboutTheTrace(applied.status())) << t->name << ": " << Message(applied.status());
    EXPECT_EQ(FormatGraph(graph), before) << t->name;
  }
}

// A library brings a kernel of Triton along; that does not make a program compiled.
TEST(Compile, OneKernelOfACompilerIsNoCompiledProgram) {
  for (const auto& [kernels, compiled] : {std::pair{300, false}, std::pair{100, true}}) {
    std::string text = "lane main thread\nlane gpu0.7 stream\n";
    for (int i = 0; i < kernels; ++i) {
      text +=
          fmt::format("c{0} main call 5us \"cudaLaunchKernel\" at {1}us phase forward\n", i, 6 * i);
      text +=
          fmt::format("k{0} gpu0.7 kernel 2us \"{1}\" at {2}us phase forward after c{0} launch\n",
                      i, i == 7 ? "triton_red_fused" : "elementwise_kernel<add>", 6 * i + 5);
    }
    auto graph = ParseGraph(text);
    ASSERT_TRUE(graph.ok()) << graph.status();
    auto applied = ApplyTo(*graph, "compile");
    std::string said;
    if (applied.ok()) {
      for (const std::string& note : applied->changes.notes) said += note;
    } else {
      said = DiagnosticOf(applied.status()).why;
    }
    EXPECT_EQ(said.find("compiled already") != std::string::npos, compiled) << said;
  }
}

TEST(EveryTransform, SurvivesRandomGraphs) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Graph graph = RandomGraph(seed, {.tasks = 2 + seed});
    for (const Transform* t : Transforms()) {
      Graph changed = graph;
      auto applied = ApplyTo(changed, SpecOf(*t));
      std::string code = applied.ok() ? "" : DiagnosticOf(applied.status()).code;
      EXPECT_NE(code, "E0901") << t->name << ", seed " << seed << ": " << Message(applied.status());
    }
  }
}

TEST(NeutralParameters, ChangeNothing) {
  for (std::string_view spec : {"speedup(kind:kernel, 1x)", "speedup(lane:main, 1x)"}) {
    Graph graph = Step();
    const std::string before = FormatGraph(graph);
    ASSERT_TRUE(ApplyTo(graph, spec).ok()) << spec;
    EXPECT_EQ(FormatGraph(graph), before) << spec;
  }
}

TEST(Bounds, NeverMakeTheStepLonger) {
  for (const Transform* t : Transforms()) {
    if (!t->bound) continue;
    Graph graph = Step();
    const Duration before = MakespanOf(graph);
    ASSERT_TRUE(ApplyTo(graph, SpecOf(*t)).ok()) << t->name;
    EXPECT_LE(MakespanOf(graph), before) << t->name;
  }
}

TEST(Bounds, FreeGpuIsTheHostsOwnTime) {
  Graph graph = Step();
  ASSERT_TRUE(ApplyTo(graph, "free-gpu").ok());
  // 50 + 5 host before the copy, whose read returns at once; 5 + 6 * 7 launches, 3 to synchronize
  // (the last kernel's end is seen 5 us after its launch returned, 2 us before the call is made),
  // 5 for the launch behind it.
  EXPECT_EQ(MakespanOf(graph), Duration::Us(50 + 5 + 5 + 6 * 7 + 3 + 5));
}

class RealTrace : public testing::TestWithParam<const char*> {};

TEST_P(RealTrace, KeepsItsPromises) {
  const std::filesystem::path path = RealTraceFolder() / GetParam();
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  auto trace = ImportFile(path.string());
  ASSERT_TRUE(trace.ok());
  auto built = BuildGraph(*trace);
  ASSERT_TRUE(built.ok());
  const Duration before = MakespanOf(built->graph);
  for (const Transform* t : Transforms()) {
    Graph graph = built->graph;
    auto applied = ApplyTo(graph, SpecOf(*t));
    if (!applied.ok()) {
      EXPECT_TRUE(IsAboutTheTrace(applied.status()))
          << t->name << ": " << Message(applied.status());
      continue;
    }
    auto timeline = Simulate(graph);
    ASSERT_TRUE(timeline.ok()) << t->name;
    if (t->bound) {
      EXPECT_LE(timeline->makespan, before) << t->name;
    }
    for (const Edge& e : graph.edges()) {
      if (e.rule != Rule::kLaunch || graph.task(e.to).removed) continue;
      ASSERT_GE(timeline->start[e.to.index()], timeline->start[e.from.index()])
          << t->name << ": " << graph.TaskName(e.to) << " starts before its launch";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Small, RealTrace,
                         testing::Values("gpus/resnet50-bs32.v100-sxm2.json.gz",
                                         "loader/resnet50-v100.workers0.b.json.gz",
                                         "copies/copy-a100.pageable.json.gz",
                                         "odd/mi250-rocm.json.gz"),
                         [](const auto& info) { return fmt::format("case{}", info.index); });

}  // namespace
}  // namespace daydream
