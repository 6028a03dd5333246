// What stands in a list of the program has its tests and its page. A new importer, command, rule or
// optimization fails here until it has them; so a list in a page is never behind the program.
// DD_UPDATE_DOCS=1 rewrites the list of formats in docs/formats.md.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <re2/re2.h>

#include "base/text.h"
#include "tests/source_tree.h"
#include "trace/importer.h"
#include "transforms/core/select_term.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

const fs::path kRoot(DAYDREAM_SOURCE_DIR);
constexpr std::string_view kBegin = "<!-- generated: DD_UPDATE_DOCS=1 registries_test -->\n";
constexpr std::string_view kEnd = "<!-- end of generated text -->\n";

std::string TextOf(const std::string& path) { return ReadText(kRoot / path); }

// All test sources below `folder` as one text.
std::string TestsIn(const std::string& folder) {
  std::string text;
  for (const SourceFile& file : SourceFiles({"_test.cc"})) {
    if (file.path.starts_with(folder)) text += ReadText(kRoot / file.path);
  }
  return text;
}

std::string OutputOf(const std::string& args) {
  FILE* pipe = popen(fmt::format("'{}' {} 2>&1 </dev/null", DAYDREAM_BINARY, args).c_str(), "r");
  if (pipe == nullptr) return "";
  std::string output;
  std::array<char, 4096> buffer;
  for (size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    output.append(buffer.data(), n);
  }
  return pclose(pipe) == 0 ? output : "";
}

TEST(Importers, EachHasAFuzzTargetWithACorpus) {
  std::vector<std::string> missing;
  for (const Importer* importer : Importers()) {
    const std::string name = fmt::format("import_{}_fuzz", importer->name);
    const std::string target = fmt::format("tests/fuzz/{}.cc", name);
    if (!Contains(TextOf(target), fmt::format("\"{}\"", importer->name))) missing.push_back(target);
    const fs::path corpus = kRoot / "tests/fuzz/corpus" / name;
    if (!fs::is_directory(corpus) || fs::is_empty(corpus)) missing.push_back(corpus.string());
  }
  EXPECT_THAT(missing, IsEmpty());
}

TEST(Importers, EachHasATestOfItsName) {
  for (const Importer* importer : Importers()) {
    bool found = false;
    for (const SourceFile& file : SourceFiles({"_test.cc"})) {
      found |= file.path.starts_with("tests/trace/") && Contains(file.path, importer->name);
    }
    EXPECT_TRUE(found) << "no tests/trace/..." << importer->name << "_test.cc";
  }
}

TEST(Importers, EachSaysWhoWritesItHowToRecordItAndWhatItAnswers) {
  for (const Importer* importer : Importers()) {
    const RecorderFacts& recorder = importer->recorder;
    EXPECT_FALSE(recorder.writer.empty() || recorder.record.empty() || recorder.answers.empty())
        << importer->name << ": .recorder (trace/importer.h)";
  }
}

// A list between two marks of a page; DD_UPDATE_DOCS=1 renews it.
void ExpectList(const char* path, const std::string& rows) {
  const std::string list = fmt::format("{}{}{}", kBegin, rows, kEnd);
  std::string page = TextOf(path);
  const size_t begin = page.find(kBegin), end = page.find(kEnd);
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos && begin < end) << path;
  const std::string old = page.substr(begin, end + kEnd.size() - begin);
  if (std::getenv("DD_UPDATE_DOCS") != nullptr && old != list) {
    page.replace(begin, old.size(), list);
    std::ofstream(kRoot / path, std::ios::binary) << page;
    return;
  }
  EXPECT_EQ(old, list) << path << ": DD_UPDATE_DOCS=1 renews it";
}

TEST(Importers, TheirListsInThePagesAreThoseOfTheProgram) {
  std::string recorders =
      "| `--from` | written by | best recorded with | can answer |\n|---|---|---|---|\n";
  for (const Importer* importer : Importers()) {
    const RecorderFacts& recorder = importer->recorder;
    recorders += fmt::format("| `{}` | {} | `{}` | {} |\n", importer->name, recorder.writer,
                             recorder.record, recorder.answers);
  }
  ExpectList("docs/formats.md", recorders);
  ExpectList("docs/imports/README.md", recorders);
}

class EachCommand : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(DAYDREAM_BINARY)) GTEST_SKIP() << "the program is not built";
    for (const std::string& line : SplitLines(OutputOf("help --markdown"))) {
      if (line.starts_with("## daydream ")) names_.push_back(line.substr(12));
    }
    // The list of the program has a line for each.
    const std::string list = TextOf("tools/commands/commands.def");
    size_t lines = 0;
    for (size_t at = list.find("\nCOMMAND("); at != std::string::npos;
         at = list.find("\nCOMMAND(", at + 1)) {
      ++lines;
    }
    ASSERT_EQ(names_.size(), lines);
  }
  std::vector<std::string> names_;
};

