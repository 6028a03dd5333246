// The head of each docs/optimizations/NAME.md is what the program knows about the optimization, and
// the index is the list of the program.
// DD_UPDATE_DOCS=1 rewrites it.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "report/predict/residuals.h"
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

// Expects `text` between the two marks of the page, or puts it there.
void ExpectGenerated(const std::string& path, const std::string& text) {
  std::string page = ReadFile(path);
  const size_t begin = page.find(kBegin), end = page.find(kEnd);
  ASSERT_NE(begin, std::string::npos) << path << " has no generated text";
  ASSERT_NE(end, std::string::npos) << path;
  const std::string old = page.substr(begin, end + kEnd.size() - begin);
  if (std::getenv("DD_UPDATE_DOCS") == nullptr) {
    EXPECT_EQ(old, text) << "DD_UPDATE_DOCS=1 renews it";
  } else if (old != text) {
    page.replace(begin, old.size(), text);
    std::ofstream(path, std::ios::binary) << page;
  }
}

TEST_P(OptimizationPage, BeginsWithWhatTheProgramKnows) {
  ExpectGenerated(PathOf(GetParam()->name), HeadOf(*GetParam()));
}

TEST_P(OptimizationPage, SaysHowWellItWasMeasured) {
  const std::string page = ReadFile(PathOf(GetParam()->name));
  EXPECT_NE(page.find("## When it is wrong"), std::string::npos);
  EXPECT_NE(page.find("## Measured"), std::string::npos);
}

// "two recorded pairs: off by 0.4 % to 3.4 %", from the rows that also make the intervals.
std::string ComparedText(const Transform& t) {
  if (t.stated_by_user) return "";
  size_t recorded = 0, composed = 0, published = 0;
  double least = INFINITY, most = 0;
  for (const ResidualGroup& g : Residuals()) {
    if (g.kind != t.name && !(t.same_work && g.kind.starts_with(t.name))) continue;
    recorded += g.recorded, composed += g.composed, published += g.published;
    least = std::min(least, g.least), most = std::max(most, g.most);
  }
  if (recorded + composed + published == 0) return "not yet";
  std::vector<std::string> kinds;
  if (recorded > 0) kinds.push_back(fmt::format("{} recorded", recorded));
  if (composed > 0) kinds.push_back(fmt::format("{} composed", composed));
  if (published > 0) kinds.push_back(fmt::format("{} published", published));
  const std::string rows = fmt::format("{}", fmt::join(kinds, ", "));
  return recorded + composed + published == 1
             ? fmt::format("{}: off by {:.1f} %", rows, 100 * most)
             : fmt::format("{}: off by {:.1f} % to {:.1f} %", rows, 100 * least, 100 * most);
}

std::string IndexTables() {
  std::string text = std::string(kBegin) + "| option | what happens | compared |\n|---|---|---|\n";
  for (const Transform* t : Transforms()) {
    if (t->bound) continue;
    text += fmt::format("| [{0}]({0}.md) | {1} | {2} |\n", t->name, t->summary, ComparedText(*t));
  }
  text +=
      "\nBounds, printed with `<=`: what no change of the kind can beat.\n\n"
      "| option | what happens |\n|---|---|\n";
  for (const Transform* t : Transforms()) {
    if (t->bound) text += fmt::format("| [{0}]({0}.md) | {1} |\n", t->name, t->summary);
  }
  return text + std::string(kEnd);
}

TEST(OptimizationIndex, IsTheListOfTheProgram) { ExpectGenerated(PathOf("README"), IndexTables()); }

std::string NameOf(const testing::TestParamInfo<const Transform*>& info) {
  std::string name(info.param->name);
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, OptimizationPage,
                         testing::ValuesIn(Transforms().begin(), Transforms().end()), NameOf);

}  // namespace
}  // namespace daydream
