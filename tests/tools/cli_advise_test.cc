// The commands that say what to do next: advise, causal.
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tests/real_traces.h"
#include "tests/tools/cli_fixture.h"
#include "tests/tools/on_terminal.h"

namespace daydream {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class Advising : public CliFixture {
 protected:
  json Advise(const std::string& flags = "") const {
    CliResult r = Run(std::string("advise ") + kExampleTrace + " --format json " + flags);
    EXPECT_EQ(r.exit, 0) << r.err;
    return json::parse(r.out);
  }
};

TEST_F(Advising, RanksWhatSavesAndShowsHowToTryAndCheckIt) {
  CliResult r = Run(std::string("advise ") + kExampleTrace);
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("replay check"));
  for (const char* part :
       {"\n   #  try", "\n   1  ", "best set: ", "ceilings, of one kind of work each: ",
        "not worth it alone: ", "nothing to change here: ", "\n  how  ", "\n  trust  "}) {
    EXPECT_THAT(r.out, HasSubstr(part));
  }
  EXPECT_THAT(r.out, HasSubstr(" --measured AFTER.ddtrace\n"));
}

TEST_F(Advising, EveryCheckCommandIsUnderstoodByWhatif) {
  json all = Advise();
  std::vector<std::string> commands = {all["best"]["check"]};
  for (const json& option : all["options"]) commands.push_back(option["check"]);
  for (std::string command : commands) {
    const std::string program = "daydream ", after = "AFTER.ddtrace";
    ASSERT_EQ(command.find(program), 0u);
    command.replace(command.find(after), after.size(), kExampleTrace);
    CliResult r = Shell(DAYDREAM_BINARY " " + command.substr(program.size()));
    EXPECT_EQ(r.exit, 0) << command << "\n" << r.err;
    EXPECT_THAT(r.out, HasSubstr("   measured ")) << command;
  }
}

TEST_F(Advising, SaysTheSameAsWhatif) {
  json all = Advise();
  ASSERT_GE(all["options"].size(), 2u);
  for (const json& option : all["options"]) {
    const json& p = option["prediction"];
    CliResult r = Run(std::string("whatif ") + kExampleTrace + " --format json --opt '" +
                      p["opts"][0].get<std::string>() + "'");
    json whatif = json::parse(r.out);
    const json& same = whatif["scenarios"][1];
    EXPECT_EQ(p["step_ns"], same["step_ns"]) << p["name"];
    EXPECT_EQ(p["causes"], same["causes"]) << p["name"];
    EXPECT_EQ(p["confidence"], same["confidence"]) << p["name"];
  }
}

TEST_F(Advising, TheSameBytesWithAnyNumberOfThreads) {
  for (const char* command : {"advise ", "causal "}) {
    const std::string ask = command + std::string(kExampleTrace);
    EXPECT_EQ(Run(ask + " -j1").out, Run(ask + " -j3").out);
    EXPECT_EQ(Run(ask + " -j1 --format json").out, Run(ask + " -j4 --format json").out);
    EXPECT_EQ(Run(ask + " -j1 --format csv").out, Run(ask + " -j2 --format csv").out);
  }
}

TEST_F(Advising, TriesFilesOfTheUserAndLeavesOutWhatIsExcluded) {
  const std::string file = DAYDREAM_SOURCE_DIR "/examples/optimizations/fused-adam.yaml";
  json all = Advise("--exclude fuse --opt-file " + file);
  size_t mine = 0;
  for (const char* list : {"options", "not_worth", "nothing_to_change", "not_judged"}) {
    for (const json& option : all[list]) {
      EXPECT_NE(option["prediction"]["opts"][0], "fuse");
      if (option["prediction"]["opts"][0] != "fused-adam") continue;
      ++mine;
      EXPECT_THAT(option["check"].get<std::string>(), HasSubstr("--opt-file " + file));
    }
  }
  EXPECT_EQ(mine, 1u);
  CliResult r = Run(std::string("advise ") + kExampleTrace + " --exclude fuze");
  EXPECT_EQ(r.exit, 2);
  EXPECT_THAT(r.err, HasSubstr("did you mean 'fuse'?"));
}

