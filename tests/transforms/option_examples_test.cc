// Every file in examples/optimizations/ can be read, and does what it says to a graph whose outcome
// can be computed by hand, or to a shipped trace.
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "graph/text.h"
#include "simulator/simulate.h"
#include "tests/source_tree.h"
#include "trace/importer.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/option_files.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

const std::string kFolder = DAYDREAM_SOURCE_DIR "/examples/optimizations/";

std::vector<std::string> Files() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<Graph> Shipped(const std::string& name) {
  std::string path = DAYDREAM_SOURCE_DIR "/examples/" + name + "-synthetic.ddtrace";
  DD_ASSIGN_OR_RETURN(auto trace, ImportBytes(ReadText(path), "example"));
  DD_ASSIGN_OR_RETURN(BuiltGraph built, BuildGraph(trace));
  return std::move(built.graph);
}

struct Outcome {
  Changes changes;
  double speedup = 0;
};

Outcome Play(const std::string& spec, Graph graph) {
  OptionFiles files({kFolder});
  auto scenario = ParseScenario(spec, &files);
  EXPECT_TRUE(scenario.ok()) << DiagnosticOf(scenario.status()).where;
  if (!scenario.ok()) return {};
  auto before = Simulate(graph);
  auto applied = Apply((*scenario)[0], graph);
  EXPECT_TRUE(applied.ok()) << DiagnosticOf(applied.status()).what << "\n"
                            << DiagnosticOf(applied.status()).where;
  if (!applied.ok()) return {};
  auto after = Simulate(graph);
  EXPECT_TRUE(before.ok() && after.ok());
  return {applied->changes,
          static_cast<double>(before->makespan.ns) / static_cast<double>(after->makespan.ns)};
}

Outcome OnShipped(const std::string& spec, const std::string& trace) {
  auto graph = Shipped(trace);
  EXPECT_TRUE(graph.ok());
  return graph.ok() ? Play(spec, *std::move(graph)) : Outcome{};
}

Outcome OnText(const std::string& spec, std::string_view text) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << Message(graph.status());
  return graph.ok() ? Play(spec, *std::move(graph)) : Outcome{};
}

TEST(OptionExamples, CanBeReadAndNameTheirSources) {
  EXPECT_GE(Files().size(), 10u);
  for (const std::string& name : Files()) {
    auto file = OptionFile::Load(kFolder + name + ".yaml");
    ASSERT_TRUE(file.ok()) << DiagnosticOf(file.status()).what << "\n"
                           << DiagnosticOf(file.status()).where;
    const Transform& t = (*file)->transform();
    EXPECT_EQ(t.name, name);
    EXPECT_NE(t.sources, "those of its parameters") << name;
    EXPECT_NE(t.ignores, "The file does not say.") << name;
    EXPECT_FALSE(t.advice.how.empty()) << name;
    EXPECT_FALSE(t.params.empty()) << name;
  }
}

TEST(OptionExamples, ConflictsNameOptimizationsThatThereAre) {
  auto code = [](std::string_view with, const std::string& path) {
    const std::string text = fmt::format(
        "daydream: 1\nname: mine\nsummary: s\nsteps: [{{use: fuse}}]\n"
        "conflicts: [{{with: {}, reason: r}}]\n",
        with);
    auto file = OptionFile::Parse(text, path);
    return file.ok() ? "fine" : DiagnosticOf(file.status()).code;
  };
  EXPECT_EQ(code("graph", kFolder + "mine.yaml"), "E0405");
  EXPECT_EQ(code("graphs", kFolder + "mine.yaml"), "fine");
  // Another file of the user's has to be beside it.
  EXPECT_EQ(code("gist-relu", kFolder + "mine.yaml"), "fine");
  EXPECT_EQ(code("gist-relu", kFolder + "elsewhere/mine.yaml"), "E0405");
}

// What shipped traces say. The ranges are wide: the traces are synthetic and no evidence; a value
// outside of them means that an example has stopped doing what it says.
TEST(OptionExamples, ShippedTracesChangeInTheRightDirection) {
  struct Case {
    std::string spec, trace;
    double least, most;
  };
  for (const Case& c : std::vector<Case>{{"pinned-prefetch", "resnet50", 1.02, 1.2},
                                         {"batch-norm-restructuring", "resnet50", 1.03, 1.3},
                                         {"gist-relu", "resnet50", 0.85, 0.999},
                                         {"activation-recompute", "resnet50", 0.6, 0.95},
                                         {"sparse-products", "resnet50", 1.02, 1.2},
                                         {"fused-adam", "launch-bound", 1.2, 3},
                                         {"launch-removal", "launch-bound", 1.05, 2},
                                         {"flash-attention", "launch-bound", 1.0, 1.3},
                                         {"fused-layer-norm", "launch-bound", 1.0, 1.2}}) {
    Outcome out = OnShipped(c.spec, c.trace);
    EXPECT_TRUE(out.changes.any()) << c.spec;
    EXPECT_GE(out.speedup, c.least) << c.spec;
    EXPECT_LE(out.speedup, c.most) << c.spec;
  }
}

