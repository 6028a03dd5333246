#include "report/questions/advise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "report/questions/own_mistake.h"
#include "simulator/simulate.h"
#include "tests/example_graph.h"
#include "tests/real_traces.h"
#include "tests/transforms/every_option.h"
#include "trace/importer.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/option_files.h"
#include "transforms/scenario/scenario.h"
#include "transforms/scenario/turn.h"

namespace daydream {
namespace {

Advised Ask(const BuiltGraph& built, const Tried& tried, unsigned jobs = 1) {
  auto replay = CheckReplay(built, nullptr);
  EXPECT_TRUE(replay.ok());
  auto advised = Advise(built, *replay, tried.options, tried.limits, {.jobs = jobs});
  EXPECT_TRUE(advised.ok()) << advised.status();
  return *std::move(advised);
}

const BuiltGraph& LaunchBound() {
  static const BuiltGraph built = Example("launch-bound");
  return built;
}
const Advised& LaunchBoundAdvice() {
  static const Advised advised = Ask(LaunchBound(), EverythingTried());
  return advised;
}

std::vector<std::string> Names(const std::vector<Option>& options) {
  std::vector<std::string> names;
  names.reserve(options.size());
  for (const Option& o : options) names.push_back(o.prediction.name);
  return names;
}

// With the other ways to a row's gain.
std::vector<Option> AllOf(const std::vector<Option>& rows) {
  std::vector<Option> all = rows;
  for (const Option& o : rows) all.insert(all.end(), o.ways.begin(), o.ways.end());
  return all;
}

TEST(Advise, EveryOptionIsInExactlyOneList) {
  const Advised& a = LaunchBoundAdvice();
  std::vector<size_t> places;
  for (const auto* list : {&a.worth, &a.not_worth, &a.nothing_here, &a.unjudged, &a.limits}) {
    for (const Option& o : AllOf(*list)) {
      if (!o.application.transform->bound) places.push_back(o.place);
    }
  }
  std::vector<size_t> all;
  for (size_t i = 0; i < EverythingTried().options.size(); ++i) all.push_back(i);
  EXPECT_THAT(places, testing::UnorderedElementsAreArray(all));
}

TEST(Advise, TwoWaysToOneGainAreOneRow) {
  const Advised& a = LaunchBoundAdvice();
  for (const Option& o : a.worth) {
    const std::string& name = o.prediction.name;
    if (name != "graphs" && name != "aot") continue;
    ASSERT_EQ(Names(o.ways).size(), 1u);
    EXPECT_EQ(Names(o.ways)[0], name == "aot" ? "graphs" : "aot");
  }
  EXPECT_THAT(Names(a.worth), testing::Not(testing::IsSupersetOf({"graphs", "aot"})));
  EXPECT_THAT(Names(AllOf(a.worth)), testing::IsSupersetOf({"graphs", "aot"}));
}

TEST(Advise, WhatIsHarderToTryComesLater) {
  auto replay = CheckReplay(LaunchBound(), nullptr);
  ASSERT_TRUE(replay.ok());
  const std::string first = LaunchBoundAdvice().worth[0].prediction.name;
  auto hard = Advise(LaunchBound(), *replay, EverythingTried().options, EverythingTried().limits,
                     {.ease = [&](const Application& a, const Changes&) {
                       return a.transform->name == first ? 1e-6 : 1.0;
                     }});
  ASSERT_TRUE(hard.ok()) << hard.status();
  EXPECT_NE(hard->worth.front().prediction.name, first);
}

TEST(Advise, RanksByWhatIsLikelyGainedAndKeepsWhatIsWorthIt) {
  const Advised& a = LaunchBoundAdvice();
  ASSERT_GE(a.worth.size(), 2u);
  for (size_t i = 0; i < a.worth.size(); ++i) {
    const Duration saved = a.baseline.step - a.worth[i].prediction.step;
    EXPECT_GE(saved, a.baseline.step.Scaled(0.005));
    EXPECT_TRUE(a.worth[i].prediction.low.has_value());
    EXPECT_FALSE(a.worth[i].prediction.bound);
    if (i == 0) continue;
    EXPECT_GE(a.worth[i - 1].score, a.worth[i].score);
  }
  for (const Option& o : a.not_worth) {
    EXPECT_LT(a.baseline.step - o.prediction.step, a.baseline.step.Scaled(0.005));
  }
}

// By more than what is not worth a member.
TEST(Advise, TheBestSetIsNeverWorseThanTheBestOptionOrPair) {
  const Advised& a = LaunchBoundAdvice();
  ASSERT_FALSE(a.worth.empty());
  Duration least = a.worth[0].prediction.step;
  for (const Option& o : AllOf(a.worth)) least = std::min(least, o.prediction.step);
  for (const OptionPair& p : a.pairs) least = std::min(least, p.step.value_or(least));
  EXPECT_LE(a.best.has_value() ? a.best->step : a.worth[0].prediction.step,
            least + a.baseline.step.Scaled(0.005));
}

TEST(Advise, TheBestSetPlaysAsPrintedAndEveryMemberHelps) {
  const BuiltGraph built = Example("resnet50");
  const Advised a = Ask(built, EverythingTried());
  ASSERT_TRUE(a.best.has_value());
  EXPECT_LE(a.best->step, a.worth[0].prediction.step);
  auto played = Play(built.graph, a.best_list);
  ASSERT_TRUE(played.ok());
  EXPECT_EQ(StepTime(played->graph, played->timeline), a.best->step);
  EXPECT_TRUE(a.best->left_out.empty());
  for (size_t i = 0; i < a.best_list.size(); ++i) {
    std::vector<Application> without = a.best_list;
    without.erase(without.begin() + static_cast<ptrdiff_t>(i));
    auto less = Play(built.graph, without);
    ASSERT_TRUE(less.ok());
    EXPECT_GE(StepTime(less->graph, less->timeline), a.best->step + a.baseline.step.Scaled(0.005))
        << "without " << a.best->opts[i];
  }
}

TEST(Advise, WhatOnlyChangesTheHostDoesNotBeatTheCeilingOfTheHost) {
  const Advised& a = LaunchBoundAdvice();
  auto ceiling = std::find_if(a.limits.begin(), a.limits.end(),
                              [](const Option& o) { return o.prediction.name == "free-host"; });
  ASSERT_NE(ceiling, a.limits.end());
  size_t compared = 0;
  for (const auto* list : {&a.worth, &a.not_worth}) {
    for (const Option& o : AllOf(*list)) {
      const std::set<std::string> host = {"graphs", "aot", "no-sync", "prefetch", "cache"};
      if (!host.contains(o.prediction.name)) continue;
      ++compared;
      EXPECT_GE(o.prediction.step, ceiling->prediction.step) << o.prediction.name;
    }
  }
  EXPECT_EQ(compared, 5u);
}

TEST(Advise, AnOptionThatWasNeverCheckedIsNotOfHighConfidenceHoweverLittleItChanges) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  auto trace = ImportFile(
      (RealTraceFolder() / "training/recsys-a100-compiled-graphs-rank0of16.json.gz").string());
  ASSERT_TRUE(trace.ok()) << trace.status();
  auto built = BuildGraph(*trace);
  ASSERT_TRUE(built.ok()) << built.status();
  auto replay = CheckReplay(*built, nullptr);
  ASSERT_TRUE(replay.ok());
  const std::vector<std::vector<Application>> asked = {*ParseScenario("multi-stream")};
  auto all = PredictAll(*built, *replay, asked, {});
  ASSERT_TRUE(all.ok());
  const Prediction& p = all->predictions[all->main];
  ASSERT_TRUE(p.error.ok()) << p.error;
  EXPECT_LT(std::fabs(p.speedup - 1), 0.02);
  EXPECT_EQ(p.confidence, Confidence::kMedium);
  EXPECT_NE(p.why.find("no measured pair tells how well this is modelled"), std::string::npos)
      << p.why;
}

TEST(Advise, CausesOfEveryAnswerSumToWhatItSaves) {
  const Advised& a = LaunchBoundAdvice();
  std::vector<Prediction> all = {*a.best};
  for (const Option& o : a.worth) all.push_back(o.prediction);
  for (const Prediction& p : all) {
    Duration sum;
    for (const CauseShare& c : p.causes) sum += c.delta;
    EXPECT_EQ(sum.ns, (p.step - a.baseline.step).ns) << p.name;
  }
}

// What adds more doubt than gain is no member: the set is told by its low end. The search asks this
// of the member that is missed least and of those that may lose; here it holds of all.
TEST(Advise, TheLowEndOfThisBestSetIsWorseWithoutAnyMember) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  auto trace = ImportFile((RealTraceFolder() / "gpus/resnet50-bs32.a100-ddp2.json.gz").string());
  ASSERT_TRUE(trace.ok()) << trace.status();
  auto built = BuildGraph(*trace);
  ASSERT_TRUE(built.ok()) << built.status();
  auto replay = CheckReplay(*built, nullptr);
  ASSERT_TRUE(replay.ok());
  const Advised a = Ask(*built, EverythingTried());
  ASSERT_TRUE(a.best.has_value());
  std::vector<std::vector<Application>> fewer;
  for (size_t i = 0; i < a.best_list.size(); ++i) {
    fewer.push_back(a.best_list);
    fewer.back().erase(fewer.back().begin() + static_cast<ptrdiff_t>(i));
  }
  const auto told = PredictAll(*built, *replay, fewer, {.alone = false});
  ASSERT_TRUE(told.ok()) << told.status();
  for (const Prediction& p : told->predictions) {
    if (p.name == "baseline") continue;
    EXPECT_LT(p.least_as_recorded.value_or(0), *a.best->least_as_recorded) << p.name;
  }
}

