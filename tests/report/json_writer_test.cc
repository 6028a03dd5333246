#include "report/text/json_writer.h"

#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace daydream {
namespace {

TEST(JsonWriter, WritesNestedContainers) {
  JsonWriter json;
  json.BeginObject().Key("a").BeginArray().Int(1).Int(-2).EndArray();
  json.Key("b").BeginInlineObject().Key("c").Bool(true).Key("d").Null().EndObject();
  json.Key("e").BeginObject().EndObject().EndObject();
  std::string text = json.Take();
  EXPECT_EQ(text,
            "{\n  \"a\": [\n    1,\n    -2\n  ],\n  \"b\": {\"c\": true, \"d\": null},\n"
            "  \"e\": {}\n}");
  EXPECT_EQ(nlohmann::json::parse(text)["a"][1], -2);
}

TEST(JsonWriter, EveryStringReadsBack) {
  for (const std::string& text :
       {std::string("plain"), std::string("quote \" slash \\ / tab \t\n\r\b\f"),
        std::string("</script><img onerror=1>"), std::string("\0nul", 4),
        std::string("µ größer 漢字 😀"), std::string("\x7f\x01")}) {
    EXPECT_EQ(nlohmann::json::parse(JsonQuoted(text)).get<std::string>(), text);
  }
}

TEST(JsonWriter, CannotCloseAScriptElement) {
  EXPECT_EQ(JsonQuoted("</script>").find('<'), std::string::npos);
}

TEST(JsonWriter, RepairsBrokenUtf8) {
  for (std::string text : {"\xff", "a\xc3", "\xe2\x82", "\xc0\xaf", "\xed\xa0\x80",
                           "\xf5\x80\x80\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80"}) {
    nlohmann::json value = nlohmann::json::parse(JsonQuoted(text));
    EXPECT_NE(value.get<std::string>().find("\xef\xbf\xbd"), std::string::npos) << text;
  }
}

TEST(JsonWriter, NumbersReadBackExactly) {
  JsonWriter json(0);
  json.BeginArray().Double(0.1).Double(1e300).Int(std::numeric_limits<int64_t>::min());
  json.UInt(std::numeric_limits<uint64_t>::max()).Double(std::numeric_limits<double>::infinity());
  json.Double(std::numeric_limits<double>::quiet_NaN()).Rounded(1.50, 4).Rounded(-0.00001, 3);
  json.EndArray();
  nlohmann::json value = nlohmann::json::parse(json.Take());
  EXPECT_EQ(value[0], 0.1);
  EXPECT_EQ(value[1], 1e300);
  EXPECT_EQ(value[2], std::numeric_limits<int64_t>::min());
  EXPECT_EQ(value[3], std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(value[4].is_null());
  EXPECT_TRUE(value[5].is_null());
  EXPECT_EQ(value[6], 1.5);
  EXPECT_EQ(value[7], 0);
}

TEST(JsonWriterDeathTest, MisuseAborts) {
  EXPECT_DEATH(JsonWriter().BeginObject().Int(1), "check failed");
  EXPECT_DEATH(JsonWriter().BeginArray().Key("a"), "check failed");
  EXPECT_DEATH(JsonWriter().BeginArray().EndObject(), "check failed");
}

}  // namespace
}  // namespace daydream