TEST(OptionExamples, FusedAdamIsAboutPlainAdam) {
  auto verdict = [](std::string_view optimizer, std::string_view kernel) {
    std::string text = fmt::format(
        "lane main thread\nlane gpu0.7 stream\n"
        "scope opt annotation main \"Optimizer.step#{}.step\"\n",
        optimizer);
    for (int i = 0; i < 20; ++i) {
      text += fmt::format(
          "c{0} main call 1us \"cudaLaunchKernel\" scope opt phase optimizer\n"
          "k{0} gpu0.7 kernel 1us \"{1}\" after c{0} launch phase optimizer scope opt\n",
          i, kernel);
    }
    auto graph = ParseGraph(text);
    EXPECT_TRUE(graph.ok()) << Message(graph.status());
    OptionFiles files({kFolder});
    auto scenario = ParseScenario("fused-adam", &files);
    auto applied = Apply((*scenario)[0], *graph);
    return applied.ok() ? "fine" : DiagnosticOf(applied.status()).code;
  };
  EXPECT_EQ(verdict("Adam", "addcdiv"), "fine");
  EXPECT_EQ(verdict("AdamW", "addcdiv"), "fine");
  EXPECT_EQ(verdict("SGD", "add"), "E0421");
  EXPECT_EQ(verdict("NAdam", "addcdiv"), "E0421");
  EXPECT_EQ(verdict("FusedAdam", "multi_tensor_apply"), "E0421");
  EXPECT_EQ(verdict("AdamW", "multi_tensor_apply_kernel<FusedAdamMathFunctor>"), "E0421");
}

TEST(OptionExamples, FlashAttentionKeepsProductsAndDropsScores) {
  // Forward: 10 + (4) + 10 us become one kernel of 20 us.
  Outcome out = OnText("flash-attention", R"(
lane main   thread
lane gpu0.7 stream
scope qk op main "aten::bmm"
scope sm op main "aten::softmax"
scope pv op main "aten::bmm"
c1 main call 1us "cudaLaunchKernel" scope qk
k1 gpu0.7 kernel 10us "sgemm" after c1 launch phase forward scope qk
c2 main call 1us "cudaLaunchKernel" scope sm
k2 gpu0.7 kernel 4us "softmax" after c2 launch phase forward scope sm
c3 main call 1us "cudaLaunchKernel" scope pv
k3 gpu0.7 kernel 10us "sgemm" after c3 launch phase forward scope pv
c4 main call 1us "cudaLaunchKernel"
k4 gpu0.7 kernel 1us "relu" after c4 launch phase backward
)");
  EXPECT_EQ(out.changes.fused, 3u);
  EXPECT_DOUBLE_EQ(out.speedup, 26.0 / 22.0);
}

TEST(OptionExamples, PinnedPrefetchHidesTheCopyOfTheNextStep) {
  // The copy of the second step (480 kB at 24 GB/s: 20 us) runs beside the first step's kernel.
  Outcome out = OnText("pinned-prefetch", R"(
lane main   thread
lane gpu0.7 stream
step "1" period 200us
step "2" period 200us
c1 main call 5us "cudaLaunchKernel"
k1 gpu0.7 kernel 95us "sgemm" after c1 launch phase forward
c2 main call 5us "cudaMemcpyAsync" step=1
m2 gpu0.7 memcpy 100us "Memcpy HtoD" after c2 launch bytes=480000 from=pageable to=device step=1
w2 main wait "cudaMemcpyAsync" until m2 hostwait step=1
c3 main call 5us "cudaLaunchKernel" step=1
k3 gpu0.7 kernel 100us "sgemm" after c3 launch phase forward step=1
)");
  // Before: k1 to 100 us, m2 to 200 us, c3 to 205 us, k3 to 305 us. After: k3 from 100 us on.
  EXPECT_EQ(out.changes.moved, 1u);
  EXPECT_DOUBLE_EQ(out.speedup, 305.0 / 200.0);
}