// `graphs` and `aot` save most alone here and leave the loader the limit; what is first on the list
// leads further.
TEST(Advise, NoSetOfThreeRowsIsBetterThanTheBestSet) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  auto trace = ImportFile((RealTraceFolder() / "loader/resnet50-v100.workers0.b.json.gz").string());
  ASSERT_TRUE(trace.ok()) << trace.status();
  auto built = BuildGraph(*trace);
  ASSERT_TRUE(built.ok()) << built.status();
  const Advised a = Ask(*built, EverythingTried());
  ASSERT_TRUE(a.best.has_value());
  std::vector<Option> rows = a.worth;
  for (const Option& o : a.not_worth) {
    if (o.prediction.name == "amp") rows.push_back(o);
  }
  std::sort(rows.begin(), rows.end(),
            [](const Option& x, const Option& y) { return x.place < y.place; });
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = i + 1; j < rows.size(); ++j) {
      for (size_t k = j + 1; k < rows.size(); ++k) {
        std::vector<Application> set = {rows[i].application, rows[j].application,
                                        rows[k].application};
        PutInTurn(set);
        auto played = Play(built->graph, set);
        if (!played.ok()) continue;
        EXPECT_GE(StepTime(played->graph, played->timeline), a.best->step)
            << rows[i].prediction.name << " " << rows[j].prediction.name << " "
            << rows[k].prediction.name;
      }
    }
  }
}

