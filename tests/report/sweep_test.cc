#include "report/questions/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/questions/pareto.h"
#include "report/questions/sweep_values.h"
#include "tests/graph/random_graph.h"

namespace daydream {
namespace {

using testing::ElementsAre;

std::vector<std::string> Specs(const std::string& spec) {
  auto plan = PlanSweep({&spec, 1});
  EXPECT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> out;
  for (const SweepPoint& p : plan->points) out.push_back(p.spec);
  return out;
}

std::string CodeOf(const std::string& spec) {
  auto plan = PlanSweep({&spec, 1});
  return plan.ok() ? "" : DiagnosticOf(plan.status()).code;
}

TEST(SweepValues, RangesAndListsBecomeValues) {
  EXPECT_THAT(Specs("f(1..3)"), ElementsAre("f(1)", "f(2)", "f(3)"));
  EXPECT_THAT(Specs("f(n=1..16*4)"), ElementsAre("f(n=1)", "f(n=4)", "f(n=16)"));
  EXPECT_THAT(Specs("f(n=0.1..0.3+0.1)"), ElementsAre("f(n=0.1)", "f(n=0.2)", "f(n=0.3)"));
  EXPECT_THAT(Specs("f(5GB/s..15GB/s+5GB/s)"), ElementsAre("f(5GB/s)", "f(10GB/s)", "f(15GB/s)"));
  EXPECT_THAT(Specs("f(10..30ms+10)"), ElementsAre("f(10ms)", "f(20ms)", "f(30ms)"));
  EXPECT_THAT(Specs("f(x2..x8*2)"), ElementsAre("f(x2)", "f(x4)", "f(x8)"));
  EXPECT_THAT(Specs("f(d={bf16, fp16})"), ElementsAre("f(d=bf16)", "f(d=fp16)"));
  EXPECT_THAT(Specs("f({1,4..8+4})"), ElementsAre("f(1)", "f(4)", "f(8)"));
}

TEST(SweepValues, WhatIsNoRangeStaysAsItIs) {
  for (const char* spec :
       {"f", "f,g(1)", "f(a..b)", "f(./x.yaml)", "f(select='a..b')", "f(select=a{2}, 1)", "f(1",
        "f(select='1..2')", "", "f(select=layer1..2.conv)"}) {
    EXPECT_THAT(Specs(spec), ElementsAre(spec));
  }
}

TEST(SweepValues, SeveralAreCrossedAndTheLastOneChangesFastest) {
  const std::string spec = "f(a=1..2),g(c,b={x,y})";
  auto plan = PlanSweep({&spec, 1});
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(Specs(spec), ElementsAre("f(a=1),g(c,b=x)", "f(a=1),g(c,b=y)", "f(a=2),g(c,b=x)",
                                       "f(a=2),g(c,b=y)"));
  ASSERT_EQ(plan->axes[0].size(), 2u);
  EXPECT_EQ(plan->axes[0][0].name, "f.a");
  EXPECT_EQ(plan->axes[0][1].name, "g.b");
  EXPECT_THAT(plan->points[2].values, ElementsAre("2", "x"));
}

TEST(SweepValues, AxesOfOneSweepHaveDifferentNames) {
  const std::string spec = "f(1..2),f(1..2),f(n=1..2),f(n=1..2)";
  auto plan = PlanSweep({&spec, 1});
  ASSERT_TRUE(plan.ok());
  std::vector<std::string> names;
  for (const SweepAxis& axis : plan->axes[0]) names.push_back(axis.name);
  EXPECT_THAT(names, ElementsAre("f.1", "f#2.1", "f.n", "f#2.n"));
}

TEST(SweepValues, NamesOfAxesDoNotHangOnTheSpelling) {
  const std::vector<std::string> specs = {"prefetch(1..2)", "prefetch(workers=1..2)"};
  auto plan = PlanSweep(specs);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->axes[0][0].name, "prefetch.workers");
  EXPECT_EQ(plan->axes[1][0].name, "prefetch.workers");
}

TEST(SweepValues, QuotedPathsAreNames) {
  EXPECT_THAT(Specs("'./a (1..2), b.yaml'(n=1..2)"),
              ElementsAre("'./a (1..2), b.yaml'(n=1)", "'./a (1..2), b.yaml'(n=2)"));
  EXPECT_THAT(Specs("'./a"), ElementsAre("'./a"));
}

TEST(SweepValues, RangesWithoutAnEndAreRefused) {
  for (const char* spec :
       {"f(8..1)", "f(1..8+0)", "f(1..8*1)", "f(0..8*2)", "f(1ms..8us)", "f(x{1,2})", "f(n=x{1,2})",
        "f({1,2}ms)", "f(1ms..8ms*2ms)", "f({1,,2})", "f({})", "f(1..9e9)", "f(1..1e300*1.001)",
        "f(1..1000),f(1..1000)", "f(1..8+1e-300)"}) {
    EXPECT_EQ(CodeOf(spec), "E0701") << spec;
  }
}

SweepRow Row(size_t index) {
  return {.index = index,
          .step = Duration::Us(10 + static_cast<int64_t>(index)),
          .steps = {Duration::Us(9), Duration::Us(11 + 2 * static_cast<int64_t>(index))},
          .low = Duration::Us(9),
          .high = Duration::Us(99),
          .least_speedup = 1.0 / 3,
          .most_speedup = 3,
          .bound = index % 2 == 1,
          .confidence = Confidence::kMedium,
          .memory = -5,
          .examples = index == 1 ? 1.0 / 3 : 1,
          .left_out = index == 1 ? "amp, prefetch(2)" : "",
          .between = index == 1};
}

TEST(SweepRows, ReadBackAsTheyWereWritten) {
  SweepRow failed{.index = 7, .code = "E0601", .error = "f: nothing\tin this trace\nmatches"};
  failed.error = "f: nothing in this trace matches";
  for (const SweepRow& row : {Row(0), Row(1), SweepRow{.index = 2}, failed}) {
    auto read = ParseSweepRow(FormatSweepRow(row));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(*read, row);
  }
}

// A row of a step in us and a change of memory in bytes; nothing: not known.
SweepRow Costs(int64_t us, std::optional<int64_t> memory) {
  return {.step = Duration::Us(us), .memory = memory};
}

TEST(Pareto, KeepsWhatNoOtherRowNorTheRecordedStepBeats) {
  std::vector<SweepRow> rows = {Costs(90, 5),  Costs(80, 7),  Costs(80, 6),  Costs(120, -3),
                                Costs(99, -1), Costs(110, 0), Costs(70, {}), Costs(80, 6)};
  rows.push_back(Costs(1, -9));
  rows.back().bound = true;
  rows.push_back({.code = "E0601", .error = "nothing"});
  const auto goals = ParseGoals("step,memory");
  ASSERT_TRUE(goals.ok());
  // (110, 0) is beaten by the recorded (100, 0), (80, 7) by (80, 6), of which there are two.
  EXPECT_EQ(OnFront(rows, Duration::Us(100), *goals),
            (std::vector<bool>{true, false, true, true, true, false, false, true, false, false}));
  // One goal: the shortest, of those that are known.
  EXPECT_EQ(
      OnFront(rows, Duration::Us(100), *ParseGoals("step")),
      (std::vector<bool>{false, false, false, false, false, false, true, false, false, false}));
}

TEST(Pareto, ALongerStepOfMoreExamplesIsNoWorse) {
  std::vector<SweepRow> rows = {Costs(100, 0), Costs(150, 0)};
  rows[1].examples = 2;
  EXPECT_EQ(OnFront(rows, Duration::Us(100), *ParseGoals("step")),
            (std::vector<bool>{false, true}));
}

TEST(Pareto, GoalsAreStepAndMemoryOnceEach) {
  for (const char* text : {"", "speed", "step,", "step,step", "memory step"}) {
    const auto goals = ParseGoals(text);
    ASSERT_FALSE(goals.ok()) << text;
    EXPECT_EQ(DiagnosticOf(goals.status()).code, "E0712");
  }
}

TEST(SweepRows, EveryCutOfAJournalIsReadUpToItsLastWholeLine) {
  const SweepHead head{.key = 42,
                       .trace = "t",
                       .specs = {"f(1..3)", "g"},
                       .parts = {{"--steps", 7}, {"the content of a b.yaml", 8}},
                       .measured = Duration::Us(3),
                       .baseline = Duration::Us(4),
                       .step_name = "steady step",
                       .steps = {Duration::Us(3), Duration::Us(5)},
                       .findings = {{.kind = FindingKind::kOneTime,
                                     .about = About::kStep,
                                     .text = "it happens once",
                                     .where = "op",
                                     .time = Duration::Us(1),
                                     .share = 0.1,
                                     .fix = "later"}}};
  std::string text = FormatSweepHead(head);
  const size_t first = text.size();
  for (size_t i = 0; i < 3; ++i)
    text += SealLine(FormatSweepRow(Row(i)), SealOfRows(text.substr(0, first)));
  size_t most = 0;
  for (size_t size = 0; size <= text.size(); ++size) {
    auto read = ParseSweep(text.substr(0, size), "j");
    ASSERT_EQ(read.ok(), size >= first) << size;
    if (!read.ok()) {
      EXPECT_EQ(DiagnosticOf(read.status()).code, "E0703");
      continue;
    }
    EXPECT_EQ(read->head, head);
    EXPECT_LE(read->whole, size);
    EXPECT_GE(read->rows.size(), most);
    most = read->rows.size();
    for (size_t i = 0; i < read->rows.size(); ++i) EXPECT_EQ(read->rows[i], Row(i));
  }
  EXPECT_EQ(most, 3u);
}

TEST(SweepRows, DamagedLinesAreRefusedWithTheirPlace) {
  const std::string head = FormatSweepHead({});
  const uint64_t seal = SealOfRows(head);
  EXPECT_TRUE(
      ParseSweep(head + SealLine("1\t1\t-\t-\t0\thigh\t-\t1\t\t\t\t\t-\t-\t0", seal), "j").ok());
  for (const char* line :
       {"x", "", "1", "-1\t1\t-\t-\t0\thigh\t-\t1\t\t\t\t\t-\t-\t0",
        "1\t1\t-\t-\t2\thigh\t-\t1\t\t\t\t\t-\t-\t0", "1\t-1\t-\t-\t0\thigh\t-\t1\t\t\t\t\t-\t-\t0",
        "1\t1\t-\t-\t0\tsure\t-\t1\t\t\t\t\t-\t-\t0", "1\t1\tx\t-\t0\thigh\t-\t1\t\t\t\t\t-\t-\t0",
        "1\t1\t-\t-\t0\thigh\t-\t0\t\t\t\t\t-\t-\t0",
        "1\t1\t-\t-\t0\thigh\t-\tnan\t\t\t\t\t-\t-\t0",
        "1\t1\t-\t-\t0\thigh\t-\t1\t\t\t\t1 x\t-\t-\t0",
        "1\t1\t-\t-\t0\thigh\t-\t1\t\t\t\t\t-1\t-\t0", "1\t1\t-\t-\t0\thigh\t-\t1\t\t\t\t\t-\t-\t2",
        "99999999999999999999\t1\t-\t-\t0\thigh\t-\t1\t\t\t\t\t-\t-\t0"}) {
    auto read = ParseSweep(head + SealLine(line, seal), "j");
    ASSERT_FALSE(read.ok()) << line;
    EXPECT_EQ(DiagnosticOf(read.status()).where.substr(0, 2), "j:");
  }
}

TEST(SweepRows, RowsOfAnotherSweepAreNoneOfThisOne) {
  const std::string row = FormatSweepRow(Row(0));
  const std::string head = FormatSweepHead({.key = 42});
  EXPECT_TRUE(ParseSweep(head + SealLine(row, SealOfRows(head)), "j").ok());
  const uint64_t other = SealOfRows(FormatSweepHead({.key = 43}));
  auto read = ParseSweep(head + SealLine(row, other), "j");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(DiagnosticOf(read.status()).code, "E0703");
}

// Without its first --opt, a row would be taken for one of the second.
TEST(SweepRows, AHeadThatLostALineHasNoRows) {
  const std::string head = FormatSweepHead({.key = 42, .specs = {"f(1..3)", "g(1..3)"}});
  const std::string row = SealLine(FormatSweepRow(Row(0)), SealOfRows(head));
  ASSERT_TRUE(ParseSweep(head + row, "j").ok());
  size_t lines = 0;
  for (size_t at = head.find('\n') + 1; at + 1 < head.size(); at = head.find('\n', at) + 1) {
    std::string less = head;
    less.erase(at, head.find('\n', at) + 1 - at);
    const auto read = ParseSweep(less + row, "j");
    ASSERT_FALSE(read.ok()) << less;
    EXPECT_EQ(DiagnosticOf(read.status()).code, "E0703");
    ++lines;
  }
  EXPECT_EQ(lines, 8u);
}

TEST(SweepRows, WhatDiffersIsNamed) {
  const SweepHead one{.key = 1, .trace = "a", .parts = {{"--steps", 1}, {"the graph", 2}}};
  SweepHead other = one;
  EXPECT_EQ(WhatDiffers(one, other), "");
  other.parts[1].hash = 3;
  EXPECT_EQ(WhatDiffers(one, other), "the graph");
  other.parts.push_back({"--rank", 1});
  EXPECT_EQ(WhatDiffers(other, one), "the graph, --rank");
  EXPECT_EQ(
      WhatDiffers(one, {.key = 1, .trace = "a", .parts = one.parts, .baseline = Duration::Ns(1)}),
      "the recorded or replayed step");
}

TEST(SweepRows, GraphsThatDifferHaveDifferentKeys) {
  const Graph graph = RandomGraph(1);
  Graph other = graph;
  EXPECT_EQ(HashOf(graph), HashOf(other));
  other.mutable_task(TaskId(3)).duration += Duration::Ns(1);
  EXPECT_NE(HashOf(graph), HashOf(other));
  other = graph;
  other.mutable_edges()[0].lag += Duration::Ns(1);
  EXPECT_NE(HashOf(graph), HashOf(other));
  EXPECT_NE(HashOf("ab", HashOf("c", 0)), HashOf("b", HashOf("ca", 0)));
}

}  // namespace
}  // namespace daydream