// As above with the launch moved, too, in front of 4 us of host work.
TEST(OptionExamples, AShiftCanTakeItsLaunchAlong) {
  auto file = OptionFile::Parse(R"(daydream: 1
name: shifted
summary: The copy is launched in the step before
steps:
  - select: {kind: memcpy}
    move: {stream: new(copy)}
    unblock: host
  - select: {kind: memcpy}
    shift: {to: previous_step, after: {kind: kernel}, launch: move}
)",
                                "shifted.yaml");
  ASSERT_TRUE(file.ok()) << Message(file.status());
  auto graph = ParseGraph(R"(
lane main   thread
lane gpu0.7 stream
step "1" period 200us
step "2" period 200us
c1 main call 5us "cudaLaunchKernel" at 0us
k1 gpu0.7 kernel 95us "sgemm" at 5us after c1 launch
h1 main host 4us "work" step=1 at 5us
c2 main call 5us gap 3us "cudaMemcpyAsync" step=1 at 9us
m2 gpu0.7 memcpy 20us "copy" at 100us after c2 launch bytes=9 from=pinned to=device step=1
c3 main call 5us "cudaLaunchKernel" step=1 at 17us
k3 gpu0.7 kernel 100us "sgemm" after c3 launch step=1 at 120us
)");
  ASSERT_TRUE(graph.ok()) << Message(graph.status());
  const Transform& t = (*file)->transform();
  auto applied = Apply({&t, *BindParams(t.name, {}, {}), *file}, *graph);
  ASSERT_TRUE(applied.ok()) << Message(applied.status());
  // The call stands behind the launch of k1 and belongs to its step; the 3 us of host work that
  // followed it stay in front of c3.
  const TaskId c1(0), c2(3), m2(4), c3(5);
  EXPECT_EQ(graph->task(c2).lane_prev, c1);
  EXPECT_EQ(graph->task(c2).step, 0);
  auto timeline = Simulate(*graph);
  ASSERT_TRUE(timeline.ok());
  EXPECT_EQ(timeline->start[m2.index()], Instant::AtNs(10'000));
  EXPECT_EQ(timeline->start[c3.index()], Instant::AtNs(17'000));
}

TEST(OptionExamples, GradientCompressionTradesBytesForKernels) {
  // 6 MB of gradients: 5 us to select, 0.2 % of 1 ms to exchange, 5 us to add. The graph does not
  // tell the host time of an op, so each new launch takes 15 us: the first ends at 15 us, c1 at
  // 16 us, the second at 31 us, and its kernel at 36 us.
  Outcome out = OnText("gradient-compression", R"(
lane main   thread
lane gpu0.7 stream
collective all "all_reduce" dtype="Float" in=1500000 out=1500000 size=8
c1 main call 1us "cudaLaunchKernel"
k1 gpu0.7 collective 1ms "ncclDevKernel_AllReduce" after c1 launch collective=all
)");
  EXPECT_EQ(out.changes.inserted, 4u);
  EXPECT_DOUBLE_EQ(out.speedup, 1001.0 / 36.0);
}

TEST(OptionExamples, LaunchesOfAGraphCostLess) {
  std::string text = "lane main thread\nlane gpu0.7 stream\nscope op op main \"aten::add\"\n";
  for (int i = 0; i < 50; ++i) {
    text += fmt::format(
        "h{0} main host 10us \"aten::add\" scope op phase forward\n"
        "c{0} main call 5us \"cudaLaunchKernel\" scope op phase forward\n"
        "k{0} gpu0.7 kernel 1us \"add\" after c{0} launch phase {1}\n",
        i, i < 49 ? "forward" : "backward");
  }
  // 50 x 15 us + 1 us become 50 kernels of 1 us behind the first call of 0.2 us.
  Outcome out = OnText("launch-removal", text);
  EXPECT_DOUBLE_EQ(out.speedup, 751.0 / 50.2);
}

TEST(OptionExamples, FusedLayerNormIsOnePass) {
  Outcome out = OnText("fused-layer-norm", R"(
lane main   thread
lane gpu0.7 stream
scope ln op main "aten::native_layer_norm"
c1 main call 1us "cudaLaunchKernel" scope ln
k1 gpu0.7 kernel 10us "moments" after c1 launch scope ln
c2 main call 1us "cudaLaunchKernel" scope ln
k2 gpu0.7 kernel 20us "normalize" after c2 launch scope ln
)");
  EXPECT_DOUBLE_EQ(out.speedup, 31.0 / 21.0);
}

}  // namespace
}  // namespace daydream
