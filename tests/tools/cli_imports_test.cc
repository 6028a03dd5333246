// What every command can rely on for files of other recorders: those shipped in examples/imports,
// and real ones where they lie beside the repository.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/real_traces.h"
#include "tests/tools/cli_fixture.h"

namespace daydream {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::vector<std::string> FilesBelow(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    if (it->is_regular_file()) files.push_back(it->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::filesystem::path Samples() { return RealTraceFolder().parent_path() / "samples"; }

bool IsRead(const std::string& file) {
  for (std::string_view ending : {"0.et", "1.et", "2.et", "3.et", ".et.gz", ".sqlite", ".db",
                                  ".rpd", ".xplane.pb", "results.json.gz", "small.json"}) {
    if (file.ends_with(ending)) return file.find("et.json") == std::string::npos;
  }
  return false;
}

class Imports : public CliFixture {
 protected:
  static std::vector<std::string> Recordings() {
    std::vector<std::string> files = FilesBelow(DAYDREAM_SOURCE_DIR "/examples/imports");
    for (const std::string& f : FilesBelow(Samples())) files.push_back(f);
    const std::string big = (RealTraceFolder() / "nsys/diffusion-2xh100.sqlite").string();
    if (std::filesystem::exists(big)) files.push_back(big);
    for (const std::string& f : RealTraces()) files.push_back((RealTraceFolder() / f).string());
    std::erase_if(files, [](const std::string& f) {
      return !IsRead(f) && f.find("/traces/") == std::string::npos;
    });
    return files;
  }
};

TEST_F(Imports, EveryInputEventIsAnEventOrCountedInInfo) {
  std::set<std::string> formats, with_tables_left;
  for (const std::string& file : Recordings()) {
    const CliResult r = Run("info '" + file + "' --format json");
    ASSERT_EQ(r.exit, 0) << file << ": " << r.err;
    const json trace = json::parse(r.out);
    uint64_t skipped = 0;
    for (const json& count : trace["skipped"]) skipped += count["count"].get<uint64_t>();
    EXPECT_EQ(trace["input_events"].get<uint64_t>(), trace["events"].get<uint64_t>() + skipped)
        << file;
    EXPECT_TRUE(trace["waits"] == "recorded" || trace["waits"] == "not recorded") << file;
    ASSERT_TRUE(trace["tables_not_read"].is_array()) << file;
    for (const json& table : trace["tables_not_read"]) {
      EXPECT_TRUE(table["name"].is_string() && table["rows"].is_number_unsigned()) << file;
      for (const json& count : trace["skipped"]) EXPECT_NE(count["what"], table["name"]) << file;
    }
    formats.insert(trace["importer"].get<std::string>());
    if (!trace["tables_not_read"].empty()) with_tables_left.insert(trace["importer"]);
  }
  EXPECT_THAT(formats, testing::IsSupersetOf(
                           {"nsys", "rocpd", "rpd", "rocprof", "chakra", "xplane", "kineto"}));
  EXPECT_THAT(with_tables_left, testing::Contains("nsys"));
}

// What it is and the next command, as an error of the input.
TEST_F(Imports, RealFilesThatAreNotReadAreNamedWithTheNextCommand) {
  std::vector<std::string> files = FilesBelow(Samples());
  std::erase_if(files, [](const std::string& f) { return IsRead(f) || f.ends_with(".md"); });
  if (files.empty()) GTEST_SKIP() << Samples() << " is not here";
  for (const char* folder : {"nsys/nvtx-2023.4.parquetdir", "nsys/nvtx-2023.4.arrowdir"}) {
    files.push_back((Samples() / folder).string());
  }
  for (const std::string& file : files) {
    const CliResult r = Run("info '" + file + "'");
    EXPECT_EQ(r.exit, 3) << file;
    EXPECT_EQ(r.out, "") << file;
    EXPECT_THAT(r.err, HasSubstr("error[E0204]: this is ")) << file;
    EXPECT_THAT(r.err, HasSubstr("which is not read")) << file;
    EXPECT_THAT(r.err, HasSubstr("= fix: ")) << file;
  }
}

// A file that a copy has lost the end of, or that has become empty, and one of another program.
TEST_F(Imports, WhatIsLeftOfAFileIsReadOrRefusedInOneSentence) {
  for (const std::string& file : FilesBelow(DAYDREAM_SOURCE_DIR "/examples/imports")) {
    if (!IsRead(file)) continue;
    const std::string whole = ReadAll(file);
    for (size_t bytes : {size_t{0}, size_t{1}, size_t{20}, whole.size() / 2, whole.size() - 1}) {
      Write("cut", whole.substr(0, bytes));
      const CliResult r = Run("info " + Path("cut") + " --format json");
      if (r.exit == 0) {
        const json trace = json::parse(r.out);
        EXPECT_TRUE(trace["events"] > 0) << file << ", " << bytes << " bytes";
        continue;
      }
      EXPECT_EQ(r.exit, 3) << file << ", " << bytes << " bytes: " << r.err;
      EXPECT_THAT(r.err, testing::ContainsRegex("error\\[E02[0-9][0-9]\\]: ")) << file << bytes;
      EXPECT_THAT(r.err, HasSubstr("= fix: ")) << file << ", " << bytes << " bytes";
    }
  }
}

TEST_F(Imports, AProcessOfAnNsightExportIsARankToAskAbout) {
  const std::string file = (RealTraceFolder() / "nsys/diffusion-2xh100.sqlite").string();
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not here";
  std::set<double> steps;
  for (const char* rank : {"0", "1"}) {
    const CliResult r = Run("whatif " + file + " --rank " + rank + " --opt free-gpu --format json");
    ASSERT_EQ(r.exit, 0) << r.err;
    const json answer = json::parse(r.out);
    EXPECT_NEAR(answer["replay"]["error_pct"].get<double>(), 0, 0.05);
    EXPECT_LT(answer["scenarios"][1]["step_ms"].get<double>(), 95) << "launches and CPU alone";
    steps.insert(answer["scenarios"][1]["step_ms"].get<double>());
  }
  EXPECT_EQ(steps.size(), 2u) << "each has its own";
  EXPECT_EQ(Run("whatif " + file + " --rank 2 --opt amp").exit, 2);
}

TEST_F(Imports, APlanWithoutTimesSaysSo) {
  const auto plan = Samples() / "chakra" / "ring-allreduce-8.0.et";
  if (!std::filesystem::exists(plan)) GTEST_SKIP() << plan << " is not here";
  const CliResult r = Run("whatif '" + plan.string() + "' --opt free-gpu");
  EXPECT_EQ(r.exit, 4);
  EXPECT_THAT(r.err, HasSubstr("E0607]: this plan has no times to predict anything of"));
  EXPECT_THAT(r.err, HasSubstr("28 of its 35 GPU operations have no duration"));
  EXPECT_THAT(OneLine(Run("info '" + plan.string() + "'").out),
              HasSubstr("no step to predict anything of: 28 of its 35"));
}

// Nothing says when the host waited: the answer is about the GPU's side, and says so.
TEST_F(Imports, WithoutWaitsPredictionsAreOfLowConfidenceOrRefused) {
  std::vector<std::string> files = {DAYDREAM_SOURCE_DIR "/examples/imports/jax-small.xplane.pb"};
  for (const char* name : {"jax-conv-8xmi300x", "jax-attention-mi350x"}) {
    const auto file = Samples() / "xplane" / (std::string(name) + ".xplane.pb");
    if (std::filesystem::exists(file)) files.push_back(file.string());
  }
  for (const std::string& file : files) {
    const CliResult info = Run("info '" + file + "' --format json");
    ASSERT_EQ(info.exit, 0) << info.err;
    EXPECT_EQ(json::parse(info.out)["waits"], "not recorded") << file;
    const CliResult r = Run("whatif '" + file + "' --opt 'speedup(select=kind:kernel, by=2)'");
    const std::string told = OneLine(r.out + r.err);
    EXPECT_THAT(told, HasSubstr("waits are not recorded: nothing says when the host stood still"))
        << file;
    const bool refused = told.find("error[E0602]") != std::string::npos;
    EXPECT_TRUE(refused || told.find("confidence low: ") != std::string::npos) << file;
  }
}

TEST_F(Imports, AdviceForAProgramThatIsNotPyTorchSaysThatItsCodeIs) {
  const std::string file = DAYDREAM_SOURCE_DIR "/examples/imports/jax-small.xplane.pb";
  EXPECT_THAT(OneLine(Run("advise '" + file + "'").out),
              HasSubstr("how JAX and TensorFlow have their own way; in PyTorch: with torch."));
  EXPECT_THAT(OneLine(Run("advise '" + file + "'").out),
              HasSubstr("no shapes of ops, which recordings of JAX and TensorFlow do not tell"));
  EXPECT_THAT(Run("summary '" + file + "'").out,
              HasSubstr("not known: XPlane does not tell what was allocated"));
}

TEST_F(Imports, RanksWithoutCollectivesAreAskedAboutOneByOne) {
  const std::string file = (RealTraceFolder() / "nsys/diffusion-2xh100.sqlite").string();
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not here";
  EXPECT_THAT(Run("whatif " + file).err,
              HasSubstr("rank 0 of 2 is looked at; --rank R takes another, alone as well"));
  EXPECT_THAT(Run("whatif " + file + " --peers joint").err, HasSubstr("E0435"));
}

}  // namespace
}  // namespace daydream