TEST_F(EachCommand, HasACaseInTheTestsOfTheCommandLine) {
  const std::string tests = TestsIn("tests/tools/");
  for (const std::string& name : names_) {
    const bool run = Contains(tests, fmt::format("Run(\"{}", name)) ||
                     Contains(tests, fmt::format("(\"{} ", name)) ||
                     Contains(tests, fmt::format("\"daydream {}", name));
    EXPECT_TRUE(run) << "no test in tests/tools/ runs `daydream " << name << "`";
  }
}

TEST_F(EachCommand, ExplainsItselfWithAnExample) {
  for (const std::string& name : names_) {
    const std::string help = OutputOf(name + " --help");
    EXPECT_TRUE(Contains(help, "daydream " + name)) << name << ": " << help;
    EXPECT_TRUE(Contains(help, "\nexamples\n")) << name << ": " << help;
  }
}

TEST_F(EachCommand, ListsEachFlagThatItsUsageNames) {
  static const RE2 flag("(--?[a-z][a-z-]*)");
  for (const std::string& name : names_) {
    const std::string help = OutputOf(name + " --help");
    const size_t usage = help.find("usage: ");
    ASSERT_NE(usage, std::string::npos) << name;
    const std::string line = help.substr(usage, help.find('\n', usage) - usage);
    re2::StringPiece rest = line;
    for (std::string found; RE2::FindAndConsume(&rest, flag, &found);) {
      // In the list: "  -o, --output FILE    where to write".
      const std::string listed = fmt::format("\n  (?:-., |    )?{}[ ,\n]", found);
      EXPECT_TRUE(RE2::PartialMatch(help, listed)) << name << " " << found;
    }
  }
}

TEST(Selectors, TheirKeysAreInTheGlossaryAndInTheReference) {
  const std::string glossary = TextOf("docs/glossary.md");
  const std::string term = glossary.substr(glossary.find("\n## selectors"));
  const std::string reference = TextOf("docs/optimization-file-reference.md");
  const std::string table = reference.substr(reference.find("\n## Selectors"));
  std::vector<std::string> words = {"where", "not",    "any",   "all",  "launched_by", "inside",
                                    "after", "before", "first", "last", "between"};
  for (std::string_view key : SelectorKeys()) words.emplace_back(key);
  for (const std::string& word : words) {
    EXPECT_TRUE(Contains(term.substr(0, term.find("\n## ", 1)), word)) << word;
    EXPECT_TRUE(Contains(table.substr(0, table.find("\n## ", 1)), "`" + word + "`")) << word;
  }
}

TEST(Bounds, AreThoseThatTheGlossaryNames) {
  const std::string glossary = TextOf("docs/glossary.md");
  const std::string after = glossary.substr(glossary.find("\n## bound\n"));
  const std::string term = after.substr(0, after.find("\n## ", 1));
  for (const Transform* t : Transforms()) {
    EXPECT_TRUE(!t->bound || Contains(term, t->name)) << t->name;
  }
}

// Else a limit would be passed by what is applied after it.
TEST(Bounds, AreTheLastOptimizationsOfAScenario) {
  std::string_view limit;
  for (const Transform* t : Transforms()) {
    EXPECT_TRUE(t->bound || limit.empty())
        << t->name << " stands behind the limit " << limit << ": the comment at the top of "
        << "transforms/optimizations/transforms.def says where it belongs";
    if (t->bound) limit = t->name;
  }
}

// The first comment of a rule's file, of build.cc's list and of docs/how-it-works.md belong
// together.
TEST(Rules, EachIsExplained) {
  const std::string page = TextOf("docs/how-it-works.md");
  for (const auto& entry : fs::directory_iterator(kRoot / "graph")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("rule_") || !name.ends_with(".cc")) continue;
    EXPECT_TRUE(Contains(page, "`" + name + "`")) << name;
  }
}

// A row of a trace is what its columns hold (trace/trace.h).
TEST(Numbers, BytesOfARow) {
  const size_t bytes =
      sizeof(decltype(Trace::start)::value_type) + sizeof(decltype(Trace::duration)::value_type) +
      sizeof(decltype(Trace::lane)::value_type) + sizeof(decltype(Trace::name)::value_type) +
      sizeof(decltype(Trace::kind)::value_type) + sizeof(decltype(Trace::correlation)::value_type) +
      sizeof(decltype(Trace::detail)::value_type);
  EXPECT_TRUE(Contains(TextOf("trace/trace.h"), fmt::format("{} bytes a row", bytes))) << bytes;
}

TEST(Numbers, BytesOfATask) {
  EXPECT_TRUE(Contains(TextOf("graph/graph.h"), fmt::format("Plain data, {} bytes", sizeof(Task))))
      << sizeof(Task);
}

}  // namespace
}  // namespace daydream
