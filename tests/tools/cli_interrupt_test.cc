// What Ctrl-C and SIGTERM leave, and what is said then.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "report/text/format.h"
#include "tests/tools/cli_fixture.h"
#include "tests/tools/small_trace.h"

namespace daydream {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kResNet[] = DAYDREAM_SOURCE_DIR "/examples/resnet50-synthetic.ddtrace";
constexpr char kTwoRanks[] = DAYDREAM_SOURCE_DIR "/examples/two-ranks-synthetic";

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    names.push_back(file.path().filename());
  }
  return names;
}

// Answers so many, on one thread, that they take a second or more.
class Interrupts : public CliFixture {
 protected:
  // Each step of the progress is a line at once.
  void SetUp() override {
    CliFixture::SetUp();
    setenv("DAYDREAM_PROGRESS_MS", "0", 1);
  }
  void TearDown() override {
    unsetenv("DAYDREAM_PROGRESS_MS");
    CliFixture::TearDown();
  }

  static std::vector<std::string> Asked(std::vector<std::string> words) {
    words.insert(words.begin() + 1, kExampleTrace);
    words.insert(words.end(), {"-j1", "--progress=always"});
    return words;
  }
  static std::vector<std::string> ManyOptions() {
    std::vector<std::string> words = {"advise"};
    for (int i = 0; i < 20'000; ++i) {
      words.insert(words.end(),
                   {"--opt", "speedup(kind:gpu,1." + std::to_string(10'000 + i) + ")"});
    }
    return Asked(words);
  }
  // The last is a combination, whose parts are predicted first.
  static std::vector<std::string> ManyScenarios(const char* trace = kExampleTrace,
                                                const char* command = "whatif") {
    std::vector<std::string> words = {command, trace, "-j1", "--progress=always"};
    for (int i = 0; i < 20'000; ++i) {
      words.insert(words.end(),
                   {"--opt", "speedup(kind:gpu,1." + std::to_string(10'000 + i) + ")"});
    }
    words.insert(words.end(), {"--opt", "amp,fuse"});
    return words;
  }
  static std::vector<std::string> ManyCurves() {
    return Asked({"causal", "--points", "1000", "--top", "1000"});
  }
  static std::vector<std::string> ManyPoints() {
    std::string ranks = "1";
    for (int i = 2; i <= 1024; ++i) ranks += "," + std::to_string(i);
    return Asked({"scale", "--fabric", "ib-ndr", "--ranks", ranks});
  }

  // Interrupts `words` once `progress` was told; its exit code.
  int InterruptedAt(const std::string& progress, std::vector<std::string> words,
                    const std::vector<std::string>& more = {}, int signal = SIGINT) const {
    words.insert(words.end(), more.begin(), more.end());
    Write("err", "");
    const pid_t pid = Start(words);
    for (int i = 0; i < 3000 && Said().find(progress) == std::string::npos; ++i) usleep(10'000);
    return Interrupt(pid, signal);
  }
  std::string Said() const { return OneLine(ReadAll(Path("err"))); }
  size_t Lines(const std::string& file) const {
    const std::string text = ReadAll(Path(file));
    EXPECT_TRUE(text.ends_with('\n')) << text;
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
};

TEST_F(Interrupts, AdviseLeavesTheOptionsThatWereTried) {
  EXPECT_EQ(InterruptedAt("trying options 30 of", ManyOptions(), {"-o", Path("a.json")}), 130);
  const std::string out = ReadAll(Path("a.json"));
  EXPECT_THAT(out, HasSubstr("\"schema\": \"daydream.advise/1\",\n  \"interrupted\": true,"));
  EXPECT_THAT(out, HasSubstr("\"best\": null"));
  EXPECT_THAT(out, HasSubstr("\"saved_ns\": "));
  EXPECT_THAT(Said(), HasSubstr("note: stopping after the options that are begun"));
  EXPECT_THAT(Said(), testing::ContainsRegex(
                          "warning: interrupted: [0-9,]+ of 20,022 options are not tried, and the "
                          "best set is not looked for"));
}

TEST_F(Interrupts, WhatIfLeavesTheScenariosThatAreDoneAndNamesTheRest) {
  EXPECT_EQ(InterruptedAt("predicting 3 of", ManyScenarios(),
                          {"-o", Path("w.json"), "--fail-if", "speedup < 1"}),
            130);
  const auto json = nlohmann::json::parse(ReadAll(Path("w.json")));
  EXPECT_EQ(json["interrupted"], true);
  const size_t missing = json["not_done"].size();
  EXPECT_EQ(json["scenarios"].size() - 1 + missing, 20'003u);
  EXPECT_GE(json["scenarios"].size(), 4u);
  EXPECT_GT(json["scenarios"][3]["step_ns"], 0);
  EXPECT_EQ(json["not_done"].back(), "amp + fuse");
  EXPECT_TRUE(json["main"].is_null());
  EXPECT_TRUE(json["gates"][0]["holds"].is_null());
  EXPECT_THAT(Said(), HasSubstr("note: stopping after the scenarios that are begun"));
  EXPECT_THAT(Said(), HasSubstr("warning: interrupted: " + FormatCount(missing) +
                                " of 20,003 scenarios are not done = effect"));
}

TEST_F(Interrupts, AnAnswerWithoutItsLastScenarioIsNotCompared) {
  EXPECT_EQ(InterruptedAt("predicting 3 of", ManyScenarios(), {"-o", Path("w.json")}), 130);
  const CliResult r = Run("diff " + Path("w.json") + " " + Path("w.json"));
  EXPECT_EQ(r.exit, 3);
  EXPECT_THAT(OneLine(r.err), HasSubstr("= why: it was interrupted before its last scenario"));
}

TEST_F(Interrupts, WhatIfNamesWhatIsNotDoneInEachFormat) {
  EXPECT_EQ(InterruptedAt("predicting 3 of", ManyScenarios(), {"--format", "csv"}), 130);
  EXPECT_THAT(ReadAll(Path("out")), HasSubstr(",step_ns,"));
  EXPECT_THAT(ReadAll(Path("out")), testing::EndsWith("\namp + fuse,not_done,1\n"));
  for (const char* format : {"table", "md"}) {
    EXPECT_EQ(InterruptedAt("predicting 3 of", ManyScenarios(), {"--format", format}), 130);
    const std::string out = OneLine(ReadAll(Path("out")));
    EXPECT_THAT(out, HasSubstr("baseline")) << format;
    EXPECT_THAT(out, testing::ContainsRegex("interrupted: [0-9,]+ of 20,003 scenarios are not "
                                            "done: speedup.* and [0-9,]+ more"))
        << format;
  }
}

TEST_F(Interrupts, FlagsAboutAScenarioThatIsNotDoneWriteNothing) {
  Write("kept.txt", "");
  EXPECT_EQ(InterruptedAt("predicting 3 of", ManyScenarios(),
                          {"--timeline", Path("t.pftrace"), "--measured", kExampleTrace, "--learn",
                           Path("kept.txt"), "--by", "layer"}),
            130);
  EXPECT_THAT(Said(), HasSubstr("scenarios are not done, nor --by, --timeline, --measured, "
                                "--learn"));
  EXPECT_EQ(ReadAll(Path("kept.txt")), "");
  EXPECT_THAT(FilesIn(folder_), testing::UnorderedElementsAre("err", "kept.txt", "out"));
}

// Its prediction is there by then.
TEST_F(Interrupts, BeforeATimelineItLeavesThePrediction) {
  // On a busy machine the timeline may be written before it is interrupted.
  int exit = 0;
  for (int tries = 0; tries < 20 && exit != 130; ++tries) {
    std::filesystem::remove(Path("t.json"));
    exit = InterruptedAt("playing before and after",
                         {"whatif", kResNet, "--opt", "amp", "--timeline", Path("t.json"),
                          "--format", "json", "--progress=always"});
  }
  EXPECT_EQ(exit, 130);
  const auto json = nlohmann::json::parse(ReadAll(Path("out")));
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_EQ(json["not_done"].size(), 0u);
  EXPECT_EQ(json["scenarios"][json["main"].get<size_t>()]["name"], "amp");
  EXPECT_THAT(Said(), HasSubstr("warning: interrupted: not done: --timeline"));
  EXPECT_NE(access(Path("t.json").c_str(), F_OK), 0);
}

TEST_F(Interrupts, ATimelineThatIsBeingMadeIsLeftOut) {
  Write("long.json", SmallTrace(10'000));
  int exit = 0;
  for (int tries = 0; tries < 20 && exit != 130; ++tries) {
    std::filesystem::remove(Path("t.json"));
    exit = InterruptedAt(
        "making " + Path("t.json") + " 8,192 of",
        {"whatif", Path("long.json"), "--steps", "all", "--opt", "free-gpu", "--timeline",
         Path("t.json"), "--format", "json", "--no-interval", "--progress=always"});
  }
  EXPECT_EQ(exit, 130);
  EXPECT_EQ(nlohmann::json::parse(ReadAll(Path("out")))["interrupted"], true);
  EXPECT_THAT(Said(), HasSubstr("warning: interrupted: not done: --timeline"));
  EXPECT_THAT(FilesIn(folder_), testing::UnorderedElementsAre("err", "long.json", "out"));
}

TEST_F(Interrupts, WhatIfOfRanksLeavesTheScenariosThatAreDone) {
  const std::vector<std::string> words = ManyScenarios(kTwoRanks);
  EXPECT_EQ(InterruptedAt("predicting 3 of", words, {"--format", "json"}), 130);
  const auto json = nlohmann::json::parse(ReadAll(Path("out")));
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_EQ(json["scenarios"].size() - 1 + json["not_done"].size(), 20'003u);
  EXPECT_GE(json["scenarios"].size(), 4u);
  EXPECT_TRUE(json["main"].is_null());
  EXPECT_EQ(InterruptedAt("predicting 3 of", words, {"--format", "csv"}), 130);
  EXPECT_THAT(ReadAll(Path("out")), testing::EndsWith("\namp + fuse,-,,,-,,,not done,\n"));
}

TEST_F(Interrupts, InfoLeavesAllButTheOptimizationsThatAreNotTried) {
  Write("long.json", SmallTrace(4000));
  const std::vector<std::string> words = {
      "info", Path("long.json"), "--steps", "all", "--format", "json", "-j1", "--progress=always"};
  // On a busy machine all may be tried before they are interrupted.
  int exit = 0;
  for (int tries = 0; tries < 20 && exit != 130; ++tries) {
    exit = InterruptedAt("trying optimizations 3 of", words);
  }
  EXPECT_EQ(exit, 130);
  EXPECT_THAT(Said(), testing::ContainsRegex("warning: interrupted: [0-9]+ of [0-9]+ "
                                             "optimizations are not tried"));
  const auto json = nlohmann::json::parse(ReadAll(Path("out")));
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_GE(json["answers"].size(), 3u);
  EXPECT_GE(json["not_tried"].size(), 1u);
  EXPECT_GT(json["graph"]["tasks"], 0);
  const auto whole = nlohmann::json::parse(Run("info " + Path("long.json") +
                                               " --steps all "
                                               "--format json")
                                               .out);
  EXPECT_FALSE(whole.contains("interrupted"));
  EXPECT_EQ(whole["answers"].size(), json["answers"].size() + json["not_tried"].size());
}

TEST_F(Interrupts, OptListLeavesWhatWasTried) {
  Write("long.json", SmallTrace(4000));
  int exit = 0;
  for (int tries = 0; tries < 20 && exit != 130; ++tries) {
    exit = InterruptedAt("trying optimizations 3 of",
                         {"opt", "list", "--applicable", Path("long.json"), "--steps", "all",
                          "--format", "csv", "-j1", "--progress=always"});
  }
  EXPECT_EQ(exit, 130);
  const std::string out = ReadAll(Path("out"));
  EXPECT_THAT(out, testing::ContainsRegex(": [0-9]+ changes\n"));
  EXPECT_THAT(out, testing::EndsWith(",not tried\n"));
}

// JSON of a page by what it is called; null where the page has none.
nlohmann::json Block(const std::string& page, const std::string& id) {
  const std::string open = "<script type=\"application/json\" id=\"" + id + "\">";
  const size_t begin = page.find(open);
  if (begin == page.npos) return nullptr;
  const size_t end = page.find("</script>", begin);
  return nlohmann::json::parse(page.substr(begin + open.size(), end - begin - open.size()));
}

TEST_F(Interrupts, ReportLeavesAPageOfTheScenariosThatAreDoneAndSaysSo) {
  EXPECT_EQ(InterruptedAt("predicting 3 of", ManyScenarios(kExampleTrace, "report"),
                          {"--measured", kExampleTrace, "-o", Path("p.html")}),
            130);
  const std::string page = ReadAll(Path("p.html"));
  EXPECT_THAT(std::string(Block(page, "about")["not_whole"]),
              testing::ContainsRegex("[0-9,]+ of 20,003 scenarios are not done: speedup.* and "
                                     "[0-9,]+ more; nor --measured, tables and timelines"));
  const nlohmann::json json = Block(page, "whatif");
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_GE(json["scenarios"].size(), 4u);
  EXPECT_EQ(json["scenarios"].size() - 1 + json["not_done"].size(), 20'003u);
  EXPECT_TRUE(Block(page, "timeline").is_null());
  EXPECT_TRUE(Block(page, "summary-class").is_null());
  EXPECT_THAT(Said(), HasSubstr("of 20,003 scenarios are not done, nor --measured, tables and "
                                "timelines"));
}

TEST_F(Interrupts, ReportOfRanksHoldsWhatAllOfThemAnsweredFirst) {
  EXPECT_EQ(
      InterruptedAt("predicting 3 of", ManyScenarios(kTwoRanks, "report"), {"-o", Path("p.html")}),
      130);
  const std::string page = ReadAll(Path("p.html"));
  EXPECT_THAT(std::string(Block(page, "about")["not_whole"]),
              HasSubstr("nor what one rank alone would do, tables and timelines"));
  const nlohmann::json ranks = Block(page, "ranks");
  EXPECT_EQ(ranks["interrupted"], true);
  EXPECT_TRUE(ranks["main"].is_null());
  EXPECT_GE(ranks["scenarios"].size(), 4u);
  EXPECT_EQ(Block(page, "whatif")["scenarios"].size(), 1u);
}

TEST_F(Interrupts, ReportWhoseTablesAreNotMadeHasItsPredictions) {
  // On a busy machine they may be made before they are interrupted.
  int exit = 0;
  for (int tries = 0; tries < 20 && exit != 130; ++tries) {
    exit = InterruptedAt("drawing the timelines", {"report", kResNet, "--opt", "amp", "-f", "-o",
                                                   Path("p.html"), "-j1", "--progress=always"});
  }
  EXPECT_EQ(exit, 130);
  const std::string page = ReadAll(Path("p.html"));
  EXPECT_THAT(std::string(Block(page, "about")["not_whole"]),
              testing::ContainsRegex("^not done: (tables and )?timelines$"));
  EXPECT_FALSE(Block(page, "whatif").contains("interrupted"));
  EXPECT_EQ(Block(page, "whatif")["scenarios"].size(), 2u);
  EXPECT_TRUE(Block(page, "timeline").is_null());
}

TEST_F(Interrupts, PagesWithAdviceHoldTheOptionsThatWereTried) {
  std::vector<std::string> html = ManyOptions();
  html.insert(html.end(), {"--html", "-f", "-o", Path("p.html")});
  const std::vector<std::string> report = {
      "report", kResNet, "-f", "-o", Path("p.html"), "-j1", "--progress=always"};
  for (const std::vector<std::string>& words : {html, report}) {
    // On a busy machine all may be tried before they are interrupted.
    int exit = 0;
    for (int tries = 0; tries < 20 && exit != 130; ++tries) {
      exit = InterruptedAt("trying options 3 of", words);
    }
    EXPECT_EQ(exit, 130) << words[0];
    const std::string page = ReadAll(Path("p.html"));
    EXPECT_THAT(std::string(Block(page, "about")["not_whole"]),
                HasSubstr("the best set is not looked for"))
        << words[0];
    EXPECT_EQ(Block(page, "advise")["interrupted"], true) << words[0];
    EXPECT_FALSE(Block(page, "timeline").is_null()) << words[0];
  }
}

TEST_F(Interrupts, CausalLeavesTheCurvesThatArePlayed) {
  // On a busy machine all may be played before they are interrupted.
  int exit = 0;
  for (int tries = 0; tries < 20 && exit != 130; ++tries) {
    exit = InterruptedAt("playing curves 1 of", ManyCurves(), {"-f", "-o", Path("c.json")});
  }
  EXPECT_EQ(exit, 130);
  const std::string out = ReadAll(Path("c.json"));
  EXPECT_THAT(out, HasSubstr("\"schema\": \"daydream.causal/1\",\n  \"interrupted\": true,"));
  EXPECT_THAT(out, HasSubstr("\"family\": "));
  EXPECT_THAT(Said(), testing::ContainsRegex("warning: interrupted: [0-9]+ of 161 curves are "
                                             "missing"));
}

TEST_F(Interrupts, ScaleLeavesThePointsThatArePlayed) {
  EXPECT_EQ(InterruptedAt("playing points 3 of", ManyPoints(), {"-o", Path("s.csv")}), 130);
  const std::string said = Said();
  const size_t points = Lines("s.csv") - 1;
  const std::string whole =
      Run(std::string("scale ") + kExampleTrace + " --fabric ib-ndr --ranks 1,2,3 --format csv")
          .out;
  EXPECT_TRUE(ReadAll(Path("s.csv")).starts_with(whole)) << whole;
  EXPECT_GE(points, 3u);
  EXPECT_LT(points, 1024u);
  EXPECT_THAT(said, HasSubstr("warning: interrupted: " + FormatCount(1024 - points) +
                              " of 1,024 points are missing"));
}

TEST_F(Interrupts, JsonOfScaleAndSweepSaysThatItIsAPart) {
  EXPECT_EQ(InterruptedAt("playing points 3 of", ManyPoints(), {"--format", "json"}), 130);
  EXPECT_THAT(ReadAll(Path("out")), HasSubstr("\"interrupted\": true"));
  EXPECT_EQ(InterruptedAt("sweeping 3 of", Asked({"sweep", "--opt", "speedup(kind:gpu,1..99999)",
                                                  "--no-interval", "--format", "json"})),
            130);
  EXPECT_THAT(ReadAll(Path("out")), HasSubstr("\"interrupted\": true"));
}

TEST_F(Interrupts, WhatIsWholeHasNoMark) {
  for (const char* ask : {"advise", "whatif --opt prefetch,free-launch", "causal",
                          "scale --fabric nvlink4 --ranks 1,2", "sweep --opt 'prefetch(1..2)'"}) {
    const std::string words = ask;
    const size_t space = std::min(words.find(' '), words.size());
    const CliResult r =
        Run(words.substr(0, space) + " " + kExampleTrace + words.substr(space) + " --format json");
    EXPECT_EQ(r.exit, 0) << ask;
    EXPECT_THAT(r.out, Not(HasSubstr("interrupted"))) << ask;
  }
}

// Batch systems send it before they end a job.
TEST_F(Interrupts, SigtermLeavesWhatIsDoneAsCtrlCDoes) {
  EXPECT_EQ(InterruptedAt("playing points 3 of", ManyPoints(), {"-o", Path("s.csv")}, SIGTERM),
            130);
  EXPECT_GE(Lines("s.csv"), 4u);
  EXPECT_EQ(InterruptedAt("sweeping 3 of",
                          Asked({"sweep", "--opt", "speedup(kind:gpu,1..99999)", "--no-interval"}),
                          {"-o", Path("r.csv")}, SIGTERM),
            130);
  EXPECT_GE(Lines("r.csv"), 4u);
}

TEST_F(Interrupts, TheSecondOneEndsItAtOnce) {
  std::vector<std::string> words = ManyPoints();
  words.insert(words.end(), {"-o", Path("s.csv")});
  const pid_t pid = Start(words);
  for (int i = 0; i < 3000 && Said().find("points 3 of") == std::string::npos; ++i) usleep(10'000);
  // Both before it goes on.
  kill(pid, SIGSTOP);
  kill(pid, SIGTERM);
  kill(pid, SIGINT);
  kill(pid, SIGCONT);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_THAT(WEXITSTATUS(status), testing::AnyOf(130, 128 + SIGTERM));
  EXPECT_THAT(Said(),
              testing::ContainsRegex("interrupted: [0-9]+ of 1024 points are done, and lost"));
  EXPECT_NE(access(Path("s.csv").c_str(), F_OK), 0);
}

// What has one answer waits here for a file that does not come.
TEST_F(Interrupts, OneAnswerSaysWhatWasInterruptedAndThatNothingWasWritten) {
  ASSERT_EQ(Shell("mkfifo " + Path("pipe")).exit, 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    for (const char* command : {"whatif", "report", "import", "summary"}) {
      const std::vector<std::string> words = {command, Path("pipe"), "--progress=always", "-o",
                                              Path("result")};
      EXPECT_EQ(InterruptedAt("reading", words, {}, signal), 128 + signal) << command;
      EXPECT_THAT(Said(), HasSubstr("note: interrupted while reading " + Path("pipe") +
                                    ": nothing was written"))
          << command;
      EXPECT_NE(access(Path("result").c_str(), F_OK), 0);
    }
  }
}

// Folders of our own in $TMPDIR, which are there for a part of a second.
class InterruptedFolders : public Interrupts {
 protected:
  void SetUp() override {
    Interrupts::SetUp();
    std::filesystem::create_directories(Path("tmp"));
    setenv("TMPDIR", Path("tmp").c_str(), 1);
  }
  void TearDown() override {
    unsetenv("TMPDIR");
    Interrupts::TearDown();
  }
  // Files in folders in $TMPDIR.
  size_t Files() const {
    size_t files = 0;
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator file(Path("tmp"), error), end;
         !error && file != end; file.increment(error)) {
      files += !file->is_directory(error);
    }
    return files;
  }
  int InterruptedWithFile(const std::vector<std::string>& words, int signal) const {
    const pid_t pid = Start(words);
    for (int i = 0; i < 100'000 && Files() == 0 && kill(pid, 0) == 0; ++i) usleep(100);
    return Interrupt(pid, signal);
  }
};

TEST_F(InterruptedFolders, ALessonLeavesNone) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // On a busy machine the lesson may be over before it is interrupted.
    int exit = 0;
    for (int tries = 0; tries < 20 && exit == 0; ++tries) {
      exit = InterruptedWithFile({"tour", "A", "--answers"}, signal);
    }
    EXPECT_EQ(exit, 128 + signal);
    EXPECT_TRUE(std::filesystem::is_empty(Path("tmp")));
  }
}

// The program that exports is ended first, whether or not it wants to be.
TEST_F(InterruptedFolders, AnExportOfAReportLeavesNone) {
  Write("run.nsys-rep", "NVIDIA Tegra Profiler Report 2023@4@4@54-234433681190v0");
  std::filesystem::create_directories(Path("bin"));
  const std::string path = getenv("PATH");
  setenv("PATH", (Path("bin") + ":" + path).c_str(), 1);
  for (const std::string ends : {"", "trap '' TERM\n"}) {
    Write("bin/nsys",
          "#!/bin/sh\necho $$ > " + Path("pid") + "\n" + ends +
              "while :; do mkdir \"$5.parts\" 2> /dev/null; : > \"$5.parts/a\"; done\n");
    ASSERT_EQ(chmod(Path("bin/nsys").c_str(), 0755), 0);
    EXPECT_EQ(InterruptedWithFile({"info", Path("run.nsys-rep"), "--convert"}, SIGTERM),
              128 + SIGTERM);
    EXPECT_TRUE(std::filesystem::is_empty(Path("tmp")));
    EXPECT_NE(kill(std::stoi(ReadAll(Path("pid"))), 0), 0) << "it writes on";
  }
  setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace daydream