TEST_F(Advising, ABudgetLeavesOutWhatTakesMoreAndSaysSo) {
  const json all = Advise(), small = Advise("--budget 'effort<=2 lines' --budget 'risk!=races'");
  EXPECT_GT(all["options"].size(), 0u);
  EXPECT_GT(small["over_budget"].size(), 3u);
  for (const char* list : {"options", "not_worth", "nothing_to_change", "not_judged"}) {
    for (const json& option : small[list]) {
      const std::string effort = option["effort"];
      EXPECT_TRUE(effort == "1 line" || effort == "2 lines" || effort == "1 word") << effort;
      EXPECT_NE(option["risk"], "races");
    }
  }
  CliResult r = Run(std::string("advise ") + kExampleTrace + " --budget risk=none");
  EXPECT_THAT(r.out, HasSubstr("over the budget: "));
  EXPECT_THAT(OneLine(r.out), HasSubstr("amp (risk: numerics)"));
  for (const char* bad :
       {"effort<=many", "effort=20 lines", "risk<none", "memory<=0", "effort<="}) {
    CliResult wrong = Run(std::string("advise ") + kExampleTrace + " --budget '" + bad + "'");
    EXPECT_EQ(wrong.exit, 2) << bad;
    EXPECT_THAT(wrong.err, HasSubstr("E0710")) << bad;
  }
}

TEST_F(Advising, ABudgetNamesRisksThatThereAre) {
  const std::string ask = std::string("advise ") + kExampleTrace;
  const CliResult wrong = Run(ask + " --budget risk=numeric");
  EXPECT_EQ(wrong.exit, 2);
  EXPECT_THAT(wrong.err, HasSubstr("E0710"));
  EXPECT_THAT(wrong.err, HasSubstr("no optimization has the risk 'numeric'; did you mean"));
  EXPECT_THAT(wrong.err, HasSubstr("host memory, "));
  EXPECT_EQ(Run(ask + " --budget 'risk!=foo'").exit, 2);
  // The word of an option file of one's own is one, too.
  Write("mine.yaml",
        "daydream: 1\nname: mine\nsummary: s\nadvice: {effort: 1 line, risk: foo, how: h}\n"
        "steps: [{use: fuse}]\n");
  EXPECT_EQ(Run(ask + " --budget 'risk!=foo' --opt-file " + Path("mine.yaml")).exit, 0);
}

TEST_F(Advising, AGoalThatIsAlwaysRefusedIsNotOffered) {
  const CliResult r = Run(std::string("advise ") + kExampleTrace + " --objective fast");
  EXPECT_EQ(r.exit, 2);
  EXPECT_THAT(r.err, HasSubstr("--objective step, throughput or cost"));
  EXPECT_THAT(r.err, Not(HasSubstr("energy")));
}

// The members of the best set count together.
TEST_F(Advising, ASetStaysWithinTheBudgetOfAllItsMembers) {
  const json roomy = Advise("--budget 'effort<=1000 lines'"),
             tight = Advise("--budget 'effort<=2 lines'");
  ASSERT_FALSE(roomy["best"].is_null());
  EXPECT_EQ(roomy["best"]["prediction"]["opts"], Advise()["best"]["prediction"]["opts"]);
  if (tight["best"].is_null()) return;
  EXPECT_LE(tight["best"]["prediction"]["opts"].size(), 2u);
}

TEST_F(Advising, RanksByThroughputWhatHandlesMoreExamples) {
  const std::string opt = "--opt 'batch(x2)' --opt 'accumulate(2)' ";
  const json step = Advise(opt), throughput = Advise(opt + "--objective throughput");
  auto find = [](const json& all, const std::string& name) {
    for (const char* list : {"options", "not_worth"}) {
      for (const json& o : all[list]) {
        if (o["prediction"]["name"] == name) return o;
      }
    }
    return json();
  };
  const json asked = find(step, "batch(size=x2)"), better = find(throughput, "batch(size=x2)");
  ASSERT_TRUE(asked.is_object() && better.is_object());
  EXPECT_EQ(asked, better) << "what changes the work of a step is never ranked by its length";
  // As long as recorded examples take: half of what the step of twice as many takes.
  const json all = json::parse(
      Run(std::string("whatif ") + kExampleTrace + " --format json --opt 'batch(x2)'").out);
  const int64_t whole = all["scenarios"][1]["step_ns"], half = better["prediction"]["step_ns"];
  EXPECT_NEAR(static_cast<double>(half), static_cast<double>(whole) / 2, 1);
  int64_t sum = 0;
  for (const json& cause : better["prediction"]["causes"]) sum += cause["delta_ns"].get<int64_t>();
  EXPECT_EQ(sum, half - throughput["baseline"]["step_ns"].get<int64_t>());
  EXPECT_TRUE(throughput["per_example"]);
  CliResult energy = Run(std::string("advise ") + kExampleTrace + " --objective energy");
  EXPECT_EQ(energy.exit, 4);
  EXPECT_THAT(energy.err, HasSubstr("E0711"));
  EXPECT_EQ(
      Run(std::string("advise ") + kExampleTrace + " --opt 'gpu(H100)' --objective cost").exit, 4);
  EXPECT_EQ(Run(std::string("advise ") + kExampleTrace + " --opt amp,fuse").exit, 2);
}