// Lanes, layers and steps are named by the program that was recorded: no answer may hang on that.
TEST(Advise, RankingStaysWhenThingsAreRenamed) {
  const Advised& before = LaunchBoundAdvice();
  BuiltGraph built = LaunchBound();
  Graph& g = built.graph;
  for (size_t i = 0; i < g.steps().size(); ++i) g.mutable_step(i).label = fmt::format("z{}", i);
  for (size_t i = 0; i < g.lanes().size(); ++i) {
    g.mutable_lane(LaneId(i)).lane.name = g.AddName(fmt::format("lane {}", 99 - i));
  }
  Advised after = Ask(built, EverythingTried());
  EXPECT_EQ(Names(after.worth), Names(before.worth));
  EXPECT_EQ(Names(after.not_worth), Names(before.not_worth));
  EXPECT_EQ(after.best_members, before.best_members);
  EXPECT_EQ(after.best->step, before.best->step);
}

TEST(Advise, TheOrderOfTheOptionsChangesNoRank) {
  const Advised& before = LaunchBoundAdvice();
  Tried tried = EverythingTried();
  std::reverse(tried.options.begin(), tried.options.end());
  Advised after = Ask(LaunchBound(), tried);
  EXPECT_EQ(Names(after.worth), Names(before.worth));
}

