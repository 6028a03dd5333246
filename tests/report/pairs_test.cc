// Every ordered pair of optimizations in one scenario: refused with a reason, or predicted; and the
// same in both orders (docs/decisions/010-a-scenario-has-one-order.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/repeat.h"
#include "report/predict/what_if.h"
#include "tests/example_graph.h"
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
  BuiltGraph built = Example("launch-bound");
  auto two = RepeatStep(built.graph, 2, 2);
  EXPECT_TRUE(two.ok()) << two.status();
  built.graph = *std::move(two);
  return built;
}

struct Pair {
  const Transform *first, *second;  // as asked for
  bool in_turn;                     // that is the order in which they are applied, too
  std::string spec() const { return SpecOf(*first) + "," + SpecOf(*second); }
  std::optional<Conflict> conflict() const {
    return in_turn ? FindConflict(*first, *second) : FindConflict(*second, *first);
  }
};

std::vector<Pair> AllPairs() {
  const std::span<const Transform* const> all = Transforms();
  std::vector<Pair> pairs;
  for (size_t a = 0; a < all.size(); ++a) {
    for (size_t b = 0; b < all.size(); ++b) pairs.push_back({all[a], all[b], a <= b});
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
    const auto conflict = p.conflict();
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
                                                   "remove", "accumulate", "layers", "straggler",
                                                   "jitter", "bandwidth", "latency"));
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

TEST(Pairs, AreTheSameScenarioInBothOrders) {
  for (const Pair& p : AllPairs()) {
    if (!p.in_turn || p.conflict().has_value()) continue;
    auto one = ParseScenario(p.spec());
    auto other = ParseScenario(SpecOf(*p.second) + "," + SpecOf(*p.first));
    ASSERT_TRUE(one.ok() && other.ok()) << p.spec();
    ASSERT_EQ(one->size(), 2u);
    ASSERT_EQ(other->size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ((*one)[i].transform, (*other)[i].transform) << p.spec();
      EXPECT_EQ((*one)[i].params.spelled(), (*other)[i].params.spelled()) << p.spec();
    }
  }
}

TEST(Pairs, ThatAreNotRefusedArePredictedAndTheirCausesSum) {
  const BuiltGraph built = SmallTrace();
  std::vector<std::vector<Application>> scenarios, some;
  for (const Pair& p : AllPairs()) {
    auto scenario = ParseScenario(p.spec());
    if (!p.in_turn || !scenario.ok()) continue;
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
