// Answers beside one another: two predictions compared, one asked again and again, and what a gate
// of CI reads.#include <csignal>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/source_tree.h"
#include "tests/tools/cli_fixture.h"

namespace daydream {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class Answers : public CliFixture {
 protected:
  static std::string Half(const char* time) {
    return fmt::format(
        "daydream: 1\nname: mine\nsummary: s\nsteps:\n"
        "  - select: {{kind: kernel}}\n    scale: {{time: {}}}\n",
        time);
  }
};

TEST_F(Answers, AWatchAsksAgainWhenAFileChangesAndEndsWithCtrlC) {
  Write("mine.yaml", Half("50%"));
  std::filesystem::copy_file(DAYDREAM_SOURCE_DIR "/examples/resnet50-synthetic.ddtrace",
                             Path("run.ddtrace"));
  const pid_t pid = Start(
      {"whatif", Path("run.ddtrace"), "--opt-file", Path("mine.yaml"), "--watch", "--no-interval"});
  ASSERT_GT(pid, 0);
  EXPECT_THAT(Await("#1  "), HasSubstr(" mine\n"));
  Write("mine.yaml", Half("5 %%"));
  EXPECT_THAT(Await("#2  "), HasSubstr("#2  error[E04"));
  Write("mine.yaml", Half("90%"));
  EXPECT_THAT(Await("#3  "), HasSubstr(" against #1\n"));
  // The recording is replaced by another one.
  std::filesystem::copy_file(kExampleTrace, Path("new.ddtrace"));
  std::filesystem::rename(Path("new.ddtrace"), Path("run.ddtrace"));
  EXPECT_THAT(Await("#4  "), HasSubstr("#4  9.22 ms -> "));
  EXPECT_EQ(Interrupt(pid), 0);
}

TEST_F(Answers, AWatchRefusesWhatItCannotDo) {
  const std::string base = std::string("whatif --watch --opt graphs ") + kExampleTrace;
  for (const char* more : {" --format json", " -o x.json", " --fail-if 'speedup < 1'"}) {
    const CliResult r = Run(base + more);
    EXPECT_EQ(r.exit, 2) << more;
    EXPECT_THAT(r.err, HasSubstr("--watch does not go with")) << more;
  }
  EXPECT_EQ(Run("whatif --watch " + folder_).exit, 2);
}

TEST_F(Answers, TwoScenariosDifferByTheirCauses) {
  const CliResult r =
      Run(fmt::format("diff {} --opt graphs --opt graphs,prefetch --format json", kExampleTrace));
  ASSERT_EQ(r.exit, 0) << r.err;
  const json diff = json::parse(r.out);
  EXPECT_EQ(diff["a"]["name"], "graphs");
  EXPECT_THAT(diff["b"]["name"].get<std::string>(), HasSubstr("graphs"));
  EXPECT_THAT(diff["b"]["name"].get<std::string>(), HasSubstr("prefetch"));
  int64_t sum = 0;
  for (const json& c : diff["causes"]) sum += c["b_ns"].get<int64_t>() - c["a_ns"].get<int64_t>();
  EXPECT_NE(sum, 0);
  EXPECT_EQ(sum, diff["b"]["step_ns"].get<int64_t>() - diff["a"]["step_ns"].get<int64_t>());

  // The same from two files, to the nanosecond.
  for (const char* spec : {"graphs", "graphs,prefetch"}) {
    ASSERT_EQ(
        Run(fmt::format("whatif {} --opt {} -o {}.json", kExampleTrace, spec, Path(spec))).exit, 0);
  }
  const json saved = json::parse(Run(fmt::format("diff {0}.json {1}.json --format json",
                                                 Path("graphs"), Path("graphs,prefetch")))
                                     .out);
  EXPECT_EQ(saved["causes"], diff["causes"]);
  for (const char* side : {"a", "b"}) {
    for (const char* key : {"name", "baseline_ns", "step_ns", "interval_ns", "confidence"}) {
      EXPECT_EQ(saved[side][key], diff[side][key]) << key;
    }
  }
  const std::string text =
      Run(fmt::format("diff {} --opt graphs --opt graphs,prefetch", kExampleTrace)).out;
  EXPECT_THAT(text, HasSubstr("loading overlaps with the step"));
  EXPECT_THAT(text, HasSubstr("one recording: "));
  for (const char* format : {"csv", "md"}) {
    EXPECT_EQ(Run(fmt::format("diff {0}.json {0}.json --format {1}", Path("graphs"), format)).exit,
              0);
  }
  EXPECT_EQ(Run(fmt::format("diff {0}.json {1}.json --fail-if 'step < -1%'", Path("graphs"),
                            Path("graphs,prefetch")))
                .exit,
            5);
}

TEST_F(Answers, RecordingsAreNamedWithTheirGpus) {
  const std::string pair = fmt::format("diff {0} {0}", kExampleTrace);
  const CliResult text = Run(pair);
  ASSERT_EQ(text.exit, 0) << text.err;
  EXPECT_THAT(text.out, testing::StartsWith(fmt::format("before  {} (", kExampleTrace)));
  const json both = json::parse(Run(pair + " --format json").out);
  for (const char* side : {"before", "after"}) {
    EXPECT_EQ(both[side]["file"], kExampleTrace);
    EXPECT_THAT(text.out, HasSubstr(both[side]["device"].get<std::string>()));
  }
  EXPECT_THAT(text.out, testing::Not(HasSubstr("GPUs differ")));
}

TEST_F(Answers, WhatIsNoPairIsRefused) {
  Run(fmt::format("whatif {} --opt graphs -o {}", kExampleTrace, Path("a.json")));
  const std::string whole = ReadAll(Path("a.json"));
  const std::string trace = std::string(" ") + kExampleTrace + " ";
  EXPECT_EQ(Run("diff" + trace).exit, 2);
  EXPECT_EQ(Run("diff" + trace + "--opt graphs").exit, 2);
  EXPECT_EQ(Run("diff" + trace + "--opt a --opt b --opt c").exit, 2);
  EXPECT_EQ(Run("diff" + trace + trace + "--opt graphs").exit, 2);
  EXPECT_THAT(Run("diff" + trace + Path("a.json")).err, HasSubstr("--measured"));
  EXPECT_EQ(Run(fmt::format("diff {0} {0} --by op", Path("a.json"))).exit, 2);
  // Cut anywhere, it is an error or an answer, never a crash.
  for (size_t cut = 40; cut < whole.size(); cut += 97) {
    Write("cut.json", whole.substr(0, cut));
    const CliResult r = Run(fmt::format("diff {} {}", Path("a.json"), Path("cut.json")));
    EXPECT_THAT(r.exit, testing::AnyOf(0, 3)) << cut << r.err;
    EXPECT_TRUE(r.exit == 0 || r.err.starts_with("error[E0215]")) << cut << r.err;
  }
}

TEST_F(Answers, MarkdownSaysWhatTheGateSaid) {
  const std::string base = std::string("whatif ") + kExampleTrace + " --opt graphs --format md";
  EXPECT_THAT(Run(base).out, Not(HasSubstr("[!")));
  const CliResult failed = Run(base + " --fail-if 'speedup < 100' --fail-if 'speedup < 1'");
  EXPECT_EQ(failed.exit, 5);
  EXPECT_THAT(failed.out,
              testing::StartsWith("> [!CAUTION]\n> **failed, \"speedup &lt; 100\" holds**"
                                  " for graphs: "));
  const CliResult passed = Run(base + " --fail-if 'speedup < 1'");
  EXPECT_EQ(passed.exit, 0) << passed.err;
  EXPECT_THAT(passed.out, testing::StartsWith("> [!TIP]\n> **passed, "));
  EXPECT_THAT(passed.out, HasSubstr("| graphs |"));
  EXPECT_THAT(passed.out, HasSubstr("where the time goes"));
  const json gates = json::parse(Run(std::string("whatif ") + kExampleTrace +
                                     " --opt graphs --format json --fail-if 'speedup < 100'")
                                     .out)["gates"];
  EXPECT_EQ(gates, json::parse(R"([{"fail_if": "speedup < 100", "holds": true}])"));
}

// An action reads it and no table beside: what makes the answer doubtful is in it, too.
TEST_F(Answers, MarkdownOfADiffHasItsVerdictAndItsDoubts) {
  Run("tour A --save " + Path("."));
  Run("tour C --save " + Path("."));
  const std::string recordings =
      fmt::format("diff {} {} --format md", Path("lessonC.ddtrace"), Path("lessonA.ddtrace"));
  const CliResult r = Run(recordings + " --fail-if 'step > +3%'");
  EXPECT_EQ(r.exit, 5);
  EXPECT_THAT(r.out, testing::StartsWith("> [!CAUTION]\n> **failed, \"step > +3%\" holds**"
                                         " for step: "));
  EXPECT_THAT(r.out, HasSubstr("Found in after:\n\n* **"));
  EXPECT_THAT(r.out, HasSubstr("differs by more than the noise of the steps"));
  EXPECT_THAT(Run(recordings).out, Not(HasSubstr("[!")));
  const std::string options = std::string("diff ") + kExampleTrace +
                              " --opt graphs --opt amp --format md --fail-if 'step > +1000%'";
  EXPECT_THAT(Run(options).out,
              testing::StartsWith("> [!TIP]\n> **passed, \"step > +1000%\" does not hold**"));
}

TEST_F(Answers, WhatIsFoundInBothRecordingsIsSaidOnce) {
  Run("tour A --save " + Path("."));
  const std::string ask = fmt::format("diff {0} {0} ", Path("lessonA.ddtrace"));
  const CliResult r = Run(ask);
  EXPECT_THAT(r.out, HasSubstr("found in both:\n!"));
  EXPECT_THAT(r.out, Not(HasSubstr("found in BEFORE:")));
  EXPECT_THAT(r.out, Not(HasSubstr("found in AFTER:")));
  EXPECT_THAT(Run(ask + "--format md").out, HasSubstr("Found in both:\n\n* **"));
  const json findings = json::parse(Run(ask + "--format json").out)["findings"];
  ASSERT_FALSE(findings.empty());
  for (const json& f : findings) {
    EXPECT_THAT(f["text"].get<std::string>(), testing::StartsWith("both: "));
  }
}

TEST_F(Answers, MarkdownOfCausalAndInfoHasTheirHeads) {
  const CliResult causal = Run(std::string("causal --format md ") + kExampleTrace);
  EXPECT_THAT(causal.out, HasSubstr("replay check: "));
  EXPECT_THAT(causal.out, HasSubstr(" per step; how much shorter it gets with less of one kind"));
  const CliResult info = Run(std::string("info --format md ") + kExampleTrace);
  EXPECT_EQ(info.exit, 0) << info.err;
  EXPECT_THAT(info.out, HasSubstr("* file: "));
  EXPECT_THAT(info.out, HasSubstr("what this trace can answer"));
}

// The head has "CPU and launching" and "data": no row is both.
TEST_F(Answers, WaitsForBatchesAreNoWorkOfTheCpu) {
  const json all = json::parse(Run(std::string("summary --format json ") + kExampleTrace).out);
  int64_t work = 0, data = 0;
  for (const json& g : all["groups"]) {
    if (g["name"] == "CPU work") work = g["critical_path_ns"];
    if (g["name"] == "data") data = g["critical_path_ns"];
  }
  EXPECT_EQ(data, all["critical_path"]["data_ns"]);
  EXPECT_EQ(work, all["critical_path"]["cpu_ns"]);
}

// whatif, summary, info and diff speak of one replay.
TEST_F(Answers, EveryCommandChecksTypicalLags) {
  const std::string trace = kExampleTrace;
  const json told = json::parse(Run("whatif --format json " + trace).out)["replay"];
  for (const char* command : {"summary", "info", "causal"}) {
    const json replay =
        json::parse(Run(std::string(command) + " --format json " + trace).out)["replay"];
    EXPECT_EQ(replay["typical_error_pct"], told["typical_error_pct"]) << command;
    EXPECT_EQ(replay["checks"], told["checks"]) << command;
  }
}

TEST_F(Answers, AFileThatWasCutOffIsNotSaidToLackGpuWork) {
  Write("cut.json", R"({"traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":0,"tid":1,)"
                    R"("ts":1,"dur":5,"args":{}},{"ph":"X","cat":"cpu_op","na)");
  const CliResult r = Run("whatif -q " + Path("cut.json"));
  EXPECT_EQ(r.exit, 4);
  EXPECT_THAT(r.err, HasSubstr("= why: the file was cut off"));
}

TEST_F(Answers, TheFirstWordOfATermExplainsIt) {
  EXPECT_THAT(Run("explain steady").out, testing::StartsWith("steady step\n"));
  EXPECT_THAT(Run("explain typical").out, testing::StartsWith("typical lags\n"));
}

TEST_F(Answers, MarkdownOfASummaryHasItsFindingsAndItsHead) {
  Run("tour A --save " + Path("."));
  for (const char* by : {"", " --by host", " --per-step"}) {
    EXPECT_THAT(Run("summary --format md " + Path("lessonA.ddtrace") + by).out,
                testing::StartsWith("* **"))
        << by;
  }
  const std::string out = Run("summary --format md " + Path("lessonA.ddtrace")).out;
  EXPECT_THAT(out, testing::ContainsRegex("\none step +11.0 ms, GPU busy "));
  EXPECT_THAT(out, HasSubstr("\n\n| class |"));
}

TEST_F(Answers, AGateThatCannotBeDecidedIsNoVerdict) {
  const std::string ask =
      "whatif " DAYDREAM_SOURCE_DIR
      "/examples/resnet50-synthetic.ddtrace --opt flash-attn --fail-if 'speedup < 1.1' --format ";
  const CliResult r = Run(ask + "md");
  EXPECT_EQ(r.exit, 4);
  EXPECT_THAT(r.out, testing::StartsWith("> [!CAUTION]\n> **not decided, \"speedup &lt; 1.1\"** "
                                         "for flash-attn: "));
  EXPECT_EQ(json::parse(Run(ask + "json").out)["gates"],
            json::parse(R"([{"fail_if": "speedup < 1.1", "holds": null}])"));
}

TEST_F(Answers, MarkdownKeepsLinesApartAndHasAHeadAboveEachColumn) {
  const std::string out =
      Run(std::string("whatif ") + kExampleTrace + " --opt amp,graphs --format md").out;
  EXPECT_THAT(out, HasSubstr("\\\n  checks hold"));
  bool table = false;
  for (const std::string& line : SplitLines(out)) {
    const bool head = line.starts_with("|") && !table;
    table = line.starts_with("|");
    if (head) {
      EXPECT_THAT(line, Not(HasSubstr("|  |")));
    }
  }
  EXPECT_THAT(out, Not(HasSubstr("+0.00 |")));
  EXPECT_THAT(out, Not(HasSubstr("-0.00 |")));
}

TEST_F(Answers, ATableIsNotWrittenIntoAPage) {
  const std::string trace = kExampleTrace;
  for (const std::string& command : {"sweep " + trace + " --opt 'speedup(class:gemm,by={2})'",
                                     "whatif " + trace, "summary " + trace}) {
    const CliResult r = Run(fmt::format("{} -o {}", command, Path("r.html")));
    EXPECT_EQ(r.exit, 2) << command;
    EXPECT_THAT(r.err, HasSubstr("daydream report TRACE"));
    EXPECT_FALSE(std::filesystem::exists(Path("r.html")));
  }
}

// The script of examples/ci/action.yml, as GitHub runs it.
class Action : public Answers {
 protected:
  CliResult Step(const std::string& opt, const std::string& fail_if) const {
    const std::string action = ReadAll(DAYDREAM_SOURCE_DIR "/examples/ci/action.yml");
    const std::string mark = "      run: |\n";
    const size_t at = action.find(mark);
    EXPECT_NE(at, std::string::npos);
    // The only ones: no input stands in the script itself.
    EXPECT_EQ(action.find("${{", at), std::string::npos);
    Write("script", action.substr(at + mark.size()));
    const std::string bin = std::filesystem::path(DAYDREAM_BINARY).parent_path();
    return Shell(
        fmt::format("PATH={}:$PATH GITHUB_STEP_SUMMARY={} TRACE={} OPT={} FAIL_IF='{}' "
                    "bash -e -o pipefail {}",
                    bin, Path("summary.md"), kExampleTrace, opt, fail_if, Path("script")));
  }
};

TEST_F(Action, WritesTheSummaryAndFailsWithTheGate) {
  const CliResult none = Step("graphs", "");
  EXPECT_EQ(none.exit, 0) << none.err;
  EXPECT_THAT(ReadAll(Path("summary.md")), HasSubstr("| graphs |"));
  const CliResult passed = Step("graphs", "speedup < 1.05");
  EXPECT_EQ(passed.exit, 0) << passed.err;
  EXPECT_THAT(ReadAll(Path("summary.md")), HasSubstr("> [!TIP]\n"));
  const CliResult failed = Step("graphs", "speedup > 1.05");
  EXPECT_EQ(failed.exit, 5) << failed.err;
  EXPECT_THAT(ReadAll(Path("summary.md")), HasSubstr("> [!CAUTION]\n"));
}

}  // namespace
}  // namespace daydream
