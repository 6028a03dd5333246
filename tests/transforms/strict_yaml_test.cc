#include "transforms/core/strict_yaml.h"

#include <gtest/gtest.h>

namespace daydream {
namespace {

// The code of the error and its place, or "fine".
std::string Verdict(std::string_view text) {
  SourceText source("f.yaml", text);
  auto root = ReadStrictYaml(source);
  if (root.ok()) return "fine";
  Diagnostic d = DiagnosticOf(root.status());
  return d.code + " " + d.where.substr(0, d.where.find('\n'));
}

TEST(StrictYaml, KeepsTextOrderAndPlaces) {
  SourceText source("f.yaml", "b: no\na: [010, 'x: y', \"z\"]\n");
  auto root = ReadStrictYaml(source);
  ASSERT_TRUE(root.ok()) << Message(root.status());
  ASSERT_EQ(root->keys.size(), 2u);
  EXPECT_EQ(root->keys[0].text, "b");
  EXPECT_EQ(root->items[0].text, "no");
  const YamlNode* a = root->Find("a");
  ASSERT_NE(a, nullptr);
  ASSERT_EQ(a->items.size(), 3u);
  EXPECT_EQ(a->items[0].text, "010");
  EXPECT_EQ(a->items[1].text, "x: y");
  EXPECT_EQ(a->items[1].place, (Place{2, 10}));
  EXPECT_FALSE(a->items[0].quoted);
  EXPECT_TRUE(a->items[2].quoted);
  EXPECT_EQ(PlaceInside(source, a->items[1], 3), (Place{2, 14}));
}

TEST(StrictYaml, ReadsJson) {
  SourceText source("f.json", "{\"a\": {\"b\": [1, \"two\\n\"]},\n \"c\": null}");
  auto root = ReadStrictYaml(source);
  ASSERT_TRUE(root.ok()) << Message(root.status());
  EXPECT_EQ(root->Find("a")->Find("b")->items[1].text, "two\n");
}

TEST(StrictYaml, RefusesWhatNobodyMeans) {
  EXPECT_EQ(Verdict("a: 1\nb: 2\na: 3\n"), "E0404 f.yaml:3:1");
  EXPECT_EQ(Verdict("a: &x 1\nb: 2\n"), "E0403 f.yaml:1:4");
  EXPECT_EQ(Verdict("a: &x [1]\nb: *x\n"), "E0403 f.yaml:1:4");
  EXPECT_EQ(Verdict("a: !!int 1\n"), "E0403 f.yaml:1:4");
  EXPECT_EQ(Verdict("a: !custom {b: 1}\n"), "E0403 f.yaml:1:4");
  EXPECT_EQ(Verdict("a: 1\n---\nb: 1\n").substr(0, 5), "E0403");
  EXPECT_EQ(Verdict("[a]: 1\n").substr(0, 5), "E0403");
  EXPECT_EQ(Verdict("a: *a\n").substr(0, 5), "E0402");
  // Escapes that a terminal would obey: ESC, BEL, and NEL of the second set of controls.
  EXPECT_EQ(Verdict("a: 1\nb: \"s\\e]0;pwn\"\n"), "E0403 f.yaml:2:4");
  EXPECT_EQ(Verdict("a: \"s\\a\"\n"), "E0403 f.yaml:1:4");
  EXPECT_EQ(Verdict("a: \"s\\N\"\n"), "E0403 f.yaml:1:4");
  EXPECT_EQ(Verdict("a: \"s\\t\\n\"\n"), "fine");
}

TEST(StrictYaml, RefusesWhatIsNotYaml) {
  EXPECT_EQ(Verdict("").substr(0, 5), "E0402");
  EXPECT_EQ(Verdict("# only a comment\n").substr(0, 5), "E0402");
  EXPECT_EQ(Verdict("a: [1, 2\nb: 3\n").substr(0, 5), "E0402");
  EXPECT_EQ(Verdict("a: b: c\n"), "E0402 f.yaml:1:5");
  EXPECT_EQ(Verdict(std::string_view("a\0b", 3)), "E0401 f.yaml:1:2");
  EXPECT_EQ(Verdict("a: 1\nb: \xff\n"), "E0401 f.yaml:2:4");
  EXPECT_EQ(Verdict("a: 1\nb: \xc2\x9b\n"), "E0401 f.yaml:2:4");
}

TEST(StrictYaml, IsNotBlownUp) {
  EXPECT_EQ(Verdict(std::string(kMostYamlBytes + 1, 'a')).substr(0, 5), "E0401");
  EXPECT_EQ(Verdict(std::string(100000, '[')).substr(0, 5), "E0403");
  EXPECT_EQ(Verdict(std::string(100000, '{')).substr(0, 5), "E0403");
  std::string many = "a: [";
  for (int i = 0; i < 20000; ++i) many += "1,";
  EXPECT_EQ(Verdict(many + "1]").substr(0, 5), "E0403");
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  EXPECT_EQ(Verdict(deep).substr(0, 5), "E0403");
}

TEST(SourceText, ErrorsShowTheLineWithACaret) {
  SourceText source("dir/f.yaml", "a: 1\nsteps: \xc3\xa4\xc3\xb6 wrong\n");
  Diagnostic d = DiagnosticOf(
      source.Error(absl::StatusCode::kInvalidArgument, {2, 13}, 5, {.what = "no"}, "hint"));
  EXPECT_EQ(d.where, "dir/f.yaml:2:11\nsteps: \xc3\xa4\xc3\xb6 wrong\n          ^^^^^ hint");
  EXPECT_EQ(source.Tag({2, 1}), "f.yaml:2");
}

TEST(SourceText, LongLinesAreShownInPart) {
  SourceText source("f", std::string(500, 'a') + "X" + std::string(500, 'b'));
  Diagnostic d =
      DiagnosticOf(source.Error(absl::StatusCode::kInvalidArgument, {1, 501}, 1, {.what = "no"}));
  EXPECT_LT(d.where.size(), 300u);
  size_t line = d.where.find('\n') + 1, carets = d.where.rfind('\n') + 1;
  EXPECT_EQ(d.where[line + (d.where.find('^') - carets)], 'X');
  EXPECT_EQ(d.where.substr(0, line), "f:1:501\n");
}

}  // namespace
}  // namespace daydream
