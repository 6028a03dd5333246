// One test for each tests/golden/<transform>/<case>.ddt: a graph small enough to check by hand, a
// what-if, and what comes out. DD_UPDATE_GOLDEN=1 rewrites what comes out of a case that can be
// read: what the graph, the form of the file or the question has wrong is an error, and never an
// expected answer that nobody asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "graph/text.h"
#include "graph/text_words.h"
#include "graph/validate.h"
#include "simulator/simulate.h"
#include "transforms/analysis/memory_profile.h"
#include "transforms/core/transform.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

// A file of the form: comment lines, then sections, each a line "-- name" and what follows it.
struct GoldenCase {
  std::string comment;
  std::vector<std::pair<std::string, std::string>> sections;
  size_t graph_line = 0;  // of "-- graph"

  std::string* Find(std::string_view name) {
    for (auto& [key, text] : sections) {
      if (key == name) return &text;
    }
    return nullptr;
  }
  std::string Text(std::string_view name) {
    const std::string* text = Find(name);
    return text == nullptr ? "" : *text;
  }
  std::string Format() const {
    std::string all = comment;
    for (const auto& [key, text] : sections) all += fmt::format("-- {}\n{}", key, text);
    return all;
  }
};

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

GoldenCase Read(const fs::path& path) {
  GoldenCase golden;
  std::istringstream in(ReadFile(path));
  size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("-- ")) {
      golden.sections.emplace_back(line.substr(3), "");
      if (golden.sections.back().first == "graph") golden.graph_line = number;
    } else {
      (golden.sections.empty() ? golden.comment : golden.sections.back().second) += line + "\n";
    }
  }
  return golden;
}

std::string Trimmed(std::string text) {
  const auto printing = [](unsigned char c) { return std::isspace(c) == 0; };
  text.erase(std::find_if(text.rbegin(), text.rend(), printing).base(), text.end());
  text.erase(text.begin(), std::find_if(text.begin(), text.end(), printing));
  return text;
}

std::string FormatChanges(const std::vector<Applied>& all) {
  constexpr std::array<std::pair<std::string_view, uint64_t Changes::*>, 7> kCounts = {
      {{"scaled", &Changes::scaled},
       {"set", &Changes::set},
       {"inserted", &Changes::inserted},
       {"removed", &Changes::removed},
       {"fused", &Changes::fused},
       {"moved", &Changes::moved},
       {"edges", &Changes::edges}}};
  std::string text;
  for (const auto& [name, count] : kCounts) {
    uint64_t sum = 0;
    for (const Applied& a : all) sum += a.changes.*count;
    if (sum > 0) text += fmt::format("{} {}\n", name, sum);
  }
  return text;
}

// Bytes are exact: shapes tell them.
std::string FormatMemory(const std::vector<Applied>& all) {
  std::string text;
  for (const Applied& a : all) {
    for (const MemoryChange& m : a.changes.memory) {
      if (m.unknown) text += fmt::format("not known: {}\n", m.what);
      if (m.bytes != 0) {
        text += fmt::format("{}{} bytes: {}\n", m.at_most ? "at most " : "", m.bytes, m.what);
      }
    }
  }
  return text;
}

std::string FormatError(const absl::Status& status) {
  const Diagnostic d = DiagnosticOf(status);
  return (d.code.empty() ? "" : d.code + " ") + d.what + "\n";
}

struct Outcome {
  std::string changes, makespan, memory;
  std::string error;  // empty when it worked
};

// What is wrong with the case itself; empty: nothing. The graph is parsed behind empty lines, so
// that its errors name lines of the file.
std::string Flaw(const fs::path& path, GoldenCase& golden) {
  constexpr std::array<std::string_view, 6> kSections = {"graph",    "what-if", "changes",
                                                         "makespan", "memory",  "error"};
  for (const auto& [name, text] : golden.sections) {
    if (std::find(kSections.begin(), kSections.end(), name) == kSections.end()) {
      return fmt::format("{}: a section is called '{}', which is none of {}", path.string(), name,
                         fmt::join(kSections, ", "));
    }
  }
  for (const char* needed : {"graph", "what-if"}) {
    if (Trimmed(golden.Text(needed)).empty()) {
      return fmt::format("{}: section '-- {}' is missing or empty", path.string(), needed);
    }
  }
  auto graph = ParseGraph(std::string(golden.graph_line, '\n') + golden.Text("graph"));
  const absl::Status status = graph.ok() ? Validate(*graph) : graph.status();
  if (status.ok()) return "";
  const Diagnostic d = DiagnosticOf(status);
  return fmt::format("{}: {} ({})", path.string(), d.what, d.where);
}

// REQUIRES: no Flaw().
Outcome Play(const std::string& graph_text, const std::string& what_if) {
  auto graph = ParseGraph(graph_text);
  const auto before = Simulate(*graph);
  const auto scenario = ParseScenario(Trimmed(what_if));
  if (!scenario.ok()) return {.error = FormatError(scenario.status())};
  std::vector<Applied> all;
  MemoryTrail trail(ProfileMemory(*graph));
  for (const Application& application : *scenario) {
    auto applied = Apply(application, *graph);
    if (!applied.ok()) return {.error = FormatError(applied.status())};
    EXPECT_TRUE(ValidateButCycles(*graph).ok()) << ValidateButCycles(*graph);
    trail.Follow(*application.transform, *graph, applied->changes);
    all.push_back(*std::move(applied));
  }
  const auto after = Simulate(*graph);
  if (!after.ok()) return {.error = FormatError(after.status())};
  return {.changes = FormatChanges(all),
          .makespan = FormatTime(before->makespan) + " -> " + FormatTime(after->makespan) + "\n",
          .memory = FormatMemory(all)};
}

