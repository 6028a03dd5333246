// Every ordered pair of optimizations in one scenario: refused with a reason, or predicted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/repeat.h"
#include "report/predict/what_if.h"
#include "tests/transforms/every_option.h"
#include "trace/importer.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/option_file.h"
#include "transforms/scenario/option_files.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// Two steps of a transformer that is bound by its launches.
BuiltGraph SmallTrace() {
  auto trace = ImportFile(DAYDREAM_SOURCE_DIR "/examples/launch-bound-synthetic.ddtrace");
  EXPECT_TRUE(trace.ok()) << trace.status();
  auto built = BuildGraph(*trace);
  EXPECT_TRUE(built.ok()) << built.status();
  auto two = RepeatStep(built->graph, 2, 2);
  EXPECT_TRUE(two.ok()) << two.status();
  built->graph = *std::move(two);
  return *std::move(built);
}

struct Pair {
  const Transform *first, *second;
  std::string spec() const { return SpecOf(*first) + "," + SpecOf(*second); }
};

std::vector<Pair> AllPairs() {
  std::vector<Pair> pairs;
  for (const Transform* a : Transforms()) {
    for (const Transform* b : Transforms()) pairs.push_back({a, b});
  }
  return pairs;
}

WhatIf Predicted(const BuiltGraph& built, std::span<const std::vector<Application>> scenarios,
                 unsigned jobs) {
  auto replay = CheckReplay(built, nullptr);
  EXPECT_TRUE(replay.ok()) << replay.status();
  auto all = PredictAll(built, *replay, scenarios,
                        {.alone = false, .intervals = false, .explain = false, .jobs = jobs});
  EXPECT_TRUE(all.ok()) << all.status();
  return *std::move(all);
}

TEST(Pairs, AreRefusedWithAReasonExactlyWhenTheySayThatTheyExcludeEachOther) {
  size_t refused = 0;
  for (const Pair& p : AllPairs()) {
    const auto conflict = FindConflict(*p.first, *p.second);
    const auto scenario = ParseScenario(p.spec());
    EXPECT_EQ(scenario.ok(), !conflict.has_value()) << p.spec();
    if (scenario.ok()) continue;
    ++refused;
    const Diagnostic d = DiagnosticOf(scenario.status());
    EXPECT_EQ(d.code, "E0111") << p.spec();
    EXPECT_FALSE(conflict->reason.empty()) << p.spec();
    EXPECT_THAT(d.where, testing::HasSubstr(std::string(conflict->reason)));
  }
  EXPECT_GT(refused, Transforms().size() / 2);
}

// A new optimization has to say whether a second one of it makes sense.
TEST(Pairs, OnlyWhatIsAboutOtherTasksOrDoesMoreOfTheSameComesTwice) {
  std::vector<std::string_view> twice;
  for (const Transform* t : Transforms()) {
    if (!FindConflict(*t, *t).has_value()) twice.push_back(t->name);
  }
  EXPECT_THAT(twice, testing::UnorderedElementsAre("fuse", "substitute", "sparse", "speedup",
                                                   "remove", "accumulate", "layers"));
}

TEST(Pairs, OfOneOptionAreRefusedWhateverTheirValues) {
  for (const char* spec : {"graphs,graphs(launch=1us)", "rbn,rbn", "aot,prefetch(2),aot",
                           "pin-memory,no-sync,pin-memory(rate=5GB/s)", "free-gpu,free-gpu"}) {
    const auto scenario = ParseScenario(spec);
    ASSERT_FALSE(scenario.ok()) << spec;
    EXPECT_THAT(DiagnosticOf(scenario.status()).what, testing::HasSubstr("is there twice"));
  }
  for (const char* spec : {"fuse(optimizer),fuse(elementwise)", "accumulate(2),accumulate(2)",
                           "speedup(class:gemm,2),speedup(class:norm,3)"}) {
    EXPECT_TRUE(ParseScenario(spec).ok()) << spec;
  }
}

TEST(Pairs, WhatAFileUsesConflictsLikeTheOptionItself) {
  constexpr std::string_view kText =
      "daydream: 1\nname: mine\nsummary: s\nsteps:\n  - use: 'graphs'\n";
  auto file = OptionFile::Parse(kText, "mine.yaml");
  ASSERT_TRUE(file.ok()) << file.status();
  const Transform &mine = (*file)->transform(), &graphs = *FindTransform("graphs");
  EXPECT_TRUE(FindConflict(mine, graphs).has_value());
  EXPECT_TRUE(FindConflict(*FindTransform("aot"), mine).has_value());
  EXPECT_TRUE(FindConflict(mine, mine).has_value());
  EXPECT_FALSE(FindConflict(mine, *FindTransform("prefetch")).has_value());
}

TEST(Pairs, ThatAreNotRefusedArePredictedAndTheirCausesSum) {
  const BuiltGraph built = SmallTrace();
  std::vector<std::vector<Application>> scenarios, some;
  for (const Pair& p : AllPairs()) {
    auto scenario = ParseScenario(p.spec());
    if (!scenario.ok()) continue;
    if (scenarios.size() % 9 == 0) some.push_back(*scenario);
    scenarios.push_back(*std::move(scenario));
  }
  const WhatIf all = Predicted(built, scenarios, 2);
  const Duration baseline = all.predictions[0].step;
  std::map<std::string, const Prediction*> by_name;
  size_t predicted = 0;
  for (const Prediction& p : all.predictions) {
    by_name[p.name] = &p;
    if (!p.error.ok()) {
      // The trace lacks what they change or need; never a graph that cannot be played.
      const std::string code = DiagnosticOf(p.error).code;
      EXPECT_TRUE(code.starts_with("E06") || code.starts_with("E08"))
          << p.name << ": " << Message(p.error);
      continue;
    }
    ++predicted;
    Duration sum;
    for (const CauseShare& c : p.causes) sum += c.delta;
    EXPECT_EQ(sum.ns, (p.step - baseline).ns) << p.name;
    EXPECT_GE(p.step, Duration{}) << p.name;
  }
  EXPECT_GT(predicted, scenarios.size() / 2);
  // The same again, in other company and on one thread.
  for (const Prediction& p : Predicted(built, some, 1).predictions) {
    ASSERT_TRUE(by_name.contains(p.name)) << p.name;
    const Prediction& before = *by_name[p.name];
    EXPECT_EQ(p.step, before.step) << p.name;
    ASSERT_EQ(p.causes.size(), before.causes.size()) << p.name;
    for (size_t i = 0; i < p.causes.size(); ++i) {
      EXPECT_EQ(p.causes[i].what, before.causes[i].what) << p.name;
      EXPECT_EQ(p.causes[i].delta, before.causes[i].delta) << p.name;
    }
  }
}

}  // namespace
}  // namespace daydream
