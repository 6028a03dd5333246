// Rules about the sources that are worth having: each test lists every place that breaks its rule.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <re2/re2.h>

#include "base/text.h"
#include "tests/source_code.h"
#include "tests/source_tree.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

using ::testing::IsEmpty;

const std::vector<SourceFile>& Code() {
  static const std::vector<SourceFile> files = SourceFiles({".h", ".cc", ".def"});
  return files;
}

const std::vector<std::string>& CodeOf(const SourceFile& file) {
  static std::map<std::string, std::vector<std::string>> known;
  const auto [lines, fresh] = known.try_emplace(file.path);
  if (fresh) lines->second = CodeLines(file);
  return lines->second;
}

// Who may include whom. Nothing may include tools, tests or examples, except each itself, and the
// program its lessons.
const std::map<std::string, std::set<std::string>>& MayInclude() {
  static const std::set<std::string> libraries = {"base",      "trace",      "graph", "simulator",
                                                  "costmodel", "transforms", "report"};
  static const std::set<std::string> all = [] {
    std::set<std::string> s = libraries;
    s.insert({"library", "tracer", "tools", "python", "tests", "examples"});
    return s;
  }();
  static const std::map<std::string, std::set<std::string>> rules = {
      {"base", {"base"}},
      {"trace", {"base", "trace"}},
      {"graph", {"base", "trace", "graph"}},
      {"simulator", {"base", "trace", "graph", "simulator"}},
      {"costmodel", {"base", "trace", "graph", "costmodel"}},
      {"transforms", {"base", "trace", "graph", "costmodel", "transforms"}},
      {"report", libraries},
      {"library", {"base", "trace", "graph", "transforms", "report", "library"}},
      {"tracer", {"tracer", "trace"}},  // of trace only the frame of the file, see below
      {"tools",
       {"base", "trace", "graph", "simulator", "costmodel", "transforms", "report", "tools",
        "examples"}},  // for `daydream tour`, see below
      {"python",
       {"base", "trace", "graph", "simulator", "costmodel", "transforms", "report", "tools",
        "python"}},
      {"examples", {"base", "trace", "tracer", "examples"}},
      {"tests", all},
      {"cmake", {}},  // what packages carry in place of a newer C library
  };
  return rules;
}

struct Include {
  std::string path;
  bool quoted = false;
};

