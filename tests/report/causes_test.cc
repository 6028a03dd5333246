// Causes sum to the difference, whatever the trace and the scenario, and blame what they should.
#include "report/predict/causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "graph/text.h"
#include "report/predict/what_if.h"
#include "simulator/simulate.h"
#include "tests/graph/random_graph.h"
#include "tests/real_traces.h"
#include "trace/importer.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

Duration StepOf(const Graph& graph) { return StepTime(graph, Simulate(graph).value()); }

Duration Sum(const std::vector<CauseShare>& shares) {
  Duration sum;
  for (const CauseShare& s : shares) sum += s.delta;
  return sum;
}

CauseJournal JournalOf(std::string opt, const Editor& edit) {
  return {.opt = std::move(opt),
          .causes = {edit.causes().begin(), edit.causes().end()},
          .edits = {edit.edits().begin(), edit.edits().end()},
          .edge_edits = {edit.edge_edits().begin(), edit.edge_edits().end()}};
}

std::map<std::string, int64_t> Blame(const Graph& before, const Graph& after,
                                     std::vector<CauseJournal> journals) {
  CauseQuestion q{&before, &after, StepOf(before), StepOf(after), journals};
  std::map<std::string, int64_t> out;
  for (const CauseShare& s : ShareByCause(q)) out[s.what] += s.delta.ns;
  return out;
}

// A host that launches two kernels of 10 us on one stream; launches take 1 us.
Graph TwoKernels() {
  return ParseGraph(R"(
lane cpu thread
lane gpu0.7 stream
c1 cpu call 1us "launch"
c2 cpu call 1us "launch"
k1 gpu0.7 kernel 10us "a" after c1 launch
k2 gpu0.7 kernel 10us "b" after c2 launch
)")
      .value();
}

TEST(Causes, EachGetsWhatItChangedWhenTheyDoNotMeet) {
  Graph before = TwoKernels(), after = before;
  Editor edit(after);
  edit.BeginCause("a faster");
  edit.SetDuration(TaskId(2), Duration::Us(6));
  edit.BeginCause("b faster");
  edit.SetDuration(TaskId(3), Duration::Us(9));
  edit.Finish();
  EXPECT_THAT(
      Blame(before, after, {JournalOf("x", edit)}),
      testing::ElementsAre(testing::Pair("a faster", -4000), testing::Pair("b faster", -1000)));
}

TEST(Causes, WhatIsHiddenGetsNothing) {
  // Two streams beside each other: the one of 20 us hides that of 10.
  Graph before = ParseGraph(R"(
lane gpu0.7 stream
lane gpu0.8 stream
a gpu0.7 kernel 20us "a"
b gpu0.8 kernel 10us "b"
)")
                     .value();
  Graph after = before;
  Editor edit(after);
  edit.BeginCause("long");
  edit.SetDuration(TaskId(0), Duration::Us(15));
  edit.BeginCause("hidden");
  edit.SetDuration(TaskId(1), Duration::Us(2));
  edit.Finish();
  auto blame = Blame(before, after, {JournalOf("x", edit)});
  EXPECT_EQ(blame["long"], -5000);
  EXPECT_EQ(blame["hidden"], 0);
}

TEST(Causes, ThatNeedEachOtherShareTheGain) {
  // Both of two equal streams have to shrink; each order gives all to the second one.
  Graph before = ParseGraph(R"(
lane gpu0.7 stream
lane gpu0.8 stream
a gpu0.7 kernel 20us "a"
b gpu0.8 kernel 20us "b"
)")
                     .value();
  Graph after = before;
  Editor edit(after);
  edit.BeginCause("one");
  edit.SetDuration(TaskId(0), Duration::Us(10));
  edit.BeginCause("other");
  edit.SetDuration(TaskId(1), Duration::Us(10));
  edit.Finish();
  EXPECT_THAT(Blame(before, after, {JournalOf("x", edit)}),
              testing::ElementsAre(testing::Pair("one", -5000), testing::Pair("other", -5000)));
}

TEST(Causes, InsertedWorkAndItsEdgesAreOffTogether) {
  Graph before = TwoKernels(), after = before;
  Editor edit(after);
  edit.BeginCause("a faster");
  edit.SetDuration(TaskId(2), Duration::Us(4));
  edit.BeginCause("cast added");
  TaskId call = edit.InsertAfter(
      TaskId(0), {.duration = Duration::Us(30), .lane = LaneId(0), .kind = TaskKind::kCall});
  TaskId cast = edit.InsertAfter(
      TaskId(2), {.duration = Duration::Us(1), .lane = LaneId(1), .kind = TaskKind::kKernel});
  edit.AddEdge(call, cast, {}, Rule::kLaunch);
  edit.Finish();
  // Before 21 us. Cast first: launched at 31, b behind it at 42: +21; then a gains nothing. a
  // first: -6, then the cast +27.
  EXPECT_THAT(
      Blame(before, after, {JournalOf("x", edit)}),
      testing::ElementsAre(testing::Pair("a faster", -3000), testing::Pair("cast added", 24000)));
}

TEST(Causes, EdgesThatGoBelongToTheirCause) {
  Graph before = ParseGraph(R"(
lane cpu thread
lane gpu0.7 stream
c1 cpu call 1us "launch"
k1 gpu0.7 kernel 50us "a" after c1 launch
s1 cpu call 1us "sync" until k1 hostwait
c2 cpu call 30us "launch"
k2 gpu0.7 kernel 10us "b" after c2 launch
)")
                     .value();
  Graph after = before;
  Editor edit(after);
  edit.BeginCause("no wait");
  edit.DropEdges([](const Graph&, const Edge& e) { return e.rule == Rule::kHostWait; });
  edit.BeginCause("b faster");
  edit.SetDuration(TaskId(4), Duration::Us(5));
  edit.Finish();
  EXPECT_THAT(
      Blame(before, after, {JournalOf("x", edit)}),
      testing::ElementsAre(testing::Pair("b faster", -5000), testing::Pair("no wait", -30000)));
}