// Golden files may space their sections with empty lines; only their words count.
void ExpectSection(GoldenCase& golden, std::string_view name, const std::string& expected) {
  EXPECT_EQ(Trimmed(golden.Text(name)), Trimmed(expected)) << "section -- " << name;
}

// E01..: what was asked cannot be. Unless the case expects that already, its author wrote something
// else than he meant.
bool IsSlip(GoldenCase& golden, const Outcome& outcome) {
  return outcome.error.starts_with("E01") && golden.Find("error") == nullptr;
}

void Update(const fs::path& path, GoldenCase golden, const Outcome& outcome) {
  std::erase_if(golden.sections, [](const auto& section) {
    return section.first != "graph" && section.first != "what-if";
  });
  if (outcome.error.empty()) {
    golden.sections.emplace_back("changes", outcome.changes);
    golden.sections.emplace_back("makespan", outcome.makespan);
    if (!outcome.memory.empty()) golden.sections.emplace_back("memory", outcome.memory);
  } else {
    golden.sections.emplace_back("error", outcome.error);
  }
  std::ofstream(path, std::ios::binary) << golden.Format();
}

std::vector<fs::path> GoldenFiles() {
  std::vector<fs::path> files;
  const fs::path folder = fs::path(DAYDREAM_SOURCE_DIR) / "tests" / "golden";
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".ddt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class Golden : public testing::TestWithParam<fs::path> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Golden);

TEST_P(Golden, PlaysAsWritten) {
  GoldenCase golden = Read(GetParam());
  const std::string flaw = Flaw(GetParam(), golden);
  ASSERT_EQ(flaw, "");
  const Outcome outcome = Play(golden.Text("graph"), golden.Text("what-if"));
  if (std::getenv("DD_UPDATE_GOLDEN") != nullptr) {
    ASSERT_FALSE(IsSlip(golden, outcome))
        << GetParam() << ": nothing is written, for the what-if itself is wrong: " << outcome.error
        << "where that is what the case shows, write it below a line `-- error`";
    Update(GetParam(), golden, outcome);
    return;
  }
  ExpectSection(golden, "error", outcome.error);
  ExpectSection(golden, "changes", outcome.changes);
  ExpectSection(golden, "makespan", outcome.makespan);
  ExpectSection(golden, "memory", outcome.memory);
}

GoldenCase CaseOf(const std::string& graph) {
  return {.sections = {{"graph", graph}, {"what-if", "free-gpu\n"}}, .graph_line = 3};
}

TEST(GoldenItself, AGraphThatCannotBeReadIsAFlawWithItsLine) {
  GoldenCase golden = CaseOf("lane cpu0 thread\nt0 cpu0 call fast\n");
  EXPECT_NE(Flaw("case.ddt", golden).find("line 5"), std::string::npos) << Flaw("case.ddt", golden);
}

TEST(GoldenItself, AGraphThatWaitsForItselfIsAFlaw) {
  GoldenCase golden = CaseOf(
      "lane a thread\nlane b thread\nt0 a host 1us after t1 handoff\nt1 b host 1us after t0 "
      "handoff\n");
  EXPECT_NE(Flaw("case.ddt", golden), "");
}

TEST(GoldenItself, AWhatIfThatCannotBeAskedIsNoAnswerUnlessTheCaseSaysSo) {
  GoldenCase golden = CaseOf("lane cpu0 thread\nt0 cpu0 call 1us\n");
  EXPECT_TRUE(IsSlip(golden, Play(golden.Text("graph"), "speedup(kind:kernl, 2)")));
  EXPECT_FALSE(IsSlip(golden, Play(golden.Text("graph"), "free-gpu")));  // E0601: nothing to change
  golden.sections.emplace_back("error", "");
  EXPECT_FALSE(IsSlip(golden, Play(golden.Text("graph"), "speedup(kind:kernl, 2)")));
}

TEST(GoldenItself, MissingAndUnknownSectionsAreFlaws) {
  GoldenCase golden = CaseOf("lane cpu0 thread\nt0 cpu0 call 1us\n");
  EXPECT_EQ(Flaw("case.ddt", golden), "");
  golden.sections.emplace_back("changed", "scaled 1\n");
  EXPECT_NE(Flaw("case.ddt", golden), "");
  golden.sections = {{"graph", "lane cpu0 thread\nt0 cpu0 call 1us\n"}};
  EXPECT_NE(Flaw("case.ddt", golden), "");
}

std::string NameOf(const testing::TestParamInfo<fs::path>& info) {
  std::string name =
      info.param.parent_path().filename().string() + "_" + info.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(GoldenFiles()), NameOf);

}  // namespace
}  // namespace daydream
