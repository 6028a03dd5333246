// Rows that differ in a number which only sets times are applied together, and are what each of
// them is by itself (report/predict/told_rows).
#include "report/predict/told_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "report/questions/sweep.h"
#include "tests/example_graph.h"
#include "tests/real_traces.h"
#include "tests/scenario.h"

namespace daydream {
namespace {

// Rows of a sweep told together, and each by itself.
class Rows {
 public:
  // `form` has {} for the number.
  Rows(BuiltGraph built, const std::string& form, const std::vector<double>& numbers)
      : built_(std::move(built)),
        replay_(CheckReplay(built_, nullptr).value()),
        runner_(SweepRunner::Make(built_, replay_, {}).value()) {
    for (double number : numbers) {
      scenarios_.push_back(ScenarioInTurn(fmt::format(fmt::runtime(form), number)));
    }
    std::vector<const std::vector<Application>*> rows;
    for (const auto& scenario : scenarios_) rows.push_back(&scenario);
    told_ = runner_.Tell(rows);
  }
  bool AreTold() const { return told_ != nullptr; }
  size_t CountTold() const {
    size_t told = 0;
    for (size_t i = 0; AreTold() && i < scenarios_.size(); ++i) told += told_->Take(i) != nullptr;
    return told;
  }
  void ExpectEachIsTheSame() const {
    // Twice, and not in turn: nothing is left of the row before.
    for (size_t k = 0; AreTold() && k < 2 * scenarios_.size(); ++k) {
      const size_t i = k * 3 % scenarios_.size();
      ExpectIsTheSame(i, false);
      if (scenarios_[i].size() == 1) ExpectIsTheSame(i, true);
    }
  }

 private:
  void ExpectIsTheSame(size_t i, bool interval) const {
    SCOPED_TRACE(fmt::format("row {}, interval {}", i, interval));
    const PlayedRow alone = runner_.Play(i, scenarios_[i], interval);
    const PlayedRow told = runner_.PlayTold(i, scenarios_[i], interval, *told_, i);
    EXPECT_EQ(FormatSweepRow(told.row), FormatSweepRow(alone.row));
    EXPECT_EQ(told.row.low.has_value(), interval && told.row.code.empty());
    ASSERT_EQ(told.work.has_value(), alone.work.has_value());
    if (!told.work) return;
    EXPECT_EQ(told.work->shape, alone.work->shape);
    EXPECT_EQ(told.work->time, alone.work->time);
  }

