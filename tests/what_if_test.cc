#include "report/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/text.h"
#include "report/causes.h"
#include "report/diff.h"
#include "report/intervals.h"
#include "report/settings.h"
#include "report/summary.h"
#include "simulator/simulate.h"
#include "trace/importer.h"

namespace daydream {
namespace {

BuiltGraph Example() {
  auto trace = ImportFile(DAYDREAM_SOURCE_DIR "/examples/launch-bound-synthetic.ddtrace");
  EXPECT_TRUE(trace.ok()) << trace.status();
  auto built = BuildGraph(*trace);
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

std::vector<std::vector<Application>> Scenarios(std::vector<std::string> specs) {
  std::vector<std::vector<Application>> out;
  for (const std::string& spec : specs) out.push_back(*ParseScenario(spec));
  return out;
}

WhatIf Ask(const BuiltGraph& built, std::vector<std::string> specs, WhatIfOptions options = {}) {
  auto replay = CheckReplay(built, nullptr);
  EXPECT_TRUE(replay.ok());
  auto result = PredictAll(built, *replay, Scenarios(std::move(specs)), options);
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

TEST(WhatIf, ListsBaselineThenSinglesThenCombinations) {
  BuiltGraph built = Example();
  WhatIf result = Ask(built, {"prefetch,free-launch", "free-gpu"});
  std::vector<std::string> names;
  for (const Prediction& p : result.predictions) names.push_back(p.name);
  EXPECT_EQ(names.front(), "baseline");
  EXPECT_EQ(names.back(), "prefetch + free-launch");
  EXPECT_THAT(names, testing::UnorderedElementsAre("baseline", "prefetch", "free-launch",
                                                   "free-gpu", "prefetch + free-launch"));
  EXPECT_EQ(result.predictions[result.main].name, "free-gpu");
}

TEST(WhatIf, CausesSumToTheDifferenceToTheNanosecond) {
  BuiltGraph built = Example();
  WhatIf result = Ask(built, {"prefetch,graphs,free-gpu", "pin-memory,free-launch"});
  for (const Prediction& p : result.predictions) {
    ASSERT_TRUE(p.error.ok()) << p.name << ": " << p.error;
    Duration sum;
    for (const CauseShare& c : p.causes) sum += c.delta;
    EXPECT_EQ(sum.ns, (p.step - result.predictions[0].step).ns) << p.name;
  }
}

TEST(WhatIf, TheSameAnswerWithAnyNumberOfThreads) {
  BuiltGraph built = Example();
  WhatIf one = Ask(built, {"prefetch,graphs"}, {.jobs = 1});
  WhatIf four = Ask(built, {"prefetch,graphs"}, {.jobs = 4});
  ASSERT_EQ(one.predictions.size(), four.predictions.size());
  for (size_t i = 0; i < one.predictions.size(); ++i) {
    EXPECT_EQ(one.predictions[i].name, four.predictions[i].name);
    EXPECT_EQ(one.predictions[i].step.ns, four.predictions[i].step.ns);
    EXPECT_EQ(one.predictions[i].low, four.predictions[i].low);
  }
}

TEST(WhatIf, OneScenarioMayFailWhileOthersDoNot) {
  BuiltGraph built = Example();
  WhatIf result = Ask(built, {"free-comm", "free-gpu"});
  size_t failed = 0;
  for (const Prediction& p : result.predictions) {
    if (p.error.ok()) continue;
    ++failed;
    EXPECT_EQ(DiagnosticOf(p.error).code, "E0601");
  }
  EXPECT_EQ(failed, 1u);
  EXPECT_TRUE(result.predictions[result.main].error.ok());
}

TEST(WhatIf, CombinationsLeaveOutPartsThatFindNothing) {
  BuiltGraph built = Example();
  WhatIf result = Ask(built, {"free-comm,free-gpu"});
  const Prediction& both = result.predictions[result.main];
  ASSERT_TRUE(both.error.ok());
  EXPECT_EQ(both.left_out, std::vector<std::string>{"free-comm"});
  for (const Prediction& p : result.predictions) {
    if (p.name == "free-gpu") {
      EXPECT_EQ(p.step.ns, both.step.ns);
    }
  }
}

TEST(WhatIf, BoundsHaveNoInterval) {
  WhatIf result = Ask(Example(), {"free-gpu"});
  const Prediction& p = result.predictions[result.main];
  EXPECT_TRUE(p.bound);
  EXPECT_FALSE(p.low.has_value());
}

TEST(WhatIf, IntervalsHoldThePrediction) {
  WhatIf result = Ask(Example(), {"prefetch"});
  const Prediction& p = result.predictions[result.main];
  ASSERT_TRUE(p.low.has_value());
  EXPECT_LE(*p.low, p.step);
  EXPECT_LE(p.step, *p.high);
}

TEST(WhatIf, TheGraphAskedAboutStaysAsItWas) {
  BuiltGraph built = Example();
  Duration before = StepTime(built.graph, *Simulate(built.graph));
  Ask(built, {"graphs,free-gpu"});
  EXPECT_EQ(StepTime(built.graph, *Simulate(built.graph)).ns, before.ns);
}

TEST(Causes, SplitInProportionAndCapAtTheirOwnChange) {
  std::vector<Editor::Cause> causes = {{"a", Duration::Us(0), Duration::Us(-300)},
                                       {"b", Duration::Us(0), Duration::Us(-100)}};
  BoundBy gpu{Duration::Us(1), {}, {}, {}};
  auto half = SplitByCause(Duration::Us(-200), "x", causes, 1, gpu);
  ASSERT_EQ(half.size(), 2u);
  EXPECT_EQ(half[0].delta.ns, -150'000);
  EXPECT_EQ(half[1].delta.ns, -50'000);
  auto more = SplitByCause(Duration::Us(-500), "x", causes, 1, gpu);
  ASSERT_EQ(more.size(), 3u);
  EXPECT_EQ(more[0].delta.ns, -300'000);
  EXPECT_EQ(more[2].opt, "(joint)");
  EXPECT_EQ(more[2].delta.ns, -100'000);
}

TEST(Causes, WorkOffTheCriticalPathGetsNothing) {
  std::vector<Editor::Cause> causes = {{"host", Duration::Us(-300), {}},
                                       {"gpu", {}, Duration::Us(-100)}};
  BoundBy gpu{Duration::Us(1), {}, {}, {}};
  auto shares = SplitByCause(Duration::Us(-100), "x", causes, 1, gpu);
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(shares[0].what, "gpu");
}

TEST(Intervals, WordsFollowTheWrittenRule) {
  ReplayCheck replay;
  replay.measured = replay.simulated = Duration::Ms(100);
  replay.steps = 5;
  Prediction p;
  p.step = Duration::Ms(80);
  SetInterval(p, replay, {});
  EXPECT_EQ(p.confidence, Confidence::kHigh);
  std::vector<ParamEnds> wide = {{Duration::Ms(70), Duration::Ms(95)}};
  SetInterval(p, replay, wide);
  EXPECT_EQ(p.low->ns, Duration::Ms(70).ns);
  EXPECT_EQ(p.high->ns, Duration::Ms(95).ns);
  EXPECT_EQ(p.confidence, Confidence::kLow);
  replay.simulated = Duration::Ms(105);
  SetInterval(p, replay, {});
  EXPECT_EQ(p.confidence, Confidence::kLow);
}

TEST(Settings, FillOpenParametersOnly) {
  auto scenarios = Scenarios({"prefetch", "prefetch(workers=8)"});
  auto setting = ParseSetting("prefetch.workers=2");
  ASSERT_TRUE(setting.ok());
  ASSERT_TRUE(ApplySettings({{*setting}}, scenarios).ok());
  EXPECT_EQ(scenarios[0][0].params["workers"], 2);
  EXPECT_EQ(scenarios[1][0].params["workers"], 8);
  EXPECT_FALSE(ParseSetting("prefetch=2").ok());
  EXPECT_FALSE(ParseSetting("prefetch.wrokers=2").ok());
  auto unused = Scenarios({"free-gpu"});
  EXPECT_EQ(DiagnosticOf(ApplySettings({{*setting}}, unused)).code, "E0108");
}

TEST(Summary, BusyAndIdleMakeTheStep) {
  BuiltGraph built = Example();
  auto timeline = Simulate(built.graph, {.blockers = true});
  for (GroupBy by : {GroupBy::kClass, GroupBy::kOp, GroupBy::kKernel, GroupBy::kLayer,
                     GroupBy::kPhase, GroupBy::kStream}) {
    Summary s = Summarize(built.graph, *timeline, by);
    EXPECT_EQ((s.gpu_busy + s.gpu_idle).ns, s.window.ns);
    Duration time, path;
    for (const Group& g : s.groups) {
      time += g.time;
      path += g.path;
    }
    // Integer division per group loses less than a nanosecond each.
    auto slack = static_cast<double>(s.groups.size());
    EXPECT_NEAR(static_cast<double>(time.ns), static_cast<double>(s.gpu_time.ns), slack);
    Duration all = s.path.gpu + s.path.cpu + s.path.comm + s.path.data;
    EXPECT_NEAR(static_cast<double>(path.ns), static_cast<double>(all.ns), slack + 4);
    EXPECT_NEAR(static_cast<double>(all.ns), static_cast<double>(s.window.ns), 4);
  }
}

TEST(Summary, OthersKeepTheTotal) {
  std::vector<Group> groups;
  for (int i = 0; i < 10; ++i) {
    groups.push_back({fmt::format("k{}", i), Duration::Us(10 - i), 1, Duration::Us(1)});
  }
  auto cut = WithOthers(groups, 3);
  ASSERT_EQ(cut.size(), 4u);
  EXPECT_EQ(cut[3].name, "[7 others]");
  EXPECT_EQ(cut[3].time.ns, 28'000);
  EXPECT_EQ(WithOthers(groups, 9).size(), 10u);
}

TEST(Diff, ATraceEqualsItself) {
  BuiltGraph built = Example();
  Diff diff = Compare(built, built, GroupBy::kKernel);
  EXPECT_EQ(diff.step.before.ns, diff.step.after.ns);
  for (const DiffRow& r : diff.rows) {
    EXPECT_EQ(r.before.ns, r.after.ns);
    EXPECT_FALSE(r.added || r.gone);
    EXPECT_EQ(r.p, 1) << r.name;
  }
}

TEST(Diff, WelchAgreesWithTheTextbook) {
  // t = -2.85295 with 27.8873 degrees of freedom; the tail by Simpson's rule on the density.
  std::vector<double> a = {27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1,
                           21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4};
  std::vector<double> b = {27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0,
                           24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 24.4};
  EXPECT_NEAR(WelchP(a, b), 0.00807194, 1e-7);
  EXPECT_EQ(WelchP(a, a), 1);
  std::vector<double> one = {1};
  EXPECT_EQ(WelchP(one, a), 1);
}

}  // namespace
}  // namespace daydream
