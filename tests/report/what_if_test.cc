#include "report/predict/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "graph/text.h"
#include "report/predict/intervals.h"
#include "report/predict/residuals.h"
#include "report/predict/settings.h"
#include "report/predict/step_spread.h"
#include "report/questions/diff.h"
#include "report/summary.h"
#include "simulator/simulate.h"
#include "tests/example_graph.h"
#include "tests/real_traces.h"
#include "tests/report/exact_replay.h"
#include "trace/importer.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

std::vector<std::vector<Application>> Scenarios(const std::vector<std::string>& specs) {
  std::vector<std::vector<Application>> out;
  out.reserve(specs.size());
  for (const std::string& spec : specs) out.push_back(*ParseScenario(spec));
  return out;
}

WhatIf Ask(const BuiltGraph& built, const std::vector<std::string>& specs,
           const WhatIfOptions& options = {}) {
  auto replay = CheckReplay(built, nullptr);
  EXPECT_TRUE(replay.ok());
  auto result = PredictAll(built, *replay, Scenarios(specs), options);
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

std::vector<std::string> Names(const WhatIf& result) {
  std::vector<std::string> names;
  for (const Prediction& p : result.predictions) names.push_back(p.name);
  return names;
}

TEST(WhatIf, ListsBaselineThenSinglesThenCombinations) {
  BuiltGraph built = Example("launch-bound");
  WhatIf result = Ask(built, {"prefetch,free-launch", "free-gpu"});
  const std::vector<std::string> names = Names(result);
  EXPECT_EQ(names.front(), "baseline");
  EXPECT_EQ(names.back(), "prefetch + free-launch");
  EXPECT_THAT(names, testing::UnorderedElementsAre("baseline", "prefetch", "free-launch",
                                                   "free-gpu", "prefetch + free-launch"));
  EXPECT_EQ(result.predictions[result.main].name, "free-gpu");
}

// A transform that counts how often it is applied; one for each Place.
template <int Place>
struct Counted {
  static inline const Transform* original = nullptr;
  static inline int applies = 0;
  static Transform Of(const Transform& transform) {
    original = &transform;
    Transform counted = transform;
    counted.apply = [](const Params& params, Editor& edit) {
      ++applies;
      return original->apply(params, edit);
    };
    return counted;
  }
};

// docs/performance.md: ends of open parameters are columns, and need no edits of their own.
TEST(WhatIf, EachOptimizationIsAppliedOnceAloneAndOnceTogether) {
  std::vector<std::vector<Application>> scenarios = Scenarios({"amp,fuse"});
  const Transform amp = Counted<0>::Of(*scenarios[0][0].transform);
  const Transform fuse = Counted<1>::Of(*scenarios[0][1].transform);
  scenarios[0][0].transform = &amp, scenarios[0][1].transform = &fuse;
  const BuiltGraph built = Example("resnet50");
  const auto result = PredictAll(built, CheckReplay(built, nullptr).value(), scenarios, {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(Counted<0>::applies, 2);
  EXPECT_EQ(Counted<1>::applies, 2);
}

TEST(WhatIf, ABaselineWhoseCheckFailsIsNotCalledMeasured) {
  const BuiltGraph built = Example("launch-bound");
  auto replay = CheckReplay(built, nullptr);
  ASSERT_TRUE(replay.ok());
  for (const double error : {0.05, 0.2}) {
    replay->repeated = StepTest{.error = error};
    auto result = PredictAll(built, *replay, {}, {});
    ASSERT_TRUE(result.ok());
    const Confidence expected = error > 0.1 ? Confidence::kLow : Confidence::kMeasured;
    EXPECT_EQ(result->predictions[0].confidence, expected) << error;
  }
}

// Its step was measured, and is exactly as long as itself.
TEST(WhatIf, WhatChangesNothingIsAnsweredAsTheBaseline) {
  const WhatIf result =
      Ask(Example("launch-bound"), {"speedup(kernel:.,by=1)", "speedup(kernel:.,by=1.5)"});
  const Prediction& base = result.predictions[0];
  for (const Prediction& p : result.predictions) {
    if (p.name == "baseline") continue;
    const bool same = p.name.find("1.5") == std::string::npos;
    EXPECT_EQ(p.low == base.low && p.high == base.high, same) << p.name;
    EXPECT_EQ(p.least_speedup.has_value(), !same);
    EXPECT_EQ(p.confidence == base.confidence, same);
    if (same) EXPECT_EQ(p.speedup, 1);
  }
}

TEST(WhatIf, CausesSumToTheDifferenceToTheNanosecond) {
  BuiltGraph built = Example("launch-bound");
  WhatIf result = Ask(built, {"prefetch,graphs,free-gpu", "pin-memory,free-launch"});
  for (const Prediction& p : result.predictions) {
    ASSERT_TRUE(p.error.ok()) << p.name << ": " << p.error;
    Duration sum;
    for (const CauseShare& c : p.causes) sum += c.delta;
    EXPECT_EQ(sum.ns, (p.step - result.predictions[0].step).ns) << p.name;
  }
}

// What the interval depends on is what each optimization changes: that is all that is played where
// nobody reads causes, and nothing of one that is alone.
TEST(WhatIf, WhereNobodyReadsCausesEachOptimizationIsOne) {
  const BuiltGraph built = Example("resnet50");
  const ReplayCheck replay = CheckReplay(built, nullptr).value();
  const auto scenarios = Scenarios({"amp,compile", "gpu(H100)"});
  const auto read = PredictAll(built, replay, scenarios);
  const auto unread = PredictAll(built, replay, scenarios, {.explain_all = false});
  ASSERT_TRUE(read.ok() && unread.ok());
  const Prediction *whole = nullptr, *alone = nullptr;
  for (size_t i = 0; i < unread->predictions.size(); ++i) {
    const Prediction &p = unread->predictions[i], &q = read->predictions[i];
    EXPECT_EQ(std::tie(p.name, p.low, p.high, p.why), std::tie(q.name, q.low, q.high, q.why));
    if (p.name == "amp + compile") whole = &p;
    if (p.name == "amp") alone = &p;
  }
  ASSERT_TRUE(whole != nullptr && alone != nullptr);
  EXPECT_TRUE(alone->causes.empty());
  const auto by_opt = [](const Prediction& p) {
    std::map<std::string, Duration> sums;
    for (const CauseShare& c : p.causes) sums[c.opt] += c.delta;
    return sums;
  };
  const auto with_share = [](const Prediction& p) {
    return std::ranges::count_if(p.causes, [](auto& c) { return c.delta != Duration{}; });
  };
  const Prediction& told = read->predictions[static_cast<size_t>(whole - &unread->predictions[0])];
  EXPECT_EQ(by_opt(*whole), by_opt(told));
  EXPECT_LT(with_share(*whole), with_share(told));
}

// 4 launches are captured by default, and at the upper end of `entry` they are not: then the step
// stays as it is, and the interval reaches far to that.
TEST(WhatIf, AnEndAtWhichAnOptionDoesNothingIsNoEffect) {
  std::string text = "lane cpu0 thread\nlane gpu0.7 stream\nstep \"one\"\n";
  for (int i = 0; i < 4; ++i) {
    text += fmt::format("c{0} cpu0 call 5us gap 95us \"cudaLaunchKernel\" at {1}us\n", i, 100 * i);
    text +=
        fmt::format("k{0} gpu0.7 kernel 2us \"k\" at {1}us after c{0} launch\n", i, 100 * i + 5);
  }
  BuiltGraph built{*ParseGraph(text), {}};
  WhatIf result = Ask(built, {"graphs"});
  const Prediction& p = result.predictions[result.main];
  ASSERT_TRUE(p.error.ok()) << p.error;
  const Duration base = result.predictions[0].step;
  EXPECT_LT(p.step * 3, base * 2);
  EXPECT_GT(*p.high, p.step + (base - p.step).Scaled(0.5));
}

// The first task comes behind the last one.
absl::Status WaitInACircle(const Params&, Editor& edit) {
  const size_t last = edit.graph().size() - 1;
  edit.AddEdge(TaskId(last), TaskId(0));
  return absl::OkStatus();
}

TEST(WhatIf, WorkThatWaitsForItselfIsToldWithTheOptimizationThatMakesItWait) {
  static constexpr Transform kCircle{.name = "circle", .summary = "", .apply = WaitInACircle};
  const BuiltGraph built = Example("launch-bound");
  auto replay = CheckReplay(built, nullptr);
  const Application circle{.transform = &kCircle, .params = *BindParams("circle", {}, {})};
  const std::vector<std::vector<Application>> scenarios = {{circle}};
  auto result = PredictAll(built, *replay, scenarios, {});
  ASSERT_TRUE(result.ok()) << result.status();
  const Diagnostic d = DiagnosticOf(result->predictions[result->main].error);
  EXPECT_EQ(d.code, "E0628");
  EXPECT_THAT(d.what, testing::StartsWith("circle: work waits for itself"));
  EXPECT_THAT(d.fix, testing::HasSubstr("daydream export TRACE --to perfetto"));
}

// Of two open parameters one is read. What counts how often it was applied may do so, as one thread
// plays all.
int applied = 0;
absl::Status ReadOneParameter(const Params& params, Editor& edit) {
  ++applied;
  const auto kernels =
      edit.Select([](const Graph& g, TaskId t) { return g.task(t).kind == TaskKind::kKernel; });
  edit.Scale(kernels, params["read"]);
  return absl::OkStatus();
}

TEST(WhatIf, TheEndsOfAParameterThatNobodyReadsAreNotPlayed) {
  static constexpr ParamSpec kTwo[] = {
      {.name = "read", .fallback = 2, .low = 1.5, .high = 4, .max = 10},
      {.name = "idle", .fallback = 2, .low = 1, .high = 4, .max = 10}};
  static constexpr Transform kSlow{
      .name = "slow", .summary = "", .params = kTwo, .apply = ReadOneParameter};
  const BuiltGraph built = Example("launch-bound");
  auto replay = CheckReplay(built, nullptr);
  const Application slow{.transform = &kSlow, .params = *BindParams("slow", kTwo, {})};
  const std::vector<std::vector<Application>> scenarios = {{slow}};
  applied = 0;
  auto result = PredictAll(built, *replay, scenarios, {.jobs = 1});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(applied, 3);  // as it is, and both ends of what it reads
  EXPECT_LT(*result->predictions[result->main].low, *result->predictions[result->main].high);
}

TEST(WhatIf, WhatNoTableShowsNeedNotBeExplained) {
  const BuiltGraph built = Example("launch-bound");
  const WhatIf all = Ask(built, {"fuse,graphs"});
  const WhatIf one = Ask(built, {"fuse,graphs"}, {.explain_all = false});
  ASSERT_EQ(all.predictions.size(), one.predictions.size());
  size_t explained = 0;
  for (size_t i = 0; i < all.predictions.size(); ++i) {
    const Prediction &a = all.predictions[i], &o = one.predictions[i];
    EXPECT_EQ(o.why_not.has_value(), i == all.main && a.why_not.has_value());
    EXPECT_EQ(std::tie(a.step, a.low, a.high, a.why), std::tie(o.step, o.low, o.high, o.why));
    explained += a.why_not.has_value();
  }
  EXPECT_EQ(explained, 3u);
}

TEST(WhatIf, TheSameAnswerWithAnyNumberOfThreads) {
  BuiltGraph built = Example("launch-bound");
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
  BuiltGraph built = Example("launch-bound");
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
  BuiltGraph built = Example("launch-bound");
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

TEST(WhatIf, WhatIsToldToStopHoldsWhatWasBegunAndNamesTheRest) {
  const std::vector<std::string> asked = {"free-comm", "prefetch,free-launch", "free-gpu"};
  const BuiltGraph built = Example("launch-bound");
  WhatIfOptions options;
  size_t done = 0;
  options.progress = [&](size_t now, size_t) { done = now; };
  options.stopped = [&] { return done == 2; };
  const WhatIf part = Ask(built, asked, options);
  EXPECT_THAT(Names(part), testing::ElementsAre("baseline", "prefetch", "free-comm"));
  EXPECT_THAT(part.not_done,
              testing::ElementsAre("free-launch", "free-gpu", "prefetch + free-launch"));
  EXPECT_FALSE(part.main_done);
  EXPECT_EQ(part.main, 0u);

  options.stopped = [&] { return done == 4; };
  const WhatIf more = Ask(built, asked, options);
  EXPECT_THAT(more.not_done, testing::ElementsAre("prefetch + free-launch"));
  EXPECT_TRUE(more.main_done);
  EXPECT_EQ(more.predictions[more.main].name, "free-gpu");

  const WhatIf whole = Ask(built, asked);
  EXPECT_TRUE(whole.not_done.empty());
  EXPECT_TRUE(whole.main_done);
}

TEST(WhatIf, BoundsHaveNoInterval) {
  WhatIf result = Ask(Example("launch-bound"), {"free-gpu"});
  const Prediction& p = result.predictions[result.main];
  EXPECT_TRUE(p.bound);
  EXPECT_FALSE(p.low.has_value());
}

TEST(WhatIf, IntervalsHoldThePrediction) {
  WhatIf result = Ask(Example("launch-bound"), {"prefetch"});
  const Prediction& p = result.predictions[result.main];
  ASSERT_TRUE(p.low.has_value());
  EXPECT_LE(*p.low, p.step);
  EXPECT_LE(p.step, *p.high);
}

TEST(WhatIf, TheGraphAskedAboutStaysAsItWas) {
  BuiltGraph built = Example("launch-bound");
  Duration before = StepTime(built.graph, *Simulate(built.graph));
  Ask(built, {"graphs,free-gpu"});
  EXPECT_EQ(StepTime(built.graph, *Simulate(built.graph)).ns, before.ns);
}

// A model that reaches too little says so with a limit, and is no faster than before for it.
TEST(WhatIf, ALimitOfWiderLayersIsLongerThanTheRecordedStep) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  auto trace = ImportFile((RealTraceFolder() / "training/recsys-a100-rank3of8.json.gz").string());
  ASSERT_TRUE(trace.ok()) << trace.status();
  WhatIf result = Ask(*BuildGraph(*trace), {"hidden(8)"});
  const Prediction& p = result.predictions[result.main];
  ASSERT_TRUE(p.error.ok()) << p.error;
  EXPECT_TRUE(p.bound);
  EXPECT_GT(p.step, result.predictions[0].step * 4);
}

TEST(Learned, CorrectsWithShrinkageAndNarrows) {
  LearnedRow row{"amp", "V100", Duration::Ms(100), Duration::Ms(50), Duration::Ms(55), "a"};
  std::vector<LearnedRow> rows = {row, row, row};
  Correction c = CorrectionFor(rows, "amp", "V100", 0.1);
  EXPECT_EQ(c.rows, 3u);
  EXPECT_NEAR(c.share, 0.3 / 5, 1e-12);
  EXPECT_NEAR(c.sigma, std::sqrt((2 * 0.01 + 3 * 0.04 * 0.04) / 5), 1e-12);
  EXPECT_LT(c.sigma, 0.1);
  EXPECT_EQ(CorrectionFor(rows, "amp", "A100", 0.1).rows, 0u);
  EXPECT_EQ(CorrectionFor(rows, "fuse", "V100", 0.1).sigma, 0.1);
}

TEST(Learned, WidensOnlyAfterMeasurementsOutsideOfTheInterval) {
  const LearnedRow low{"amp", "V100", Duration::Ms(100), Duration::Ms(100), Duration::Ms(84), "a"},
      high{"amp", "V100", Duration::Ms(100), Duration::Ms(100), Duration::Ms(116), "b"},
      far{"amp", "V100", Duration::Ms(100), Duration::Ms(100), Duration::Ms(140), "c"};
  const std::vector<LearnedRow> inside = {low, high}, outside = {low, far};
  EXPECT_EQ(CorrectionFor(inside, "amp", "V100", 0.1).sigma, 0.1);
  EXPECT_GT(CorrectionFor(outside, "amp", "V100", 0.1).sigma, 0.1);
}

TEST(Learned, RangesOfParametersAreNotCountedTwice) {
  ReplayCheck replay = ExactReplay(5);
  Prediction p;
  p.step = Duration::Ms(100);
  Doubts doubts{.replay = &replay, .model = 0.15, .run = 0.02};
  doubts.params = {{Duration::Ms(80), Duration::Ms(130), 0.4}};
  SetInterval(p, doubts);
  const Duration before = *p.high - *p.low;
  doubts.model = 0.13;  // a share learned from a small error
  doubts.run = 0;
  doubts.learned = true;
  SetInterval(p, doubts);
  EXPECT_LE(*p.high - *p.low, before);
}

TEST(Learned, RowsSurviveTheFileAndBadOnesAreLocated) {
  LearnedRow row{"amp", "Tesla\tV100", Duration::Ms(100), Duration::Ms(50), Duration::Ms(55),
                 "a\n"};
  std::string text = std::string(kLearnedHeader) + "\n" + FormatLearnedRow(row) + "\n\n# why\n";
  auto rows = ParseLearned(text, "f");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ(rows->front().device, "Tesla V100");
  EXPECT_EQ(rows->front().measured, Duration::Ms(55));
  for (std::string bad : {"", "daydream-learned 2\n", "x\n", "daydream-learned 1\na\tb\t1\t2\n",
                          "daydream-learned 1\na\tb\t1\t2\t-3\ts\n",
                          "daydream-learned 1\n\ta\t1\t2\t99999999999999999999\ts\n"}) {
    auto parsed = ParseLearned(bad, "f");
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(DiagnosticOf(parsed.status()).code, "E0110");
    EXPECT_TRUE(DiagnosticOf(parsed.status()).where.starts_with("f:")) << bad;
  }
}

TEST(Learned, MovesThePredictionAndItsCausesStillSum) {
  BuiltGraph built = Example("launch-bound");
  WhatIf plain = Ask(built, {"prefetch"});
  const Prediction& p = plain.predictions[plain.main];
  LearnedRow row{LearnedName(Scenarios({"prefetch"})[0]),
                 DeviceName(built.graph),
                 plain.predictions[0].step,
                 p.step,
                 p.step.Scaled(1.1),
                 "run"};
  std::vector<LearnedRow> rows = {row, row};
  WhatIf learned = Ask(built, {"prefetch"}, {.learned = rows});
  const Prediction& q = learned.predictions[learned.main];
  EXPECT_EQ(q.learned.rows, 2u);
  EXPECT_EQ(q.step, p.step + p.step.Scaled(q.learned.share));
  EXPECT_NEAR(q.learned.share, 0.05, 1e-6);
  Duration sum;
  for (const CauseShare& c : q.causes) sum += c.delta;
  EXPECT_EQ(sum, q.step - learned.predictions[0].step);
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
  BuiltGraph built = Example("launch-bound");
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
  groups.reserve(10);
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
  BuiltGraph built = Example("launch-bound");
  Diff diff = Compare(AsRecorded(built), AsRecorded(built), GroupBy::kKernel);
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