TEST_F(Advising, MistakesAndUselessTracesExitAsDocumented) {
  const std::string trace = kExampleTrace;
  EXPECT_EQ(Run("advise").exit, 2);
  EXPECT_EQ(Run("advise " + trace + " --details many").exit, 2);
  EXPECT_EQ(Run("advise " + trace + " --max-replay-error ten").exit, 2);
  EXPECT_EQ(Run("advise " + Path("missing.json")).exit, 3);
  Write("cpu.json", R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1,
        "tid": 1, "ts": 1, "dur": 2}]})");
  EXPECT_EQ(Run("advise " + Path("cpu.json")).exit, 4);
  EXPECT_EQ(Run("causal " + Path("cpu.json")).exit, 4);
  EXPECT_EQ(Run("causal " + trace + " --select 'kernel:('").exit, 2);
  EXPECT_EQ(Run("causal " + trace + " --by gemms").exit, 2);
  EXPECT_EQ(Run("causal " + trace + " --points 0").exit, 2);
  EXPECT_EQ(Run("causal " + trace + " --points 1001").exit, 2);
  EXPECT_EQ(Run("causal " + trace + " --select zzz").exit, 4);
}

TEST_F(Advising, ExplainTellsWhatAnOptimizationDoesHereAndWhyNotMore) {
  const std::string here = std::string(" ") + kExampleTrace;
  CliResult r = Run("explain fuse" + here);
  EXPECT_EQ(r.exit, 0) << r.err;
  for (const char* part : {"confidence", "where the time goes", "\n  all  ", "then bound by ",
                           "; then bound by host"}) {
    EXPECT_THAT(r.out, HasSubstr(part));
  }
  r = Run("explain fuse");
  for (const char* part : {"\nmodel  ", "\nchecked  ", "\ntry it  "}) {
    EXPECT_THAT(r.out, HasSubstr(part));
  }
  EXPECT_EQ(Run("explain free-comm" + here).exit, 4);
  EXPECT_EQ(Run("explain fuze" + here).exit, 2);
}

// No list of names: this holds for optimizations that nobody has thought of yet.
TEST_F(Advising, OptimizationsThatWereNeverMeasuredSaySo) {
  EXPECT_THAT(Run("explain prefetch").out, HasSubstr("recorded pairs of before and after"));
  const std::string file = DAYDREAM_SOURCE_DIR "/examples/optimizations/fused-adam.yaml";
  EXPECT_THAT(Run("explain " + file).out, HasSubstr("never checked"));
}

// The time that follows the arrow of the first kernel, with its unit.
std::string FirstKernelAfter(const std::string& out) {
  const size_t arrow = out.find(" -> ", out.find("\nkernels with the most time"));
  return arrow == std::string::npos ? "" : out.substr(arrow, out.find("  (", arrow) - arrow);
}

TEST_F(Advising, ExplainShowsKernelTimesAfterTheWholeScenario) {
  const std::string here = std::string(" ") + kExampleTrace + " --top 1";
  const std::string amp = Run("explain amp" + here).out,
                    gpu = Run("explain 'gpu(H100)'" + here).out;
  const std::string both = Run("explain 'gpu(H100),amp'" + here).out;
  EXPECT_THAT(amp, HasSubstr("tensor cores (amp)"));
  EXPECT_THAT(both, HasSubstr(" (gpu)\n"));
  EXPECT_THAT(both, HasSubstr("tensor cores (amp)\n"));
  for (const std::string& one : {amp, gpu}) {
    EXPECT_NE(FirstKernelAfter(one), "");
    EXPECT_NE(FirstKernelAfter(both), FirstKernelAfter(one));
  }
  const CliResult missing = Run("explain amp /no/such.ddtrace");
  EXPECT_EQ(missing.exit, 3);
  EXPECT_THAT(missing.err, HasSubstr("/no/such.ddtrace"));
}