std::vector<Include> IncludesOf(const SourceFile& file) {
  static const RE2 pattern(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  std::vector<Include> includes;
  std::string open, path;
  for (const std::string& line : file.lines) {
    if (RE2::PartialMatch(line, pattern, &open, &path)) includes.push_back({path, open == "\""});
  }
  return includes;
}

size_t Utf8Length(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

bool IsLibrary(const SourceFile& file) {
  return file.folder() != "tools" && file.folder() != "tests" && file.folder() != "examples";
}

// For programs that are not ours, in C, too.
bool IsCHeader(const SourceFile& file) { return file.path == "tracer/daydream_mark.h"; }

TEST(Tidy, FoldersIncludeOnlyWhatIsBelowThem) {
  std::vector<std::string> broken;
  for (const SourceFile& file : Code()) {
    auto rule = MayInclude().find(file.folder());
    ASSERT_NE(rule, MayInclude().end()) << file.path << ": folder without a rule";
    for (const Include& include : IncludesOf(file)) {
      std::string folder = include.path.substr(0, include.path.find('/'));
      bool ours = include.quoted && MayInclude().contains(folder);
      // The recorder needs the C library only, and the mark header nothing of ours.
      bool frame = include.path == "trace/ddtrace/frame.h" ||
                   include.path == "trace/recording/lacks.h";  // words alone
      bool header = include.path == "tracer/daydream_mark.h";
      bool too_much = file.folder() == "tracer" && folder == "trace" && !frame;
      too_much |= include.path.starts_with("examples/") && file.folder() == "tools" &&
                  !include.path.starts_with("examples/lessons/");
      too_much |= file.folder() == "examples" && folder == "tracer" && !header;
      if (ours && (too_much || !rule->second.contains(folder))) {
        broken.push_back(file.path + " includes " + include.path);
      }
    }
  }
  EXPECT_THAT(broken, IsEmpty());
}

// Inside of a folder: who may include whom, by the folders in it. What stands beside them may be
// included by all, and includes none of them but those named for "".
const std::map<std::string, std::map<std::string, std::set<std::string>>>& MayIncludeInside() {
  using Rows = std::map<std::string, std::set<std::string>>;
  static const std::map<std::string, Rows> rules = {
      {"transforms",
       {{"core", {}},
        {"analysis", {"core"}},
        {"edits", {"analysis", "core"}},
        {"parallel", {"edits", "analysis", "core"}},
        {"optimizations", {"parallel", "edits", "analysis", "core"}},
        {"scenario", {"optimizations", "parallel", "edits", "analysis", "core"}}}},
      {"trace",
       // An importer is handed a source of bytes, or the tables of an SQLite file.
       {{"", {"bytes", "foreign", "part", "rows", "sqlite"}},
        {"rows", {}},
        {"part", {}},
        {"bytes", {}},
        {"sqlite", {"bytes"}},
        {"nsys", {"recording", "sqlite", "json", "bytes"}},
        {"rocprof", {"rows", "sqlite", "json", "bytes"}},
        {"json", {"bytes"}},
        {"kineto", {"json", "bytes"}},
        {"recording", {}},
        {"ddtrace", {"recording", "bytes"}},
        {"join", {"ddtrace", "json", "bytes"}}}},
      {"report",
       {{"", {"text"}},
        {"text", {}},
        {"predict", {"text"}},
        {"questions", {"predict", "text"}},
        {"export", {"text"}},
        {"html", {"export", "text"}}}},
      {"tools",
       {{"", {"commands", "running"}},  // the list of commands
        {"running", {}},
        {"input", {"running"}},
        {"pages", {}},
        {"record", {"input"}},
        {"output", {"input", "running"}},
        {"sweep", {}},
        {"tour", {"input", "running"}},
        {"commands", {"input", "output", "pages", "record", "running", "sweep", "tour"}}}},
  };
  return rules;
}

// "edits" of "transforms/edits/retime.cc"; "" for what stands beside the folders.
std::string Room(const std::string& path) {
  const size_t first = path.find('/'), second = path.find('/', first + 1);
  return second == path.npos ? "" : path.substr(first + 1, second - first - 1);
}

TEST(Tidy, FoldersInsideOfFoldersIncludeOnlyWhatIsBelowThem) {
  std::vector<std::string> broken;
  for (const SourceFile& file : Code()) {
    const auto rows = MayIncludeInside().find(file.folder());
    if (rows == MayIncludeInside().end()) continue;
    const std::string from = Room(file.path);
    const auto row = rows->second.find(from);
    // An importer has a folder of its own, and needs no row: it reads bytes, or JSON.
    static const std::set<std::string> importer = {"json", "bytes"};
    const bool listed_room = from.empty() || row != rows->second.end();
    ASSERT_TRUE(listed_room || file.folder() == "trace") << file.path << ": room without a row";
    const std::set<std::string> none;
    const std::set<std::string>& may = row != rows->second.end() ? row->second
                                       : from.empty()            ? none
                                                                 : importer;
    for (const Include& include : IncludesOf(file)) {
      if (!include.quoted || !include.path.starts_with(file.folder() + "/")) continue;
      const std::string to = Room(include.path);
      if (to != from && !to.empty() && !may.contains(to)) {
        broken.push_back(file.path + " includes " + include.path);
      }
    }
  }
  EXPECT_THAT(broken, IsEmpty());
}

// A folder with more modules than a reader can take in needs one more floor.
TEST(Tidy, FoldersWithRoomsKeepFewModulesBesideThem) {
  constexpr size_t kMost = 12;
  for (const auto& [folder, rows] : MayIncludeInside()) {
    std::set<std::string> modules;
    for (const SourceFile& file : Code()) {
      if (file.folder() != folder || !Room(file.path).empty()) continue;
      modules.insert(file.path.substr(0, file.path.rfind('.')));
    }
    EXPECT_LE(modules.size(), kMost) << folder << "/: " << ::testing::PrintToString(modules);
  }
}

TEST(Tidy, TheMapOfTheCodeNamesEachFolderAndEachDecision) {
  namespace fs = std::filesystem;
  const fs::path root(DAYDREAM_SOURCE_DIR);
  const std::string map = ReadText(root / "docs/architecture.md");
  std::set<std::string> missing;
  for (const SourceFile& file : Code()) {
    const std::string folder = file.folder(), room = Room(file.path);
    if (folder != "cmake" && !Contains(map, fmt::format("\n| `{}/` |", folder))) {
      missing.insert(folder);
    }
    if (room.empty() || !MayIncludeInside().contains(folder)) continue;
    // An importer has a folder of its own: the list of importers names it.
    if (folder == "trace" && !MayIncludeInside().at(folder).contains(room)) continue;
    const size_t row = map.find(fmt::format("| `{}/` | `", folder));
    ASSERT_NE(row, std::string::npos) << folder << ": its folders have no row";
    if (!Contains(map.substr(row, map.find('\n', row) - row), fmt::format("`{}`", room))) {
      missing.insert(fmt::format("{}/{}", folder, room));
    }
  }
  for (const auto& entry : fs::directory_iterator(root / "docs/decisions")) {
    const std::string name = entry.path().filename().string();
    if (!Contains(map, "(decisions/" + name + ")")) missing.insert(name);
  }
  EXPECT_THAT(missing, IsEmpty());
}

TEST(Tidy, IncludePathsStartAtTheRoot) {
  std::vector<std::string> broken;
  for (const SourceFile& file : Code()) {
    for (const Include& include : IncludesOf(file)) {
      std::string folder = include.path.substr(0, include.path.find('/'));
      bool known = MayInclude().contains(folder) || folder == "absl" || folder == "proto";
      if (include.quoted && !known) broken.push_back(file.path + " includes " + include.path);
    }
  }
  EXPECT_THAT(broken, IsEmpty());
}

TEST(Tidy, LibrariesWithManyTypesStayInTheFilesMadeForThem) {
  std::vector<std::string> broken;
  for (const SourceFile& file : Code()) {
    static const std::set<std::string> codecs = {"trace/ddtrace/proto.h", "trace/ddtrace/proto.cc",
                                                 "costmodel/device_fields.cc",
                                                 "costmodel/network/fabric_text.cc"};
    bool codec = codecs.contains(file.path);
    for (const Include& include : IncludesOf(file)) {
      const std::string& path = include.path;
      bool generated = path.ends_with(".pb.h") || path.starts_with("google/protobuf/");
      bool frame =
          file.path.starts_with("trace/ddtrace/") || file.path.starts_with("trace/recording/");
      bool codec_leaks = path == "trace/ddtrace/proto.h" && file.IsHeader() && !codec && !frame;
      bool boost = path.starts_with("boost/graph/") && file.path != "graph/bgl.h";
      bool bgl_leaks = path == "graph/bgl.h" && file.IsHeader();
      if ((generated && !codec && file.folder() != "tests") || codec_leaks || boost || bgl_leaks ||
          path.starts_with("absl/flags/")) {
        broken.push_back(file.path + " includes " + path);
      }
    }
  }
  EXPECT_THAT(broken, IsEmpty());
}

TEST(Tidy, SourceIncludesItsOwnHeaderFirst) {
  std::set<std::string> headers;
  for (const SourceFile& file : Code()) {
    if (file.IsHeader()) headers.insert(file.path);
  }
  std::vector<std::string> broken;
  for (const SourceFile& file : Code()) {
    if (!file.path.ends_with(".cc")) continue;
    std::string own = file.path.substr(0, file.path.size() - 2) + "h";
    std::vector<Include> includes = IncludesOf(file);
    if (headers.contains(own) && (includes.empty() || includes[0].path != own)) {
      broken.push_back(file.path);
    }
  }
  // With the generated files of tests/CMakeLists.txt: every header compiles alone.
  EXPECT_THAT(broken, IsEmpty());
}

TEST(Tidy, LibrariesNeitherPrintNorExitNorReadTheEnvironment) {
  static const RE2 banned(
      R"re((\b(?:f?printf|puts|putchar|fputs|perror)\s*\(|\bstd::(?:cout|cerr|clog)\b|)re"
      R"re(\bfmt::print\b|\b(?:exit|_exit|abort|quick_exit|getenv|secure_getenv|system)\s*\())re");
  std::vector<std::string> broken;
  for (const SourceFile& file : Code()) {
    if (!IsLibrary(file) || file.path == "base/check.h") continue;
    // The recorder gets its orders through the environment.
    if (file.path == "tracer/environment.cc" || IsCHeader(file)) continue;
    if (file.path.starts_with("cmake/")) continue;  // part of a C library
    const std::vector<std::string>& lines = CodeOf(file);
    for (size_t i = 0; i < lines.size(); ++i) {
      std::string found;
      if (RE2::PartialMatch(lines[i], banned, &found)) {
        broken.push_back(fmt::format("{}:{}: {}", file.path, i + 1, found));
      }
    }
  }
  EXPECT_THAT(broken, IsEmpty());
}

// What was once written a dozen times has one definition (docs/decisions/009-*.md).
TEST(Tidy, SmallHelpersAreWrittenOnce) {
  struct Pattern {
    std::string_view code;
    std::set<std::string> home;
    std::string_view instead;
    std::string_view folder = {};  // empty: everywhere
  };
  const std::vector<Pattern> patterns = {
      {R"re(\bnth_element\b)re", {"base/median.h"}, "Median() of base/median.h"},
      {R"re(\bbool (Contains|Has|HasAny|ContainsAny)\(std::string_view \w+, )re",
       {"base/text.h"},
       "Contains() of base/text.h"},
      {R"re(\bbool (StartsWith|EndsWith)\(std::string_view)re",
       {},
       "starts_with() of std::string_view"},
      // Edits that the Editor does not see are in no count and no cause.
      {R"re(\bmutable_(task|lane|step|edges|change)\()re",
       {"transforms/core/editor.h", "transforms/core/editor.cc"},
       "a verb of the Editor",
       "transforms"},
      // Parents of ranges and layers come from the file: a walk needs a bound.
      {R"re(= \w+(\(\)\.layers\(\))?\[\w+\.index\(\)\]\.parent\b)re",
       {"graph/scopes.h"},
       "ScopesAround() of graph/scopes.h"},
      {R"re(Duration\{std::ll)re", {"base/time.h"}, "Duration::FromDouble()"},
      // Else a command looks different for who asks from another program.
      {R"re(\bgetenv\()re",
       {"tools/session.cc", "tools/config.cc", "tools/commands/view.cc", "tools/commands/trace.cc",
        "tools/record/python_check.cc"},
       "what tools/session.h read",
       "tools"},
      // Terms of selectors remember each range that they passed, and pass none twice.
      {R"re(^\s*\w+ = \w+\.parent;)re",
       {"graph/scopes.h", "transforms/core/select_term.cc"},
       "ScopesAround() of graph/scopes.h"},
      {R"re((return|=) \w+\[\w+\.size\(\) / 2\])re",
       {"base/median.h"},
       "Median() of base/median.h"},
  };
  std::vector<std::string> broken;
  for (const Pattern& p : patterns) {
    const RE2 code(p.code);
    for (const SourceFile& file : Code()) {
      if (!IsLibrary(file) && file.folder() != "tools") continue;
      if (p.home.contains(file.path) || (!p.folder.empty() && file.folder() != p.folder)) continue;
      const std::vector<std::string>& lines = CodeOf(file);
      for (size_t i = 0; i < lines.size(); ++i) {
        if (!RE2::PartialMatch(lines[i], code)) continue;
        broken.push_back(fmt::format("{}:{}: use {}", file.path, i + 1, p.instead));
      }
    }
  }
  EXPECT_THAT(broken, IsEmpty());
}

// A word of a table is found by its place: one enumerator more needs one word more.
TEST(Tidy, TablesByEnumeratorHaveAsManyWords) {
  static const RE2 looked_up(R"re(\b(k\w+)\[static_cast<size_t>\([\w.>-]+\)\])re");
  static const RE2 sized(R"re(static_assert\(std::size\((k\w+)\))re");
  static const RE2 array(R"re(std::array<[^;]*, k\w+> (k\w+) =)re");
  std::vector<std::string> broken;
  for (const SourceFile& file : Code()) {
    if (!IsLibrary(file) && file.folder() != "tools") continue;
    const std::vector<std::string>& lines = CodeOf(file);
    std::set<std::string> tables, asserted;
    for (const std::string& line : lines) {
      std::string table;
      if (RE2::PartialMatch(line, looked_up, &table)) tables.insert(table);
      if (RE2::PartialMatch(line, sized, &table) || RE2::PartialMatch(line, array, &table)) {
        asserted.insert(table);
      }
    }
    for (const std::string& table : tables) {
      if (asserted.contains(table)) continue;
      broken.push_back(fmt::format("{}: static_assert(std::size({}) == ...)", file.path, table));
    }
  }
  EXPECT_THAT(broken, IsEmpty());
}

TEST(Tidy, FilesFunctionsAndLinesStayShort) {
  std::vector<std::string> broken;
  for (const SourceFile& file : Code()) {
    const size_t count = file.lines.size();
    if (count > 500) broken.push_back(fmt::format("{}: {} lines", file.path, count));
    for (size_t i = 0; i < file.lines.size(); ++i) {
      if (Utf8Length(file.lines[i]) > 100) {
        broken.push_back(fmt::format("{}:{}: line too long", file.path, i + 1));
      }
    }
    for (const Function& f : FunctionsOf(CodeOf(file))) {
      if (f.length > 70) {
        broken.push_back(fmt::format("{}:{}: function of {} lines", file.path, f.line, f.length));
      }
    }
  }
  EXPECT_THAT(broken, IsEmpty());
}

TEST(Tidy, HeadersHaveAnIncludeGuardAndACommentOnTop) {
  std::vector<std::string> broken;
  for (const SourceFile& file : Code()) {
    if (!file.IsHeader() || IsCHeader(file)) continue;
    bool guard =
        std::find(file.lines.begin(), file.lines.end(), "#pragma once") != file.lines.end();
    if (!guard || !file.lines[0].starts_with("//")) broken.push_back(file.path);
  }
  EXPECT_THAT(broken, IsEmpty());
}

TEST(Tidy, NothingIsLeftForLater) {
  // Spelled apart, so that this file does not find itself.
  static const RE2 later(
      "\\b(TO"
      "DO|FIX"
      "ME|X"
      "XX|HA"
      "CK)\\b");
  static const RE2 machine(
      "(^|[\\s\"'(=])(/wo"
      "rk|/ho"
      "me|/ro"
      "ot|/tm"
      "p/bash)/");
  std::vector<std::string> broken;
  for (const SourceFile& file : SourceFiles({".h", ".cc", ".def", ".md", ".txt", ".cmake", ".proto",
                                             ".json", "setup", "demo", ".sh"})) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      if (RE2::PartialMatch(file.lines[i], later) || RE2::PartialMatch(file.lines[i], machine)) {
        broken.push_back(fmt::format("{}:{}: {}", file.path, i + 1, file.lines[i]));
      }
    }
  }
  EXPECT_THAT(broken, IsEmpty());
}

