// The page of `daydream report`, as far as it can be told without a browser (tests/page/ has one).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/trace_sketch.h"
#include "tests/tools/cli_fixture.h"
#include "trace/ddtrace/writer.h"

namespace daydream {
namespace {

using testing::HasSubstr;
using testing::Not;

class CliReport : public CliFixture {
 protected:
  std::string Page(const std::string& flags) {
    const std::string file = Path("page.html");
    const CliResult r = Run(fmt::format("report {} {} -f -o {}", kExampleTrace, flags, file));
    EXPECT_EQ(r.exit, 0) << r.err;
    return ReadAll(file);
  }
  // The text of a block, or "".
  static std::string Block(const std::string& page, const std::string& id) {
    const std::string open = fmt::format("<script type=\"application/json\" id=\"{}\">", id);
    const size_t begin = page.find(open);
    if (begin == std::string::npos) return "";
    return page.substr(begin + open.size(), page.find("</script>", begin) - begin - open.size());
  }
};

// As a page has it, which names files without their folders.
std::string WithoutExampleFolder(std::string text) {
  const std::string folder = DAYDREAM_SOURCE_DIR "/examples/";
  for (size_t at; (at = text.find(folder)) != text.npos;) text.erase(at, folder.size());
  return text;
}

// How well the step is the recorded one stands on a page once, with the predictions.
std::string WithoutReplay(std::string json) {
  const size_t begin = json.find("  \"replay\": {"), end = json.find("\n  },\n", begin);
  if (begin != std::string::npos && end != std::string::npos) json.erase(begin, end + 6 - begin);
  return json;
}

TEST_F(CliReport, HasTheNumbersOfTheOtherCommands) {
  const std::string page = Page("--opt graphs,fuse --opt amp");
  const std::string options = "--opt graphs,fuse --opt amp --format json";
  EXPECT_EQ(Block(page, "whatif"), Run(fmt::format("whatif {} {}", kExampleTrace, options)).out);
  for (const char* by : {"class", "op", "kernel", "layer", "phase", "host"}) {
    EXPECT_EQ(
        Block(page, fmt::format("summary-{}", by)),
        WithoutReplay(Run(fmt::format("summary {} --by {} --format json", kExampleTrace, by)).out));
    EXPECT_NE(Block(page, fmt::format("after-{}", by)), "");
  }
  EXPECT_EQ(Block(page, "advise"), "");
}

// As `whatif` does. The kernel of one step starts 60 us later than those of the others.
TEST_F(CliReport, WarnsOfAReplayThatDoesNotHold) {
  TraceSketch sketch;
  const LaneId thread = sketch.Thread(), stream = sketch.Stream();
  double at = 0;  // us
  for (int step = 0; step < 6; ++step) {
    const double late = step == 3 ? 60 : 0, length = 200 + late;
    sketch.Mark(thread, fmt::format("ProfilerStep#{}", step), at, length);
    sketch.Launch(thread, stream, "gemm", at + 10, 5, at + 20 + late, 90);
    sketch.Call(thread, "cudaDeviceSynchronize", at + 20, 95 + late);
    sketch.Op(thread, "aten::mm", at + 120 + late, 70);
    at += length;
  }
  ASSERT_TRUE(WriteDdtrace(*sketch.Build(), Path("late.ddtrace")).ok());
  const std::string trace = Path("late.ddtrace") + " --opt 'speedup(kernel:.,2)'";
  EXPECT_THAT(Run("whatif " + trace).err, HasSubstr("warning[W0602]"));
  EXPECT_THAT(Run("report " + trace + " -o " + Path("late.html")).err, HasSubstr("warning[W0602]"));
}

TEST_F(CliReport, ShowsAdviceWhereNothingIsAsked) {
  const std::string page = Page("");
  EXPECT_EQ(Block(page, "advise"),
            WithoutExampleFolder(Run(fmt::format("advise {} --format json", kExampleTrace)).out));
  EXPECT_EQ(Block(page, "after-class"), "");
}

TEST_F(CliReport, IsThePageOfAdviseWithItsOwnFlags) {
  const std::string flags = std::string(kExampleTrace) + " --exclude graphs --budget risk=none";
  const std::string file = Path("advice.html");
  const CliResult r = Run("advise " + flags + " --html -o " + file);
  EXPECT_EQ(r.exit, 0) << r.err;
  const std::string page = ReadAll(file);
  EXPECT_EQ(Block(page, "advise"),
            WithoutExampleFolder(Run("advise " + flags + " --format json").out));
  EXPECT_EQ(Block(page, "whatif"), Run(std::string("whatif --format json ") + kExampleTrace).out);
  EXPECT_THAT(Block(page, "about"), HasSubstr("daydream advise "));
  EXPECT_THAT(Block(page, "about"), HasSubstr("--exclude graphs"));
  EXPECT_EQ(Run("advise --html " + flags).exit, 2);
  EXPECT_EQ(Run("advise --html --format json -o x.html " + flags).exit, 2);
}

TEST_F(CliReport, IsTheSameEveryTime) { EXPECT_EQ(Page("--opt amp"), Page("--opt amp -j 1")); }

TEST_F(CliReport, AllowsNothingButItself) {
  const std::string page = Page("--opt amp");
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(page, Not(HasSubstr("unsafe-inline")));
  EXPECT_THAT(page, Not(HasSubstr("<!-- ")));
}

TEST_F(CliReport, ATitleIsText) {
  const std::string page = Page("--opt amp --title '</title><script>alert(1)</script>'");
  EXPECT_THAT(page, HasSubstr("<title>&lt;/title&gt;&lt;script&gt;alert(1)"));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
}

TEST_F(CliReport, ScoresAPrediction) {
  const std::string page = Page(fmt::format("--opt fuse --measured {}", kExampleTrace));
  EXPECT_THAT(Block(page, "whatif"), HasSubstr("\"inside_interval\""));
}

// Of the README, and of docs/walkthrough.md. DD_UPDATE_DOCS=1 renews them.
TEST_F(CliReport, ThePicturesOfThePagesAreOfTheProgram) {
  const std::pair<std::string, std::string> pictures[] = {
      {"causes", "amp,fuse"}, {"walkthrough", "'amp,prefetch(workers=4)'"}};
  for (const auto& [name, opts] : pictures) {
    for (const std::string theme : {"light", "dark"}) {
      const std::string file =
          fmt::format("{}/docs/pictures/{}-{}.svg", DAYDREAM_SOURCE_DIR, name, theme);
      const CliResult now = Run(
          fmt::format("export {}/examples/resnet50-synthetic.ddtrace --opt {} --to svg --theme {}",
                      DAYDREAM_SOURCE_DIR, opts, theme));
      EXPECT_EQ(now.exit, 0) << now.err;
      if (std::getenv("DD_UPDATE_DOCS") != nullptr) std::ofstream(file) << now.out;
      EXPECT_EQ(ReadAll(file), now.out) << file;
    }
  }
}

TEST_F(CliReport, APictureIsOfAScenarioThatChangesSomething) {
  const CliResult r = Run(fmt::format("export {} --opt graphs,prefetch --to svg", kExampleTrace));
  EXPECT_THAT(r.out, testing::StartsWith("<svg "));
  EXPECT_THAT(r.out, HasSubstr(">as recorded</text>"));
  EXPECT_THAT(r.out, HasSubstr(">9.22 ms</text>"));
  EXPECT_EQ(Run(fmt::format("export {} --to svg", kExampleTrace)).exit, 2);
  EXPECT_EQ(Run(fmt::format("export {} --opt gist -o {}", kExampleTrace, Path("x.svg"))).exit, 4);
}

TEST_F(CliReport, IsWrittenToAFileThatIsNamed) {
  const CliResult r = Run(fmt::format("report {} --opt amp", kExampleTrace));
  EXPECT_EQ(r.exit, 2);
  EXPECT_THAT(r.err, HasSubstr("-o report.html"));
  Write("there.html", "old");
  EXPECT_NE(Run(fmt::format("report {} --opt amp -o {}", kExampleTrace, Path("there.html"))).exit,
            0);
  EXPECT_EQ(ReadAll(Path("there.html")), "old");
}

TEST_F(CliReport, IsWrittenWhereAScenarioChangesNothing) {
  const std::string file = Path("page.html");
  const CliResult r = Run(fmt::format("report {} --opt gist -o {}", kExampleTrace, file));
  EXPECT_EQ(r.exit, 4) << r.err;
  EXPECT_THAT(r.err, HasSubstr("E0601"));
  EXPECT_THAT(Block(ReadAll(file), "whatif"), HasSubstr("E0601"));
}

}  // namespace
}  // namespace daydream
