// The head of each docs/optimizations/NAME.md is what the program knows about the optimization.
// DD_UPDATE_DOCS=1 rewrites it.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr std::string_view kBegin = "<!-- generated: DD_UPDATE_DOCS=1 optimization_docs_test -->\n";
constexpr std::string_view kEnd = "<!-- end of generated text -->\n";

std::string PathOf(std::string_view page) {
  return std::string(DAYDREAM_SOURCE_DIR) + "/docs/optimizations/" + std::string(page) + ".md";
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string RangeOf(const ParamSpec& p) {
  if (p.unit == Unit::kText) {
    return p.choices.empty() ? "" : fmt::format("{}", fmt::join(p.choices, ", "));
  }
  std::string plausible = FormatValue(p.low, p.unit);
  if (p.high != p.low) plausible += " to " + FormatValue(p.high, p.unit);
  return plausible;
}

std::string HeadOf(const Transform& t) {
  std::string text = fmt::format("{}{}.\n\n", kBegin, t.summary);
  if (t.bound) text += "A bound, not a prediction: the report prints it with `<=`.\n\n";
  if (t.params.empty()) text += "No parameters.\n\n";
  if (!t.params.empty()) {
    text +=
        "| parameter | default | plausible | what | where the numbers come from |\n"
        "|---|---|---|---|---|\n";
    for (const ParamSpec& p : t.params) {
      std::string fallback = p.required              ? "required"
                             : p.unit == Unit::kText ? std::string(p.text_fallback)
                                                     : FormatValue(p.fallback, p.unit);
      text += fmt::format("| `{}` | {} | {} | {} | {} |\n", p.name, fallback, RangeOf(p), p.help,
                          p.source);
    }
    text += "\n";
  }
  text +=
      fmt::format("**Model.** {}\n\n**Memory.** {}\n\n**Not modelled.** {}\n\n**Sources.** {}.\n{}",
                  t.model, t.memory_model, t.ignores, t.sources, kEnd);
  return text;
}

class OptimizationPage : public testing::TestWithParam<const Transform*> {};

TEST_P(OptimizationPage, BeginsWithWhatTheProgramKnows) {
  const Transform& t = *GetParam();
  const std::string path = PathOf(t.name);
  std::string page = ReadFile(path);
  const size_t begin = page.find(kBegin), end = page.find(kEnd);
  ASSERT_NE(begin, std::string::npos) << path << " has no generated head";
  ASSERT_NE(end, std::string::npos) << path;
  const std::string head = HeadOf(t);
  if (std::getenv("DD_UPDATE_DOCS") != nullptr) {
    page.replace(begin, end + kEnd.size() - begin, head);
    std::ofstream(path, std::ios::binary) << page;
    return;
  }
  EXPECT_EQ(page.substr(begin, end + kEnd.size() - begin), head);
}

TEST_P(OptimizationPage, SaysHowWellItWasMeasured) {
  const std::string page = ReadFile(PathOf(GetParam()->name));
  EXPECT_NE(page.find("## When it is wrong"), std::string::npos);
  EXPECT_NE(page.find("## Measured"), std::string::npos);
}

TEST_P(OptimizationPage, IsInTheIndex) {
  const std::string index = ReadFile(PathOf("README"));
  EXPECT_NE(index.find(fmt::format("[{0}]({0}.md)", GetParam()->name)), std::string::npos);
}

std::string NameOf(const testing::TestParamInfo<const Transform*>& info) {
  std::string name(info.param->name);
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, OptimizationPage,
                         testing::ValuesIn(Transforms().begin(), Transforms().end()), NameOf);

}  // namespace
}  // namespace daydream