TEST(Causes, MovedWorkIsItsCauses) {
  Graph before = ParseGraph(R"(
lane gpu0.7 stream
lane gpu0.8 stream
a gpu0.7 kernel 20us "a"
b gpu0.7 kernel 10us "b"
)")
                     .value();
  Graph after = before;
  Editor edit(after);
  edit.BeginCause("another stream");
  edit.Move(TaskId(1), LaneId(1), TaskId::None());
  edit.BeginCause("a faster");
  edit.SetDuration(TaskId(0), Duration::Us(15));
  edit.Finish();
  EXPECT_THAT(Blame(before, after, {JournalOf("x", edit)}),
              testing::ElementsAre(testing::Pair("a faster", -5000),
                                   testing::Pair("another stream", -10000)));
}

// Random edits of random graphs: all verbs, several applications.
void EditAtRandom(Editor& edit, const std::function<uint64_t()>& random) {
  auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (int i = 0; i < 12; ++i) {
    Graph& g = edit.graph();
    edit.BeginCause(fmt::format("cause {}", below(4)));
    TaskId t(below(g.size()));
    if (g.task(t).removed || g.task(t).kind == TaskKind::kWait) continue;
    switch (below(7)) {
      case 0:
        edit.SetDuration(t, Duration::Ns(static_cast<int64_t>(below(900))));
        break;
      case 1:
        edit.Scale(std::vector<TaskId>{t}, 0.5);
        break;
      case 2:
        edit.SetGap(t, Duration::Ns(static_cast<int64_t>(below(100))));
        break;
      case 3:
        edit.Remove(std::vector<TaskId>{t});
        break;
      case 4:
        edit.InsertAfter(t, {.duration = Duration::Ns(static_cast<int64_t>(below(500))),
                             .lane = g.task(t).lane,
                             .step = g.task(t).step,
                             .kind = g.task(t).kind});
        break;
      case 5:
        if (!g.edges().empty()) edit.SetLag(below(g.edges().size()), Duration::Ns(77));
        break;
      default: {
        size_t unlucky = g.edges().empty() ? 0 : below(g.edges().size()), at = 0;
        edit.DropEdges([&](const Graph&, const Edge&) { return at++ == unlucky; });
      }
    }
  }
}

TEST(CausesProperty, SumIsExactOnRandomGraphsAndEdits) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 engine(seed);
    Graph before =
        RandomGraph(seed, {.tasks = 4 + seed % 60, .priority_lanes = seed % 5 == 0 ? 1u : 0u});
    Graph after = before;
    std::vector<CauseJournal> journals;
    for (size_t k = 0; k <= seed % 3; ++k) {
      Editor edit(after);
      EditAtRandom(edit, [&] { return engine(); });
      edit.Finish();
      journals.push_back(JournalOf(fmt::format("opt{}", k), edit));
    }
    Duration a = StepOf(before), b = StepOf(after);
    CauseQuestion q{&before, &after, a, b, journals};
    EXPECT_EQ(Sum(ShareByCause(q)), b - a);
  }
}

constexpr std::string_view kScenarios[] = {
    "amp,fuse",      "graphs,amp",      "prefetch,pin-memory,fuse",
    "fuse,graphs",   "amp(dtype=fp16)", "speedup(kind:kernel, 2x),prefetch",
    "amp,free-host", "free-gpu,graphs", "remove(kind:memcpy),amp"};

void CheckTrace(const BuiltGraph& built) {
  auto replay = CheckReplay(built, nullptr);
  ASSERT_TRUE(replay.ok());
  std::vector<std::vector<Application>> scenarios;
  for (std::string_view spec : kScenarios) scenarios.push_back(ParseScenario(spec).value());
  auto result = PredictAll(built, *replay, scenarios, {.alone = true, .intervals = false});
  ASSERT_TRUE(result.ok());
  for (const Prediction& p : result->predictions) {
    if (!p.error.ok()) continue;
    EXPECT_EQ(Sum(p.causes), p.step - result->predictions[0].step) << p.name;
  }
}

class AnyTrace : public testing::TestWithParam<std::string> {};

TEST_P(AnyTrace, CausesSumToTheNanosecond) {
  auto trace = ImportFile(GetParam());
  if (!trace.ok()) GTEST_SKIP() << Message(trace.status());
  auto built = BuildGraph(*trace);
  if (!built.ok()) GTEST_SKIP() << Message(built.status());
  CheckTrace(*built);
}

std::vector<std::string> AllTraces() {
  std::vector<std::string> paths;
  std::string examples = DAYDREAM_SOURCE_DIR "/examples";
  for (const auto& entry : std::filesystem::directory_iterator(examples)) {
    if (entry.path().extension() == ".ddtrace") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& name : RealTraces()) paths.push_back((RealTraceFolder() / name).string());
  return paths;
}

INSTANTIATE_TEST_SUITE_P(All, AnyTrace, testing::ValuesIn(AllTraces()), [](const auto& info) {
  const std::string file = std::filesystem::path(info.param).filename().string();
  return fmt::format("{}_{}", info.index, TestNameOf(file));
});

}  // namespace
}  // namespace daydream
