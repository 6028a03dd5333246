#include "transforms/core/params.h"

#include <array>

#include <gtest/gtest.h>

namespace daydream {
namespace {

constexpr std::string_view kColors[] = {"red", "green"};
constexpr ParamSpec kSpecs[] = {
    {.name = "workers",
     .unit = Unit::kNone,
     .fallback = 4,
     .min = 1,
     .max = 64,
     .source = "test",
     .whole = true},
    {.name = "by", .unit = Unit::kFactor, .fallback = 2, .min = 0.5, .max = 8, .source = "test"},
    {.name = "color",
     .unit = Unit::kText,
     .text_fallback = "red",
     .choices = kColors,
     .source = "test"},
};
using Args = std::vector<std::pair<std::string, std::string>>;

double Value(std::string_view text, Unit unit) {
  auto value = ParseValue(text, unit);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *value : -1;
}

std::string ErrorOf(const Args& args) {
  auto params = BindParams("paint", kSpecs, args);
  EXPECT_FALSE(params.ok());
  Diagnostic d = DiagnosticOf(params.status());
  EXPECT_EQ(d.code, "E0103");
  return d.what;
}

TEST(ParseValue, KnowsUnits) {
  EXPECT_EQ(Value("24GB/s", Unit::kBandwidth), 24e9);
  EXPECT_EQ(Value("100Gbps", Unit::kBandwidth), 12.5e9);
  EXPECT_EQ(Value("64MiB", Unit::kBytes), 64.0 * 1024 * 1024);
  EXPECT_EQ(Value("64 MB", Unit::kBytes), 64e6);
  EXPECT_EQ(Value("1.2us", Unit::kDuration), 1200);
  EXPECT_EQ(Value("3\xc2\xb5s", Unit::kDuration), 3000);
  EXPECT_EQ(Value("0", Unit::kDuration), 0);
  EXPECT_EQ(Value("40%", Unit::kShare), 0.4);
  EXPECT_EQ(Value("0.4", Unit::kShare), 0.4);
  EXPECT_EQ(Value("x2", Unit::kFactor), 2);
  EXPECT_EQ(Value("2x", Unit::kFactor), 2);
  EXPECT_EQ(Value(" 1e3 ", Unit::kNone), 1000);
}

TEST(ParseValue, RefusesWhatCouldMeanTwoThings) {
  EXPECT_FALSE(ParseValue("64", Unit::kBytes).ok());
  EXPECT_FALSE(ParseValue("25", Unit::kBandwidth).ok());
  EXPECT_FALSE(ParseValue("12", Unit::kDuration).ok());
  EXPECT_FALSE(ParseValue("25Gb", Unit::kBandwidth).ok());
  EXPECT_FALSE(ParseValue("x2x", Unit::kFactor).ok());
}

TEST(ParseValue, RefusesWhatIsNoNumber) {
  for (std::string_view text : {"", "nan", "inf", "-3us", "us", "1e999us", "0x10us", "1,5us"}) {
    EXPECT_FALSE(ParseValue(text, Unit::kDuration).ok()) << text;
  }
}

TEST(FormatValue, IsReadBackAsTheSameValue) {
  const std::pair<double, Unit> values[] = {
      {4, Unit::kNone},           {2.5, Unit::kFactor},     {0.15, Unit::kShare},
      {1234567, Unit::kDuration}, {64 << 20, Unit::kBytes}, {25e9, Unit::kBandwidth},
      {0, Unit::kDuration},       {1e9, Unit::kBytes},      {9000, Unit::kDuration}};
  for (auto [value, unit] : values) {
    EXPECT_EQ(Value(FormatValue(value, unit), unit), value) << FormatValue(value, unit);
  }
  EXPECT_EQ(FormatValue(9000, Unit::kDuration), "9us");
  EXPECT_EQ(FormatValue(64 << 20, Unit::kBytes), "64MiB");
  EXPECT_EQ(FormatValue(25e9, Unit::kBandwidth), "25GB/s");
  EXPECT_EQ(FormatValue(0.15, Unit::kShare), "15%");
}

TEST(BindParams, FillsInDefaults) {
  auto params = BindParams("paint", kSpecs, {});
  ASSERT_TRUE(params.ok());
  EXPECT_EQ((*params)["workers"], 4);
  EXPECT_EQ(params->text("color"), "red");
  EXPECT_FALSE(params->given("by"));
  EXPECT_EQ(params->spelled(), "paint");
}

TEST(BindParams, TakesValuesByPlaceAndByName) {
  Args args = {{"color", "green"}, {"", "8"}, {"", "3x"}};
  auto params = BindParams("paint", kSpecs, args);
  ASSERT_TRUE(params.ok());
  EXPECT_EQ((*params)["workers"], 8);
  EXPECT_EQ((*params)["by"], 3);
  EXPECT_EQ(params->spelled(), "paint(workers=8,by=3x,color=green)");
}

TEST(BindParams, NotesWhatIsAskedFor) {
  auto params = BindParams("paint", kSpecs, {});
  ASSERT_TRUE(params.ok());
  AskedParams asked;
  params->NoteIn(&asked);
  const Params copy = *params;
  EXPECT_TRUE(asked.empty());
  EXPECT_EQ((*params)["workers"], 4);
  EXPECT_EQ(copy.text("color"), "red");
  EXPECT_EQ(asked, (AskedParams{"color", "workers"}));
  EXPECT_FALSE(copy.given("by"));
  EXPECT_TRUE(asked.contains("by"));
}

TEST(BindParams, NamesTheMistake) {
  EXPECT_EQ(ErrorOf({{"worker", "8"}}),
            "paint: unknown parameter 'worker', did you mean 'workers'?");
  EXPECT_EQ(ErrorOf({{"size", "8"}}), "paint: unknown parameter 'size'; it has workers, by, color");
  EXPECT_EQ(ErrorOf({{"workers", "65"}}), "paint: workers = 65 is out of range (1 to 64)");
  EXPECT_EQ(ErrorOf({{"workers", "2.5"}}), "paint: workers = 2.5 is no whole number");
  EXPECT_EQ(ErrorOf({{"color", "gren"}}), "paint: color cannot be 'gren'; did you mean 'green'?");
  EXPECT_EQ(ErrorOf({{"", "1"}, {"workers", "1"}}), "paint: workers is given twice");
  EXPECT_EQ(ErrorOf({{"", "1"}, {"", "1"}, {"", "red"}, {"", "1"}}), "paint: too many values: '1'");
  EXPECT_EQ(ErrorOf({{"by", "soon"}}), "paint: by: 'soon' is not a factor, such as 2x");
}

}  // namespace
}  // namespace daydream