TEST(Advise, TheSameWithAnyNumberOfThreads) {
  const Advised& one = LaunchBoundAdvice();
  Advised three = Ask(LaunchBound(), EverythingTried(), 3);
  EXPECT_EQ(Names(one.worth), Names(three.worth));
  EXPECT_EQ(one.best_members, three.best_members);
  EXPECT_EQ(one.best->low, three.best->low);
  for (size_t i = 0; i < one.pairs.size(); ++i) EXPECT_EQ(one.pairs[i].step, three.pairs[i].step);
}

// Options with a model that nobody can ask about are as good as absent.
TEST(Advise, EveryOptimizationIsAdvisedOrAVerbOfModelling) {
  const std::set<std::string_view> verbs = {
      "speedup",   "remove",      "substitute", "layers",        "hidden",   "jitter", "straggler",
      "network",   "bandwidth",   "latency",    "ddp",           "zero1",    "zero2",  "dgc",
      "local-sgd", "blueconnect", "p3",         "fp16-compress", "powersgd", "bucket"};
  for (const Transform* t : Transforms()) {
    const bool advised = !t->advice.how.empty();
    EXPECT_EQ(advised, !t->bound && !verbs.contains(t->name)) << t->name;
    // Of what ranks are asked beside (OptionsOfRanks()), both are said, too.
    EXPECT_GE(!t->advice.effort.empty(), advised) << t->name;
    EXPECT_EQ(t->advice.effort.empty(), t->advice.risk.empty()) << t->name;
  }
}

TEST(Advise, NamesWhatWasMeasuredToHelp) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::pair<const char*, const char*> kHelped[] = {
      {"loader/resnet50-v100.workers0.b.json.gz", "prefetch"},
      {"copies/copy-a100.pageable.json.gz", "pin-memory"}};
  for (const auto& [name, option] : kHelped) {
    auto trace = ImportFile((RealTraceFolder() / name).string());
    ASSERT_TRUE(trace.ok()) << trace.status();
    auto built = BuildGraph(*trace);
    ASSERT_TRUE(built.ok()) << built.status();
    EXPECT_THAT(Names(Ask(*built, EverythingTried()).worth), testing::Contains(option)) << name;
  }
}

TEST(Advise, OptionsThatExcludeEachOtherAreNeverTogether) {
  // What both orders refuse; where one does not, that one is played.
  auto excluded = [](const Option& x, const Option& y) {
    const auto one = FindConflict(*x.application.transform, *y.application.transform);
    const auto other = FindConflict(*y.application.transform, *x.application.transform);
    return other.has_value() ? one : std::nullopt;
  };
  const Advised& a = LaunchBoundAdvice();
  for (const OptionPair& p : a.pairs) {
    const std::optional<Conflict> conflict = excluded(a.worth[p.a], a.worth[p.b]);
    if (!conflict.has_value()) continue;
    EXPECT_FALSE(p.step.has_value());
    EXPECT_EQ(p.reason, conflict->reason);
  }
  auto member = [&](size_t m) {
    return m < a.worth.size() ? a.worth[m] : a.not_worth[m - a.worth.size()];
  };
  for (size_t i : a.best_members) {
    for (size_t j : a.best_members) {
      if (i == j) continue;
      EXPECT_FALSE(excluded(member(i), member(j)).has_value());
    }
  }
}