TEST_F(Advising, CausalShowsOnlyPointsThatWerePlayed) {
  const std::string trace = kExampleTrace;
  const std::string one = Run("causal " + trace + " --points 1").out;
  EXPECT_THAT(one, HasSubstr("100 %"));
  for (const char* other : {" 10 % ", " 25 % ", " 50 % ", " 75 % "}) {
    EXPECT_THAT(one, Not(HasSubstr(other)));
    EXPECT_THAT(Run("causal " + trace).out, HasSubstr(other));
  }
}

TEST_F(Advising, CausalCurvesEndWhereSpeedupEnds) {
  const std::string trace = kExampleTrace;
  json all = json::parse(
      Run("causal " + trace + " --format json --points 4 --select class:gemm --select call:Launch")
          .out);
  size_t compared = 0;
  for (const json& c : all["curves"]) {
    EXPECT_EQ(c["step_ns"].size(), 5u);
    EXPECT_EQ(c["step_ns"][0], all["step_ns"]);
    if (c["family"] != "selected") continue;
    ++compared;
    json half = json::parse(Run("whatif " + trace + " --format json --no-interval --opt 'speedup(" +
                                c["name"].get<std::string>() + ",2)'")
                                .out);
    EXPECT_EQ(c["step_ns"][2], half["scenarios"][1]["step_ns"]) << c["name"];
  }
  EXPECT_EQ(compared, 2u);
  CliResult r = Run("causal " + trace);
  EXPECT_THAT(r.out, HasSubstr("bends at"));
  EXPECT_THAT(r.out, HasSubstr("do not bother"));
}

// The recorded example of docs/advice.md: ResNet-50 on a V100, which its GPU bounds.
TEST_F(Advising, ThePageShowsWhatARecordingGets) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const auto trace = RealTraceFolder() / "gpus/resnet50-bs32.v100-sxm2.json.gz";
  CliResult r = Run("advise --details 0 " + trace.string());
  ASSERT_EQ(r.exit, 0) << r.err;
  std::ifstream page(DAYDREAM_SOURCE_DIR "/docs/advice.md");
  const std::string text((std::istreambuf_iterator<char>(page)), {});
  EXPECT_THAT(text, HasSubstr("```text\n" + r.out + "```\n"));
}

TEST_F(Advising, TheLoaderComesFirstWhereItCostsMost) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  for (const char* pair : {"a", "b"}) {
    const auto trace =
        RealTraceFolder() / fmt::format("loader/resnet50-v100.workers0.{}.json.gz", pair);
    CliResult r = Run("advise --format json " + trace.string());
    ASSERT_EQ(r.exit, 0) << r.err;
    EXPECT_EQ(json::parse(r.out)["options"][0]["prediction"]["name"], "prefetch") << pair;
  }
}

TEST_F(Advising, SaysFirstWhatIsWrongWithTheRecording) {
  for (const char* command : {"info", "summary", "advise", "whatif"}) {
    CliResult r = Run(fmt::format("{} {} --format json", command, kExampleTrace));
    EXPECT_TRUE(json::parse(r.out)["findings"].is_array()) << command;
  }
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const auto stalls = RealTraceFolder() / "batch/particle-transformer.bs16.json.gz";
  for (const char* command : {"info", "summary", "advise", "whatif"}) {
    CliResult r = Run(fmt::format("{} {} --format json", command, stalls.string()));
    ASSERT_EQ(r.exit, 0) << command << r.err;
    const json findings = json::parse(r.out)["findings"];
    ASSERT_FALSE(findings.empty()) << command;
    EXPECT_EQ(findings[0]["kind"], "one_time");
    EXPECT_EQ(findings[0]["about"], "step");
    EXPECT_THAT(findings[0]["where"].get<std::string>(), HasSubstr("delta_r2"));
    EXPECT_NEAR(findings[0]["ms"], 295, 3);
    EXPECT_GT(findings[0]["share"], 0.8);
    EXPECT_THAT(findings[0]["fix"].get<std::string>(), HasSubstr("schedule"));
    r = Run(fmt::format("{} {}", command, stalls.string()));
    EXPECT_LT(r.out.find("delta_r2"), r.out.find("\n  --")) << "above every table";
    EXPECT_THAT(r.out, Not(HasSubstr("3.066 steps/s"))) << "with the stalls in it";
  }
}

