// What a step takes at the ends of open parameters, by columns of durations and by graphs.
#include "report/predict/open_ends.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "graph/text.h"
#include "report/predict/replays.h"
#include "report/predict/what_if.h"
#include "simulator/simulate.h"
#include "tests/example_graph.h"
#include "tests/real_traces.h"
#include "trace/importer.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// How many ends were played both ways, and how many said that they need other edits. A scenario
// that finds nothing to do has none.
struct Compared {
  size_t ends = 0, edits = 0;
};
Compared Compare(const Graph& graph, const std::string& spec) {
  const std::vector<Application> scenario = *ParseScenario(spec);
  GraphCopies copies(graph);
  BegunScenario begun(scenario, copies, /*columns=*/true);
  EXPECT_NE(begun.columns(), nullptr) << spec;
  const GraphCopies::Copy outcome = copies.Make();
  const auto keep = [&](const Application& a, Applied* applied) {
    begun.Keep(a, *outcome, applied != nullptr);
    return absl::OkStatus();
  };
  if (!ApplyAll(begun.noted(), *outcome, keep, begun.columns()).ok()) return {};
  Replays replays(*outcome);
  const Replays::Lent batch = replays.Batch(*outcome);
  if (batch == nullptr) return {};
  std::vector<OpenEnd> ends = begun.Ends();
  PlayColumns(*begun.columns(), *outcome, *batch, ends);
  Compared compared;
  for (const OpenEnd& end : ends) {
    if (!end.asked) continue;
    if (!end.column.has_value()) {
      ++compared.edits;
      continue;
    }
    const auto there = begun.With(end);
    EXPECT_TRUE(there.ok());
    if (!there.ok() || *there == nullptr) continue;
    EXPECT_EQ(end.step, StepTime(**there, *Simulate(**there)))
        << spec << ": " << end.spec->name << " " << end.value;
    ++compared.ends;
  }
  return compared;
}

// Each optimization that tells its ends, and lists of them.
std::vector<std::string> Scenarios(std::vector<std::string> lists) {
  for (const Transform* t : Transforms()) {
    if (t->ends == AtEnds::kEdits || t->stated_by_user) continue;  // no parameter is open
    const std::string_view wants = t->name == "gpu"      ? "(H100)"
                                   : t->name == "batch"  ? "(x0.5)"
                                   : t->name == "hidden" ? "(2x)"
                                                         : "";
    lists.push_back(fmt::format("{}{}", t->name, wants));
  }
  return lists;
}

// 1.5 ms are longer than a region of compile may be apart, and at an end of that they are not; but
// before the first launch there is no region that they could end.
TEST(OpenEnds, ALongTimeBetweenRegionsOfCompileNeedsNoGraphs) {
  std::string text = "lane cpu0 thread\nlane gpu0.7 stream\nstep \"one\"\n";
  text += "h cpu0 host 1500us \"load\" at 0us\n";
  for (int i = 0; i < 25; ++i) {
    const int at = 1500 + 100 * i;
    text += fmt::format("c{0} cpu0 call 5us gap 95us \"cudaLaunchKernel\" at {1}us\n", i, at);
    text += fmt::format("k{0} gpu0.7 kernel 2us \"k\" at {1}us after c{0} launch\n", i, at + 5);
  }
  const Compared compared = Compare(*ParseGraph(text), "compile");
  EXPECT_GT(compared.ends, 0u);
  EXPECT_EQ(compared.edits, 0u);
}

TEST(OpenEnds, ColumnsGiveTheStepsOfGraphs) {
  Compared all;
  for (const char* name : {"resnet50", "launch-bound"}) {
    const BuiltGraph built = Example(name);
    for (const std::string& spec : Scenarios({"amp,fuse",
                                              "amp(fp16),fuse",
                                              "fuse,fuse(norm)",
                                              "fuse(norm)",
                                              "amp,aot",
                                              "amp,fuse,graphs",
                                              "amp,compile,aot",
                                              "compile,graphs(scope=layer)",
                                              "fuse,aot",
                                              "compile(min_launches=3),aot(scope=step)",
                                              "amp,channels-last,fuse",
                                              "gpu(V100),fuse",
                                              "gpu(A100,tf32=all)",
                                              "batch(x3),graphs",
                                              "gpu(H100,own=0.3)",
                                              "pin-memory,amp",
                                              "pin-memory,amp,compile,aot",
                                              "amp,channels-last,rbn,aot",
                                              "channels-last,fuse",
                                              "gpu(V100),amp",
                                              "gpu(V100),speedup(kernel:.,3),amp,fuse",
                                              "batch(x3),speedup(op:.,2),graphs"})) {
      const Compared compared = Compare(built.graph, spec);
      all.ends += compared.ends, all.edits += compared.edits;
    }
  }
  EXPECT_GT(all.ends, 150);
  EXPECT_GT(all.edits, 0);  // some graphs are worth their launch at one end only
  EXPECT_LT(all.edits, all.ends);
}

class OpenEndsOf : public testing::TestWithParam<std::string> {};

TEST_P(OpenEndsOf, ColumnsGiveTheStepsOfGraphs) {
  if (GetParam() == "none") GTEST_SKIP() << "no ../shared/traces beside the repository";
  auto trace = ImportFile((RealTraceFolder() / GetParam()).string());
  ASSERT_TRUE(trace.ok()) << trace.status();
  auto built = BuildGraph(*trace);
  if (!built.ok()) GTEST_SKIP() << "no graph";
  // Large ones are for the lists alone: each end is played as a graph here.
  constexpr size_t kLarge = 50'000;
  const std::vector<std::string> lists = {
      "amp,fuse", "amp,compile,aot", "amp,channels-last,rbn,aot", "pin-memory,amp,compile,aot"};
  for (const std::string& spec : built->graph.size() > kLarge ? lists : Scenarios(lists)) {
    Compare(built->graph, spec);
  }
}

INSTANTIATE_TEST_SUITE_P(Real, OpenEndsOf, testing::ValuesIn(RealTracesOrNone()),
                         [](const auto& info) { return TestNameOf(info.param); });

}  // namespace
}  // namespace daydream