// Merged kernels bring 0.1 % of the step where nothing is launched any more.
TEST(Advise, WhatAddsNextToNothingIsNoMemberOfTheBestSet) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  auto trace = ImportFile((RealTraceFolder() / "gpus/bert-small.h100.json.gz").string());
  ASSERT_TRUE(trace.ok()) << trace.status();
  const Advised a = Ask(*BuildGraph(*trace), EverythingTried());
  EXPECT_FALSE(a.best.has_value()) << a.best->name << " saves what aot saves alone";
}

// While the host holds the GPU up, faster kernels bring nothing; beside fewer launches they do.
TEST(Advise, TheBestSetHoldsWhatHelpsOnlyBesideOthers) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  auto trace = ImportFile((RealTraceFolder() / "loader/resnet50-v100.workers0.a.json.gz").string());
  ASSERT_TRUE(trace.ok()) << trace.status();
  const Advised a = Ask(*BuildGraph(*trace), EverythingTried());
  EXPECT_THAT(Names(a.not_worth), testing::Contains("amp"));
  ASSERT_TRUE(a.best.has_value());
  EXPECT_THAT(a.best->opts, testing::Contains("amp"));
}

// Stops once `count` of a stage is done.
Advised AskUntil(AdviseStage stage, size_t count) {
  auto replay = CheckReplay(LaunchBound(), nullptr);
  bool stop = false;
  const AdviseOptions options{.progress = [&](AdviseStage at, size_t done,
                                              size_t) { stop |= at == stage && done == count; },
                              .stopped = [&] { return stop; }};
  auto advised =
      Advise(LaunchBound(), *replay, EverythingTried().options, EverythingTried().limits, options);
  EXPECT_TRUE(advised.ok()) << advised.status();
  return *std::move(advised);
}

TEST(Advise, ToldToStopItLeavesWhatWasTriedAsItWouldBe) {
  const Advised part = AskUntil(AdviseStage::kOptions, 9);
  EXPECT_TRUE(part.interrupted);
  EXPECT_EQ(part.untried, part.asked - 9);
  EXPECT_FALSE(part.best.has_value());
  EXPECT_TRUE(part.pairs.empty());
  std::map<size_t, Duration> steps;
  const Advised& whole = LaunchBoundAdvice();
  for (const auto* list : {&whole.worth, &whole.not_worth}) {
    for (const Option& o : AllOf(*list)) steps[o.place] = o.prediction.step;
  }
  size_t told = 0;
  for (const auto* list : {&part.worth, &part.not_worth}) {
    for (const Option& o : AllOf(*list)) {
      EXPECT_EQ(o.prediction.step, steps[o.place]) << o.prediction.name;
      ++told;
    }
  }
  EXPECT_GT(told, 0u);
}

TEST(Advise, ToldToStopInTheSearchItHasNoBestSet) {
  ASSERT_TRUE(LaunchBoundAdvice().best.has_value());
  for (const size_t played : {1, 12, 60}) {
    const Advised part = AskUntil(AdviseStage::kSets, played);
    EXPECT_TRUE(part.interrupted) << played;
    EXPECT_EQ(part.untried, 0u);
    EXPECT_FALSE(part.best.has_value());
    EXPECT_EQ(Names(part.worth), Names(LaunchBoundAdvice().worth));
  }
}

// The command fails then: what looks like advice may lack the best of it.
TEST(Advise, AMistakeOfOursIsNotAnOptionThatCannotBeJudged) {
  Advised advised;
  const auto failed = [&](std::string_view code) {
    Option& o = advised.unjudged.emplace_back();
    o.prediction.error =
        MakeStatus(absl::StatusCode::kFailedPrecondition, {.code = std::string(code)});
  };
  EXPECT_TRUE(OwnMistake(advised).ok());
  failed("E0605");
  EXPECT_TRUE(OwnMistake(advised).ok());
  failed("E0901");
  EXPECT_EQ(DiagnosticOf(OwnMistake(advised)).code, "E0901");
}

}  // namespace
}  // namespace daydream