TEST_F(Advising, ARecordingWithoutAStepIsRefusedWithWhatIsWrong) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  const std::string trace = (RealTraceFolder() / "training/alexnet-a100-syncs.json.gz").string();
  CliResult r = Run("whatif --opt aot --format json " + trace);
  EXPECT_EQ(r.exit, 4);
  EXPECT_THAT(r.err, HasSubstr("E0607"));
  const json all = json::parse(r.out);
  EXPECT_EQ(all["findings"][0]["kind"], "no_step");
  ASSERT_EQ(all["scenarios"].size(), 2u);
  for (const json& s : all["scenarios"]) {
    EXPECT_TRUE(s["step_ms"].is_null());
    EXPECT_EQ(s["error"]["code"], "E0607");
  }
  EXPECT_EQ(Run("advise " + trace).exit, 4);
  EXPECT_EQ(Run("causal " + trace).exit, 4);
  r = Run("summary " + trace);
  EXPECT_EQ(r.exit, 4);
  EXPECT_THAT(OneLine(r.out), HasSubstr("what remains is no step"));
  EXPECT_THAT(r.out, Not(HasSubstr("GPU busy"))) << "where the time of no step goes";
  EXPECT_THAT(r.err, HasSubstr("E0607"));
  EXPECT_EQ(Run("summary --per-step " + trace).exit, 0);
  r = Run("info " + trace);
  EXPECT_EQ(r.exit, 0);
  EXPECT_THAT(r.out, HasSubstr("\n  no   all of it: "));
  EXPECT_THAT(r.out, Not(HasSubstr("\n  yes  "))) << "what whatif refuses";
  // Checks that take steps for granted do not fail first.
  r = Run("advise " + (RealTraceFolder() / "odd/triton-a100.json.gz").string());
  EXPECT_EQ(r.exit, 4);
  EXPECT_THAT(r.err, HasSubstr("E0607"));
  EXPECT_THAT(r.out, Not(HasSubstr("steps/s")));
}

TEST_F(Advising, OffersOfFuseWhatOneWordBrings) {
  const json all = Advise();
  bool offered = false;
  for (const json& option : all["options"]) {
    const std::string opt = option["prediction"]["opts"][0];
    EXPECT_NE(opt, "fuse");
    offered |= opt == "fuse(what=optimizer)";
  }
  EXPECT_TRUE(offered);
}

TEST_F(Advising, SaysWhereNothingIsSureToGain) {
  const std::string advise = "advise " DAYDREAM_SOURCE_DIR "/examples/resnet50-synthetic.ddtrace";
  const std::string sure = "none of these is sure to gain: even the first may be 0.9";
  EXPECT_THAT(Run(advise).out, Not(HasSubstr(sure)));
  std::string without;
  for (const char* name : {"prefetch", "amp", "no-sync", "compile", "fuse", "cache"}) {
    without += fmt::format(" --exclude {}", name);
  }
  EXPECT_THAT(Run(advise + without).out, HasSubstr(sure));
}

TEST_F(Advising, TheHostsTimeIsATable) {
  CliResult r = Run(std::string("summary --by host --format json ") + kExampleTrace);
  ASSERT_EQ(r.exit, 0) << r.err;
  const json host = json::parse(r.out);
  EXPECT_EQ(host["by"], "host");
  bool launches = false;
  for (const json& row : host["groups"]) {
    EXPECT_GE(row["total_ns"], row["self_ns"]) << row["name"];
    launches |= row["name"] == "cudaLaunchKernel" && row["kind"] == "call";
  }
  EXPECT_TRUE(launches);
  for (const char* format : {"table", "csv", "md"}) {
    EXPECT_EQ(Run(fmt::format("summary --by host --format {} {}", format, kExampleTrace)).exit, 0);
  }
  // What is not the host's has a name, too.
  const std::string text = OneLine(
      Run("summary --by host " DAYDREAM_SOURCE_DIR "/examples/resnet50-synthetic.ddtrace").out);
  EXPECT_THAT(text, testing::ContainsRegex("the other [0-9.]+ % of the critical path are work"));
  // The same parts, in causal.
  r = Run(std::string("causal --by host --format json ") + kExampleTrace);
  std::set<std::string> names;
  const json causal = json::parse(r.out);
  for (const json& curve : causal["curves"]) names.insert(curve["name"]);
  EXPECT_THAT(names, testing::Contains("host work"));
  EXPECT_GT(names.size(), 3u);
}