  BuiltGraph built_;
  ReplayCheck replay_;
  SweepRunner runner_;
  std::vector<std::vector<Application>> scenarios_;
  std::unique_ptr<ToldRows> told_;
};

const std::vector<double> kNumbers = {0.8, 0.9, 1, 1.1, 1.5, 2, 7, 40, 1000};

TEST(ToldRows, AreWhatEachOfThemIsByItself) {
  size_t told = 0;
  for (const char* example : {"resnet50", "launch-bound"}) {
    for (const char* form :
         {"speedup(kernel:.,{}),fuse", "speedup(kernel:.,{}),amp",
          "speedup(class:gemm,{}),amp,fuse", "speedup(kernel:.,{}),compile",
          "speedup(kernel:.,{}),graphs", "speedup(op:.,{}),graphs",
          "speedup(kind:host,{}),compile,aot", "gpu(H100),speedup(kernel:.,{}),fuse",
          "batch(x2),speedup(kernel:.,{}),fuse", "speedup(kernel:.,2),speedup(op:.,{}),graphs",
          "speedup(kernel:.,{}),amp(fp16),channels-last", "speedup(kernel:.,{}),rbn,fuse(norm)"}) {
      SCOPED_TRACE(fmt::format("{} {}", example, form));
      const Rows rows(Example(example), form, kNumbers);
      rows.ExpectEachIsTheSame();
      told += rows.CountTold();
    }
  }
  EXPECT_GT(told, 100);
}

// Nine rows are two batches, one of which is not full.
TEST(ToldRows, WhereTheUserStatesAllTimesEightArePlayedAtOnce) {
  size_t told = 0;
  for (const char* example : {"resnet50", "launch-bound"}) {
    for (const char* form : {"speedup(kernel:.,{})", "speedup(kind:host,{})", "speedup(op:.,{})",
                             "speedup(class:gemm,{}),speedup(kernel:.,1.5)",
                             "speedup(kind:host,2),speedup(op:.,{})"}) {
      SCOPED_TRACE(fmt::format("{} {}", example, form));
      const Rows rows(Example(example), form, kNumbers);
      rows.ExpectEachIsTheSame();
      told += rows.CountTold();
    }
  }
  EXPECT_EQ(told, 2 * 5 * kNumbers.size());
}

TEST(ToldRows, ThoseWithEditsOfTheirOwnAreLeftOut) {
  // Host work that is shorter makes fewer launches worth a graph.
  const Rows rows(Example("launch-bound"), "speedup(op:.,{}),graphs", {1, 2, 1000});
  ASSERT_TRUE(rows.AreTold());
  EXPECT_LT(rows.CountTold(), 3U);
}

// Their models tell what they do with other durations, not with other gaps.
TEST(ToldRows, GapsAreNotToldWhereOnlyDurationsAre) {
  EXPECT_FALSE(Rows(Example("launch-bound"), "speedup(kind:host,{}),fuse", {1.5, 2, 3}).AreTold());
  EXPECT_TRUE(Rows(Example("launch-bound"), "speedup(kernel:.,{}),fuse", {1.5, 2, 3}).AreTold());
}

TEST(ToldRows, ARowThatTakesLongerThanTheFirstIsLeftOut) {
  EXPECT_EQ(Rows(Example("launch-bound"), "speedup(kernel:.,{}),fuse", {2, 3, 1.5, 4}).CountTold(),
            3U);
}

// Times that add up to more than a replay takes, and more than 64 bits hold.
TEST(ToldRows, RowsThatAreTooLongAreLeftOutWithoutHarmToOthers) {
  const std::string slow = "speedup(op:.,0.001),speedup(op:.,0.001),speedup(op:.,0.001),";
  for (const char* example : {"resnet50", "launch-bound"}) {
    for (const char* behind : {"", ",graphs"}) {
      SCOPED_TRACE(fmt::format("{} {}", example, behind));
      const Rows rows(Example(example), slow + "speedup(op:.,{})" + behind,
                      {1, 0.0019, 0.00108, 0.00244, 2});
      EXPECT_LE(rows.CountTold(), 2U);
      rows.ExpectEachIsTheSame();
    }
  }
}

TEST(ToldRows, ARowNamesItsOwnNumberWhereThatIsLeftOut) {
  Rows(Example("launch-bound"), "speedup(kernel:none,{}),speedup(op:.,2)", {1.5, 2, 3})
      .ExpectEachIsTheSame();
  Rows(Example("launch-bound"), "speedup(kernel:none,{}),fuse", {1.5, 2, 3}).ExpectEachIsTheSame();
}

TEST(ToldRows, OnlyNumbersOfWhatSetsTimesAreTold) {
  const auto place = [](const std::string& a, const std::string& b) {
    return PlaceOfTimes(ScenarioInTurn(a), ScenarioInTurn(b));
  };
  EXPECT_EQ(place("speedup(kernel:.,2),fuse", "speedup(kernel:.,3),fuse"), 0U);
  EXPECT_EQ(place("gpu(H100),speedup(kernel:.,2)", "gpu(H100),speedup(kernel:.,3)"), 1U);
  EXPECT_EQ(place("speedup(kernel:.,2),fuse", "speedup(op:.,3),fuse"), std::nullopt);
  EXPECT_EQ(place("speedup(kernel:.,2),fuse", "speedup(kernel:.,3),amp"), std::nullopt);
  EXPECT_EQ(place("speedup(kernel:.,2),fuse", "speedup(kernel:.,2),fuse"), std::nullopt);
  EXPECT_EQ(place("speedup(kernel:.,2),batch(x2)", "speedup(kernel:.,2),batch(x3)"), std::nullopt);
  EXPECT_EQ(place("speedup(kernel:.,2),checkpointing", "speedup(kernel:.,3),checkpointing"),
            std::nullopt);
  EXPECT_EQ(place("speedup(kernel:.,2),free-host", "speedup(kernel:.,3),free-host"), std::nullopt);
}

class ToldRowsOf : public testing::TestWithParam<std::string> {};

TEST_P(ToldRowsOf, AreWhatEachOfThemIsByItself) {
  if (GetParam() == "none") GTEST_SKIP() << "no ../shared/traces beside the repository";
  auto trace = ImportFile((RealTraceFolder() / GetParam()).string());
  ASSERT_TRUE(trace.ok()) << trace.status();
  auto built = BuildGraph(*trace);
  constexpr size_t kLarge = 50'000;
  if (!built.ok() || built->graph.size() > kLarge) GTEST_SKIP() << "no graph, or a large one";
  for (const char* form : {"speedup(kernel:.,{}),amp,fuse", "speedup(kernel:.,{}),compile,graphs",
                           "speedup(kind:host,{})", "speedup(phase:backward,{})"}) {
    SCOPED_TRACE(form);
    Rows(*built, form, {1.1, 1.3, 9}).ExpectEachIsTheSame();
  }
}

INSTANTIATE_TEST_SUITE_P(Real, ToldRowsOf, testing::ValuesIn(RealTracesOrNone()),
                         [](const auto& info) { return TestNameOf(info.param); });

}  // namespace
}  // namespace daydream