TEST(Tidy, EachTransformHasAPageAndAGoldenCase) {
  namespace fs = std::filesystem;
  const fs::path root(DAYDREAM_SOURCE_DIR);
  std::vector<std::string> missing;
  for (const Transform* transform : Transforms()) {
    std::string name(transform->name);
    std::string page = "docs/optimizations/" + name + ".md";
    std::string golden = "tests/golden/" + name;
    if (!fs::exists(root / page)) missing.push_back(page);
    if (!fs::is_directory(root / golden) || fs::is_empty(root / golden)) missing.push_back(golden);
    std::string file = name;
    std::replace(file.begin(), file.end(), '-', '_');
    const std::string source = "transforms/optimizations/" + file + ".cc";
    if (!ReadText(root / source).starts_with("// " + name + ": ")) {
      missing.push_back(
          fmt::format("{}: a first line that says what it does: // {}: ...", source, name));
    }
    for (const ParamSpec& param : transform->params) {
      if (param.source.empty()) {
        missing.push_back(fmt::format("{}: source of {}", name, param.name));
      }
    }
  }
  EXPECT_THAT(missing, IsEmpty());
}

// The checks themselves, on text small enough to see the answer.
TEST(TidyItself, CommentsAndTextAreNotCode) {
  bool in_block = false;
  std::string raw_end;
  EXPECT_EQ(CodeOnly("f(\"exit(1)\"); // exit(1)", in_block, raw_end), "f(\"\"); ");
  EXPECT_EQ(CodeOnly("a /* b", in_block, raw_end), "a ");
  EXPECT_EQ(CodeOnly("c */ d", in_block, raw_end), " d");
  EXPECT_EQ(CodeOnly("1'000 '{' R\"(x", in_block, raw_end), "1'000 \"\" ");
  EXPECT_EQ(CodeOnly("y)\";", in_block, raw_end), ";");
}

TEST(TidyItself, FunctionsAreFoundByTheirBraces) {
  std::vector<Function> functions =
      FunctionsOf({"namespace a {", "struct S {", "  int f() { return 1; }", "  int x = 0;", "};",
                   "int g(int y)", "    {", "  for (;;) {", "  }", "}", "const S s = {1};", "}"});
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[0].length, 1u);
  EXPECT_EQ(functions[1].line, 6u);
  EXPECT_EQ(functions[1].length, 5u);
}

}  // namespace
}  // namespace daydream