TEST_F(Advising, TablesFitATerminalOf80Columns) {
  for (const char* command :
       {"advise", "whatif --opt amp,graphs", "causal", "summary", "summary --by host",
        "summary --by kernel", "whatif --opt graphs --by kernel", "diff", "sweep --opt graphs",
        "opt check " DAYDREAM_SOURCE_DIR "/examples/optimizations/pinned-prefetch.yaml --trace"}) {
    const std::string ask =
        fmt::format("NO_COLOR=1 " DAYDREAM_BINARY " {} {} {}", command, kExampleTrace,
                    std::string(command) == "diff" ? kExampleTrace : "");
    std::istringstream lines(OnTerminal(ask));
    size_t rules = 0, intervals = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      intervals += Contains(line, "x  (") && Contains(line, " - ");
      if (!line.starts_with("  ----")) continue;  // as wide as its table
      ++rules;
      EXPECT_LE(line.size(), 80u) << command << ": " << line;
    }
    EXPECT_GT(rules, 0u) << command;
    if (std::string_view(command) == "advise") {
      EXPECT_GT(intervals, 0u) << "a step time without its interval says too much";
    }
  }
}

TEST_F(Advising, WhatIsNextFitsATerminalOf80Columns) {
  Write(
      "long.yaml",
      "daydream: 1\nname: long\nsummary: s\nsteps:\n  - {select: {kind: kernel}, remove: true}\n");
  const std::string file = Path("long.yaml");
  std::istringstream lines(OnTerminal(fmt::format("cd {} && NO_COLOR=1 " DAYDREAM_BINARY
                                                  " opt check ././././././long.yaml --trace {}",
                                                  file.substr(0, file.rfind('/')), kExampleTrace),
                                      /*messages=*/true));
  std::string next;
  size_t parts = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (next.empty() && !line.starts_with("  next: ")) continue;
    EXPECT_TRUE(line.size() <= 80 || !Contains(line.substr(8), " --")) << line;
    ++parts;
    next += line.ends_with('\\') ? line.substr(0, line.size() - 1) : line;
  }
  EXPECT_EQ(parts, 2u) << next;
  const size_t command = next.find("whatif");
  ASSERT_NE(command, std::string::npos) << next;
  EXPECT_EQ(Shell("cd " + file.substr(0, file.rfind('/')) + " && " DAYDREAM_BINARY " " +
                  next.substr(command))
                .exit,
            0)
      << next;
}

// What it takes and what it may break decide what is tried as much as what it saves: a narrow table
// cuts their words and leaves other columns out.
TEST_F(Advising, EffortAndRiskStayInANarrowTable) {
  for (const char* trace : {"resnet50-synthetic", "launch-bound-synthetic"}) {
    const std::string file = fmt::format("{}/examples/{}.ddtrace", DAYDREAM_SOURCE_DIR, trace);
    const CliResult r = Shell("COLUMNS=80 " DAYDREAM_BINARY " advise " + file);
    std::istringstream lines(r.out);
    std::string head;
    while (head.find("#  try") == std::string::npos && std::getline(lines, head)) {
    }
    EXPECT_THAT(head, testing::AllOf(HasSubstr("speed-up"), HasSubstr("effort"), HasSubstr("risk")))
        << trace;
    for (std::string line; std::getline(lines, line) && line.find("best set:") == line.npos;) {
      EXPECT_LE(line.size(), 80u) << line;
    }
  }
}

// Prose keeps to 80 columns in a pipe as well; commands to copy are whole. Names of rows, too, even
// where COLUMNS asks for a narrow table.
TEST_F(Advising, SentencesFit80ColumnsAndNamesOfRowsAreWhole) {
  for (const char* command : {"COLUMNS=80 " DAYDREAM_BINARY " advise", DAYDREAM_BINARY " info"}) {
    std::istringstream lines(Shell(fmt::format("{} {}", command, kExampleTrace)).out);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("  check")) continue;
      EXPECT_LE(line.size(), 80u) << command << ": " << line;
    }
  }
  const std::string out =
      Shell(fmt::format("COLUMNS=80 " DAYDREAM_BINARY " advise {}", kExampleTrace)).out;
  EXPECT_THAT(out, HasSubstr("  fuse(what=optimizer)  "));
  EXPECT_THAT(OneLine(out), HasSubstr(" best set: no-sync + pin-memory + "));
}

}  // namespace
}  // namespace daydream
