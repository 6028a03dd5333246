// Many values of one parameter: intervals between those of neighbours
// (report/questions/dense_sweep).
#include "report/questions/dense_sweep.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "tests/example_graph.h"
#include "tests/real_traces.h"

namespace daydream {
namespace {

// A sweep of an example, as the command makes it.
class Swept {
 public:
  Swept(const std::string& example, const std::string& spec, bool intervals = true)
      : Swept(Example(example), spec, intervals) {}
  Swept(BuiltGraph built, const std::string& spec, bool intervals = true)
      : built_(std::move(built)),
        replay_(CheckReplay(built_, nullptr).value()),
        plan_(PlanSweep(std::span(&spec, 1)).value()),
        runner_(SweepRunner::Make(built_, replay_, {.intervals = intervals}).value()) {
    for (const SweepPoint& p : plan_.points) scenarios.push_back(ParseScenario(p.spec).value());
  }

  DenseSweep Dense() const { return {runner_, plan_.points, scenarios}; }
  std::vector<SweepRow> Rows() const {
    DenseSweep dense = Dense();
    std::vector<SweepRow> rows;
    for (size_t i = 0; i < scenarios.size(); ++i) rows.push_back(dense.Run(i));
    return rows;
  }
  SweepRow Played(size_t i) const { return runner_.Run(i, scenarios[i]); }
  uint64_t ShapeOf(size_t i) const {
    return runner_.Play(i, scenarios[i], false).work.value_or(WholeWork{}).shape;
  }

 private:
  BuiltGraph built_;
  ReplayCheck replay_;
  SweepPlan plan_;
  SweepRunner runner_;

