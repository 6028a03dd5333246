#include "transforms/core/expression.h"

#include <gtest/gtest.h>

namespace daydream {
namespace {

const std::map<std::string, Unit, std::less<>> kParams = {
    {"bw", Unit::kBandwidth}, {"x", Unit::kFactor}, {"late", Unit::kDuration}};

// Two tasks: 10 us with 5000 bytes, 30 us with 1000 bytes and unknown flops.
class Values : public ExpressionValues {
 public:
  double Param(std::string_view name) const override {
    if (name == "bw") return InBaseUnits(2e9, Unit::kBandwidth);
    return name == "x" ? 2 : 3000;
  }
  std::optional<double> Value(TaskId t, Field f) override {
    if (!t.valid()) return std::nullopt;
    bool first = t.index() == 0;
    if (f == Field::kTime) return first ? 10000 : 30000;
    if (f == Field::kBytes) return first ? 5000 : 1000;
    if (f == Field::kFlops && first) return 7e6;
    return std::nullopt;
  }
  std::optional<double> Value(TaskId, GpuFact f, DType) override {
    if (f == GpuFact::kHbmBandwidth) return 1000;  // bytes per ns
    return std::nullopt;
  }
};

std::shared_ptr<const Expression> Read(std::string_view text, ExpressionError& error,
                                       ExpressionUse use = ExpressionUse::kTask,
                                       Dimension wanted = kTime) {
  return ParseExpression(text, kParams, use, wanted, error);
}

double Task(std::string_view text, Dimension wanted = kTime) {
  ExpressionError error;
  auto e = Read(text, error, ExpressionUse::kTask, wanted);
  EXPECT_NE(e, nullptr) << text << ": " << error.what;
  if (e == nullptr) return -1;
  Values values;
  const TaskId both[] = {TaskId(0), TaskId(1)};
  return Evaluation(*e, values, both).Of(TaskId(0)).value_or(-1);
}

double Group(std::string_view text) {
  ExpressionError error;
  auto e = Read(text, error, ExpressionUse::kGroup);
  EXPECT_NE(e, nullptr) << text << ": " << error.what;
  if (e == nullptr) return -1;
  Values values;
  const TaskId both[] = {TaskId(0), TaskId(1)};
  return Evaluation(*e, values, both).Of(TaskId::None()).value_or(-1);
}

// "COLUMN what", the column from 0; "" when the text is fine.
std::string Wrong(std::string_view text, ExpressionUse use = ExpressionUse::kTask) {
  ExpressionError error;
  if (Read(text, error, use) != nullptr) return "";
  return fmt::format("{} {}", error.at, error.what);
}

TEST(Expression, ComputesWithUnits) {
  EXPECT_EQ(Task("time"), 10000);
  EXPECT_EQ(Task("time * 1"), 10000);
  EXPECT_EQ(Task("2us + 1ms * 0.5"), 502000);
  EXPECT_EQ(Task("1.5e1us"), 15000);
}

TEST(Expression, KnowsPrecedence) {
  EXPECT_EQ(Task("2us + 3us * 2"), 8000);
  EXPECT_EQ(Task("(2us + 3us) * 2"), 10000);
  EXPECT_EQ(Task("-2us + 3us"), 1000);
  EXPECT_EQ(Task("2 ^ 3 ^ 2", kPlain), 512);
  EXPECT_EQ(Task("-2 ^ 2", kPlain), -4);
  EXPECT_EQ(Task("10us - 2us - 3us"), 5000);
  EXPECT_EQ(Task("12us / 2 / 3"), 2000);
  EXPECT_EQ(Task("if(time > 5us and not bytes < 1KB or 1 == 2, 1us, 2us)"), 1000);
}

TEST(Expression, RatesTurnBytesIntoTime) {
  EXPECT_EQ(Task("bytes / $bw"), 2500);
  EXPECT_EQ(Task("bytes / 2GB/s"), 2500);
  EXPECT_EQ(Task("bytes / gpu.hbm_bw"), 5);
  EXPECT_EQ(Task("flops / 7TFLOPS"), 1000);
  EXPECT_EQ(Task("10us/sum(time) * 4us"), 1000);
  EXPECT_EQ(Task("max(time - 20us, 0)"), 0);
  EXPECT_EQ(Task("time * 40%"), 4000);
  EXPECT_EQ(Task("(time ^ 2) / 5us"), 20000);
  EXPECT_EQ(Task("time * $x + $late"), 23000);
}

TEST(Expression, AggregatesRunOverTheGroup) {
  EXPECT_EQ(Group("sum(time)"), 40000);
  EXPECT_EQ(Group("mean(time)"), 20000);
  EXPECT_EQ(Group("min(time)"), 10000);
  EXPECT_EQ(Group("max(time)"), 30000);
  EXPECT_EQ(Group("max(min(time), 15us)"), 15000);
  EXPECT_EQ(Group("sum(bytes) / $bw"), 3000);
  EXPECT_EQ(Group("count() * 1us"), 2000);
  EXPECT_EQ(Task("time - mean(time) + 15us"), 5000);
}

TEST(Expression, MissingValuesAreNamed) {
  ExpressionError error;
  auto e = Read("time * (flops / 7MFLOP)", error);
  ASSERT_NE(e, nullptr) << error.what;
  Values values;
  Evaluation evaluation(*e, values);
  EXPECT_EQ(evaluation.Of(TaskId(0)), 10000);
  EXPECT_EQ(evaluation.Of(TaskId(1)), std::nullopt);
  EXPECT_EQ(evaluation.missing(), "flops");
  EXPECT_EQ(Group("sum(flops) / 1TFLOPS"), -1);
}

TEST(Expression, UnitsThatDoNotFitAreFoundWhenRead) {
  EXPECT_EQ(Wrong("5ms + 3MB"), "6 time and bytes cannot be added");
  EXPECT_EQ(Wrong("time > 3MB", ExpressionUse::kCondition), "7 time and bytes cannot be compared");
  EXPECT_EQ(Wrong("bytes"), "0 the value is bytes, not time");
  EXPECT_EQ(Wrong("bytes * time"), "0 the value is time bytes, not time");
  EXPECT_EQ(Wrong("if(time > 1us, 1us, 2)"), "20 time and a plain number cannot be alternatives");
  EXPECT_EQ(Wrong("time ^ 0.5"), "7 time has whole powers only");
  EXPECT_EQ(Wrong("time ^ bytes"), "7 a power is a plain number");
  EXPECT_EQ(Wrong("time > 5us"), "0 this is a condition, not a number");
  EXPECT_EQ(Wrong("time", ExpressionUse::kCondition), "0 this is a number, not a condition");
  EXPECT_EQ(Wrong("time ^ 5 * time ^ 5"), "11 the unit has too high a power");
}

TEST(Expression, MistakesHaveTheirPlace) {
  EXPECT_EQ(Wrong("tme * 2"), "0 'tme' is not known");
  EXPECT_EQ(Wrong("time * $y"), "7 there is no parameter 'y'");
  EXPECT_EQ(Wrong("time * 2 us").substr(0, 2), "9 ");
  EXPECT_EQ(Wrong("time * 2parsecs").substr(0, 2), "7 ");
  EXPECT_EQ(Wrong("(time"), "0 this '(' is never closed");
  EXPECT_EQ(Wrong("time +"), "6 the expression cannot be read");
  EXPECT_EQ(Wrong("gpu.speed"), "0 the GPU has no 'speed'");
  EXPECT_EQ(Wrong("gpu.peak(fp33)").substr(0, 2), "9 ");
  EXPECT_EQ(Wrong("sum()"), "0 sum takes 1 value, not 0");
  EXPECT_EQ(Wrong("time", ExpressionUse::kGroup), "0 which of the merged tasks is meant?");
  EXPECT_EQ(Wrong("sum(sum(time))", ExpressionUse::kGroup), "4 sums of sums have no meaning here");
  EXPECT_EQ(Wrong("sum(time) > 1us", ExpressionUse::kCondition).substr(0, 2), "0 ");
  EXPECT_NE(Wrong(""), "");
  EXPECT_NE(Wrong("system('rm')"), "");
}

TEST(Expression, AreBounded) {
  EXPECT_NE(Wrong(std::string(100, '(') + "time" + std::string(100, ')')), "");
  EXPECT_NE(Wrong(std::string(1000, '-') + "time"), "");
  EXPECT_NE(Wrong("time" + std::string(3000, ' ')), "");
  std::string sum = "time", power = "2";
  for (int i = 0; i < 300; ++i) sum += "+time", power += "^2";
  EXPECT_NE(Wrong(sum), "");
  EXPECT_NE(Wrong(power), "");
}

}  // namespace
}  // namespace daydream