 public:
  std::vector<std::vector<Application>> scenarios;
};

size_t CountBetween(const std::vector<SweepRow>& rows) {
  return static_cast<size_t>(std::ranges::count_if(rows, &SweepRow::between));
}

double Off(double a, double b) { return std::fabs(a / b - 1); }

void ExpectRowsAreWhatWhatIfSays(const Swept& sweep) {
  for (const SweepRow& row : sweep.Rows()) {
    SweepRow played = sweep.Played(row.index);
    if (row.between) {
      EXPECT_LE(Off(row.low->seconds(), played.low->seconds()), 0.001) << row.index;
      EXPECT_LE(Off(row.high->seconds(), played.high->seconds()), 0.001) << row.index;
      EXPECT_LE(Off(*row.least_speedup, *played.least_speedup), 0.001) << row.index;
      EXPECT_LE(Off(*row.most_speedup, *played.most_speedup), 0.001) << row.index;
      played.low = row.low, played.high = row.high, played.between = true;
      played.least_speedup = row.least_speedup, played.most_speedup = row.most_speedup;
    }
    EXPECT_EQ(row, played) << row.index;
  }
}

TEST(DenseSweep, RowsAreWhatWhatIfSaysAndIntervalsAreToAThousandth) {
  for (const char* example : {"resnet50", "launch-bound"}) {
    SCOPED_TRACE(example);
    const Swept sweep(example, "speedup(kernel:.,1.05..4.05+0.025)");
    ExpectRowsAreWhatWhatIfSays(sweep);
    const size_t between = CountBetween(sweep.Rows());
    EXPECT_GT(between, sweep.scenarios.size() / 2);
    EXPECT_LT(between, sweep.scenarios.size());
  }
}

// The straight lines between its neighbours miss by 2 % where kernels stop to matter.
TEST(DenseSweep, WhereThePathBendsMoreRowsArePlayed) {
  const auto trace = ImportFile(DAYDREAM_SOURCE_DIR "/tests/data/h200/bert_base.base.ddtrace");
  const Swept sweep(BuildGraph(trace.value()).value(), "speedup(kernel:.,1.05..10+0.09)");
  ExpectRowsAreWhatWhatIfSays(sweep);
  EXPECT_GT(CountBetween(sweep.Rows()), sweep.scenarios.size() / 2);
}

// One row in the middle lies between its neighbours by chance, and those around it do not.
TEST(DenseSweep, OneRowInTheMiddleIsNotEnough) {
  const auto file = RealTraceFolder() / "loader/resnet50-v100.workers4.b.json.gz";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there";
  const auto trace = ImportFile(file.string());
  ExpectRowsAreWhatWhatIfSays({BuildGraph(trace.value()).value(), "speedup(op:.,1.02..6+0.05)"});
}

TEST(DenseSweep, OnlyNumbersInOrderAreALine) {
  std::string patterns, falling;
  for (int i = 0; i < 70; ++i) {
    patterns += fmt::format("{}kernel:.|x{}", i == 0 ? "" : ",", i);
    falling += fmt::format("{}{}", i == 0 ? "" : ",", 9 - 0.1 * i);
  }
  for (const std::string& spec :
       {"speedup({" + patterns + "},2)", "speedup(kernel:.,{" + falling + "})"}) {
    EXPECT_EQ(CountBetween(Swept("launch-bound", spec).Rows()), 0U) << spec;
  }
}

TEST(DenseSweep, EveryLineOfACrossedSweepIsDenseByItself) {
  const Swept sweep("launch-bound", "speedup(class:gemm,{1.5,3}),speedup(kernel:.,1.1..1.75+0.01)");
  ASSERT_EQ(sweep.scenarios.size(), 2 * 66U);
  ExpectRowsAreWhatWhatIfSays(sweep);
  std::vector<SweepRow> rows = sweep.Rows();
  EXPECT_FALSE(rows[0].between);
  EXPECT_FALSE(rows[65].between);
  EXPECT_FALSE(rows[66].between);
  EXPECT_GT(CountBetween(rows), 0U);
}

TEST(DenseSweep, RowsAreTheSameWhateverElseIsAskedFor) {
  const Swept sweep("resnet50", "speedup(kernel:.,1.05..4.05+0.025)");
  const std::vector<SweepRow> rows = sweep.Rows();
  for (size_t i = 0; i < rows.size(); i += 7) EXPECT_EQ(sweep.Dense().Run(i), rows[i]) << i;
  std::vector<size_t> turn;
  for (size_t i = rows.size(); i-- > 0;) turn.push_back(i);
  DenseSweep dense = sweep.Dense();
  dense.PutInTurn(turn);
  EXPECT_EQ(turn.size(), rows.size());
  for (size_t i : turn) EXPECT_EQ(dense.Run(i), rows[i]) << i;
}

// Beside optimizations that edit more than times, and tell what they do with other times.
TEST(DenseSweep, RowsOfOneShapeAreALineWhateverItsShapeIs) {
  for (const char* beside : {"fuse", "amp", "compile", "batch(x2),fuse"}) {
    SCOPED_TRACE(beside);
    const Swept sweep("launch-bound", fmt::format("{},speedup(kernel:.,1.05..1.75+0.01)", beside));
    ExpectRowsAreWhatWhatIfSays(sweep);
    EXPECT_GT(CountBetween(sweep.Rows()), sweep.scenarios.size() / 3);
  }
}

// Regions with fewer launches are not compiled.
TEST(DenseSweep, RowsOfSeveralShapesAreWhatWhatIfSays) {
  const Swept sweep("launch-bound", "compile(min_launches=2..71)");
  std::set<uint64_t> shapes;
  for (size_t i = 0; i < sweep.scenarios.size(); ++i) shapes.insert(sweep.ShapeOf(i));
  ASSERT_GT(shapes.size(), 1U);
  ExpectRowsAreWhatWhatIfSays(sweep);
}

TEST(DenseSweep, ValuesThatRoundToTheSameTimesHaveTheSameInterval) {
  const Swept sweep("launch-bound", "speedup(kernel:.,1000..1000.0099+0.0001)");
  ExpectRowsAreWhatWhatIfSays(sweep);
  EXPECT_GT(CountBetween(sweep.Rows()), sweep.scenarios.size() / 2);
}

TEST(DenseSweep, PlaysAllOfFewValues) {
  EXPECT_EQ(CountBetween(Swept("resnet50", "speedup(kernel:.,1.05..3.55+0.05)").Rows()), 0U);
}

// Every number of workers is a shape until more of them bring nothing.
TEST(DenseSweep, ValuesThatComeOutAlikeHaveTheSameInterval) {
  const Swept sweep("resnet50", "prefetch(1..70)");
  ExpectRowsAreWhatWhatIfSays(sweep);
  EXPECT_GT(CountBetween(sweep.Rows()), 0U);
}

TEST(DenseSweep, WithoutIntervalsNoneLieBetween) {
  const std::vector<SweepRow> rows =
      Swept("launch-bound", "speedup(kernel:.,1.05..4.05+0.025)", false).Rows();
  EXPECT_EQ(CountBetween(rows), 0U);
  EXPECT_TRUE(std::ranges::none_of(rows, [](const SweepRow& r) { return r.low.has_value(); }));
}

}  // namespace
}  // namespace daydream
