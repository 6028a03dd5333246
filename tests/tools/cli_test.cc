// The program as users see it: screens, messages, exit codes, files.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/tools/cli_fixture.h"

namespace daydream {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kTrace = kExampleTrace;

using Result = CliResult;
class Cli : public CliFixture {};

// Of what makes up a peak, only what is tiny beside the rest stays out.
TEST_F(Cli, WhatIfNamesEveryChangeOfMemoryThatMatters) {
  const CliResult r =
      Run(std::string("whatif ") + kExampleTrace + " --no-interval --opt 'batch(x2),amp'");
  EXPECT_THAT(OneLine(r.out),
              HasSubstr("bytes kept for backward, which grow with the batch +35.7 MB, "
                        "kept for backward in 16 bit -29.4 MB, weights in 16 bit, "
                        "too +6.8 MB"));
}

TEST_F(Cli, HelpListsEveryCommandAndOnlyThose) {
  Result r = Run("help");
  EXPECT_EQ(r.exit, 0);
  for (const char* name :
       {"trace", "doctor", "import", "info", "summary", "whatif", "export", "diff", "explain",
        "opt", "help", "completions", "advise", "causal", "sweep", "colocate"}) {
    EXPECT_THAT(r.out, HasSubstr(std::string("\n  ") + name + " "));
    Result own = Run(std::string(name) + " --help");
    EXPECT_EQ(own.exit, 0);
    EXPECT_THAT(own.out, HasSubstr("usage: daydream "));
    EXPECT_EQ(own.out, Run(std::string("help ") + name).out);
  }
  EXPECT_EQ(Run("").exit, 2);
  for (const char* asked : {"man", "help man"}) {
    EXPECT_THAT(Run(asked).err,
                HasSubstr("= fix: man daydream, or daydream help --man | man -l -"));
  }
  EXPECT_THAT(r.out, HasSubstr("man daydream, or daydream help --man"));
  EXPECT_THAT(Run("--version").out, testing::StartsWith("daydream "));
}

TEST_F(Cli, UnknownFlagGetsASuggestionAndExit2) {
  Result r = Run("whatif x.json --fromat json");
  EXPECT_EQ(r.exit, 2);
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(r.err,
            "error[E0101]: unknown flag --fromat\n"
            "   |  x.json --fromat json\n"
            "   |         ^^^^^^^^ did you mean --format?\n"
            "   = fix: --help lists the flags of this command\n");
}

TEST_F(Cli, UnknownOptimizationPointsAtTheName) {
  Result r = Run("whatif x.json --opt free-gpu,grpahs");
  EXPECT_EQ(r.exit, 2);
  EXPECT_THAT(r.err, HasSubstr("error[E0102]: unknown optimization 'grpahs'\n"
                               "   |  --opt free-gpu,grpahs\n"
                               "   |                 ^^^^^^ did you mean 'graphs'?\n"));
}

TEST_F(Cli, UsageErrorsExit2) {
  EXPECT_EQ(Run("whatf").exit, 2);
  EXPECT_THAT(Run("whatf").err, HasSubstr("did you mean 'whatif'?"));
  for (const char* args :
       {"whatif", "whatif a b", "info x --format csv", "whatif x --format", "whatif x --quiet=1",
        "whatif x --fail-if speedup", "whatif x --opt 'prefetch(wrokers=2)'", "whatif x --set foo",
        "summary x --top 0", "diff x", "opt lst", "opt show ampp", "explain xyzzy",
        "completions csh", "info x -Z", "whatif x --max-replay-error ten",
        "whatif x --format json --format csv",
        // A check that nobody can fail, a number that is not meant, a value that is none.
        "whatif x --max-replay-error inf", "whatif x --max-replay-error 1e999",
        "whatif x --max-replay-error 0x10", "whatif x --max-replay-error 1001",
        "whatif x --fail-if 'speedup < 5%'", "whatif x --fail-if 'speedup < 0x2'",
        "whatif x --fail-if 'speedup < inf'", "whatif x --fail-if 'speedup < 1e999'",
        "whatif x --fail-if 'step > +inf%'", "whatif x -j foo", "whatif x -j nan", "whatif x -j -1",
        "whatif x -j 1,5", "whatif x -j 0", "whatif x -o ''", "whatif x --steps ''",
        "whatif x --steps=", "scale x --ranks ''", "fabric fit x --at ''"}) {
    Result r = Run(args);
    EXPECT_EQ(r.exit, 2) << args << "\n" << r.err;
    EXPECT_THAT(r.err, testing::StartsWith("error[E01")) << args;
    EXPECT_EQ(r.out, "") << args;
  }
}

TEST_F(Cli, InputThatCannotBeReadExits3) {
  EXPECT_EQ(Run("info " + Path("missing.json")).exit, 3);
  EXPECT_EQ(Run("info " + folder_).exit, 3);
  Write("empty.json", "");
  EXPECT_EQ(Run("info " + Path("empty.json")).exit, 3);
  Write("text.json", "this is not a trace\n");
  Result r = Run("whatif " + Path("text.json"));
  EXPECT_EQ(r.exit, 3);
  EXPECT_THAT(r.err, testing::StartsWith("error[E02"));
}

TEST_F(Cli, InputThatLacksGpuWorkExits4ButInfoStillTells) {
  Write("cpu.json",
        R"({"traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":1,)"
        R"("dur":5,"args":{}}]})");
  Result r = Run("whatif " + Path("cpu.json") + " --opt free-gpu");
  EXPECT_EQ(r.exit, 4);
  EXPECT_THAT(r.err, HasSubstr("error[E0301]: this trace has no GPU work\n  --> cpu.json"));
  Result info = Run("info " + Path("cpu.json"));
  EXPECT_EQ(info.exit, 0) << info.err;
  EXPECT_THAT(info.out, HasSubstr("cannot be built: this trace has no GPU work"));
}

TEST_F(Cli, AFileThatCouldNotBeReadIsNotBlamedOnTheRecording) {
  Write("pairs.json",
        R"({"traceEvents":[{"ph":"B","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1},)"
        R"({"ph":"E","pid":0,"tid":7,"ts":5}]})");
  Result r = Run("whatif " + Path("pairs.json") + " --max-errors 99%");
  EXPECT_EQ(r.exit, 4);
  EXPECT_THAT(r.err, HasSubstr("why: 2 of 2 events were not read, begin and end events"));
  EXPECT_THAT(r.err, HasSubstr("fix: read the file as its recorder wrote it"));
  Write("calls.json",
        R"({"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":9,"dur":5,)"
        R"("args":{"device":0,"stream":7,"correlation":1}},)"
        R"({"ph":"B","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":1},)"
        R"({"ph":"E","pid":1,"tid":1,"ts":5}]})");
  r = Run("whatif " + Path("calls.json") + " --max-errors 99%");
  EXPECT_EQ(r.exit, 4);
  EXPECT_THAT(r.err, HasSubstr("error[E0302]"));
  EXPECT_THAT(r.err, HasSubstr("why: 2 of 3 events were not read, begin and end events"));
}

TEST_F(Cli, WhatIfPrintsTheReplayCheckFirst) {
  Result r = Run(std::string("whatif ") + kTrace + " --opt prefetch,graphs");
  EXPECT_EQ(r.exit, 0) << r.err;
  std::string first = r.out.substr(0, r.out.find('\n'));
  EXPECT_THAT(first, HasSubstr("replay check: "));
  EXPECT_THAT(first, HasSubstr("synthetic"));
  EXPECT_THAT(r.out, HasSubstr("prefetch + graphs"));
  EXPECT_THAT(r.out, HasSubstr("one by one they save"));
  EXPECT_THAT(r.out, HasSubstr("then bound by"));
  EXPECT_THAT(Run(std::string("whatif ") + kTrace + " --opt free-gpu").out, HasSubstr("<= "));
}

TEST_F(Cli, WhatIfJsonKeepsItsContract) {
  Result r = Run(std::string("whatif ") + kTrace + " --opt prefetch,graphs --format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  nlohmann::json json = nlohmann::json::parse(r.out);
  EXPECT_EQ(json["schema"], "daydream.whatif/1");
  EXPECT_TRUE(json["trace"].is_object());
  EXPECT_TRUE(json["steps"].is_number());
  for (const char* key : {"measured_ms", "simulated_ms", "error_pct", "typical_error_pct"}) {
    EXPECT_TRUE(json["replay"][key].is_number()) << key;
  }
  EXPECT_EQ(json["scenarios"][0]["name"], "baseline");
  const auto& last = json["scenarios"].back();
  EXPECT_EQ(last["opts"], nlohmann::json({"prefetch", "graphs"}));
  EXPECT_EQ(last["interval_ms"].size(), 2u);
  EXPECT_THAT(last["confidence"], testing::AnyOf("high", "medium", "low"));
  int64_t sum = 0;
  for (const auto& c : last["causes"]) sum += c["delta_ns"].get<int64_t>();
  EXPECT_EQ(sum, last["step_ns"].get<int64_t>() - json["scenarios"][0]["step_ns"].get<int64_t>());
  double shares = 0;
  for (const auto& [name, share] : last["bound_by"].items()) shares += share.get<double>();
  EXPECT_NEAR(shares, 1, 1e-5);
}

TEST_F(Cli, AScenarioWithoutEffectIsToldApartAndExits4) {
  std::string args = std::string("whatif ") + kTrace + " --opt free-comm --opt free-gpu";
  Result r = Run(args + " --format json");
  EXPECT_EQ(r.exit, 4);
  EXPECT_THAT(r.err, HasSubstr("error[E0601]"));
  nlohmann::json json = nlohmann::json::parse(r.out);
  int failed = 0, predicted = 0;
  for (const auto& s : json["scenarios"]) {
    if (s.contains("error")) {
      ++failed;
      EXPECT_EQ(s["error"]["code"], "E0601");
    } else {
      ++predicted;
    }
  }
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(predicted, 2);
  EXPECT_EQ(Run(args + " --allow-no-effect").exit, 0);
}

TEST_F(Cli, OptimizationsOfTheFoldersAreKnownByName) {
  constexpr char kFile[] =
      "daydream: 1\nname: mine\nsummary: Half of every kernel\n"
      "steps:\n  - select: {kind: kernel}\n    scale: {time: 50%}\n"
      "checks:\n  - {expect: matched, of: {kind: kernel}}\n";
  Write("mine.yaml", kFile);
  Write("broken.yaml", "daydream: 1\nname: broken\n");
  const std::string path = "DAYDREAM_OPTS_PATH=" + folder_;
  Result list = Run("opt list", path);
  EXPECT_EQ(list.exit, 0);
  EXPECT_THAT(list.out, HasSubstr("Half of every kernel"));
  EXPECT_THAT(list.err, HasSubstr("broken.yaml"));
  EXPECT_THAT(Run("opt show mine", path).out, HasSubstr("Half of every kernel"));
  EXPECT_THAT(Run("explain mine", path).out, HasSubstr("Half of every kernel"));
  EXPECT_THAT(Run("explain", path).out, HasSubstr(" mine\n"));
  for (const char* topic : {"warm-up", "warmup", "warm_up"}) {
    EXPECT_THAT(Run(std::string("explain ") + topic).out, HasSubstr("warm-up")) << topic;
  }
  EXPECT_THAT(Run(std::string("advise ") + kTrace, path).out, HasSubstr("mine"));
  // Lines that are there, and that are not.
  EXPECT_THAT(Run("explain " + Path("mine.yaml:6")).out, HasSubstr("    6 |      scale"));
  Result checks = Run("explain " + Path("mine.yaml:8"));
  EXPECT_THAT(checks.out, HasSubstr("    8 |    - {expect"));
  EXPECT_EQ(checks.out.find("scale"), std::string::npos);
  Result none = Run("explain " + Path("mine.yaml:999"));
  EXPECT_EQ(none.exit, 2);
  EXPECT_THAT(none.err, HasSubstr("it has 8 lines"));
  // The whole names are for programs, parts of them for people.
  const std::string check = "opt check " + Path("mine.yaml") + " --trace " + kTrace;
  EXPECT_EQ(Run(check + " --format csv").out.find("..."), std::string::npos);
  EXPECT_NE(Run(check).out.find("..."), std::string::npos);
}

TEST_F(Cli, AFileIsBegunWithAFreeName) {
  EXPECT_THAT(Run("opt new amp").err, HasSubstr("E0407"));
  Result alone = Run("opt new");
  EXPECT_THAT(alone.err, HasSubstr("opt new needs a name"));
  EXPECT_EQ(alone.err.find("did you mean"), std::string::npos);
}

TEST_F(Cli, WhatChangesNothingSaysWhyAndWhereToLook) {
  Write("nothing.yaml",
        "daydream: 1\nname: nothing\nsummary: s\n"
        "steps:\n  - {select: {kernel: no such name}, remove: true}\n");
  Result r = Run(std::string("whatif ") + kTrace + " --opt " + Path("nothing.yaml"));
  EXPECT_EQ(r.exit, 4);
  EXPECT_THAT(r.err, HasSubstr("nothing: changes nothing in this trace"));
  EXPECT_THAT(r.err, HasSubstr("why: nothing.yaml:5: remove matched nothing"));
  EXPECT_THAT(r.err, HasSubstr("fix: daydream opt check " + Path("nothing.yaml")));
  Result sweep =
      Run(std::string("sweep ") + kTrace + " --no-interval --opt " + Path("nothing.yaml"));
  EXPECT_THAT(sweep.out, testing::ContainsRegex("nothing.yaml:5: remove[ \n]+matched nothing"));
}

TEST_F(Cli, GatesExit5) {
  std::string base = std::string("whatif ") + kTrace + " --opt graphs ";
  EXPECT_EQ(Run(base + "--fail-if 'speedup < 100'").exit, 5);
  EXPECT_EQ(Run(base + "--fail-if 'speedup < 1'").exit, 0);
  EXPECT_EQ(Run(base + "--fail-if 'step > +3%'").exit, 0);
  EXPECT_EQ(Run(base + "--fail-if 'step < -3%'").exit, 5);
  EXPECT_EQ(Run(base + "--fail-if 'step > 1us'").exit, 5);
  EXPECT_EQ(Run(base + "--fail-if 'step > 3'").exit, 2);
  EXPECT_EQ(Run(base + "--fail-if 'speedpu < 1'").exit, 2);
}

TEST_F(Cli, ScoresAgainstAMeasuredRun) {
  Result r = Run(std::string("whatif ") + kTrace + " --opt graphs --measured " + kTrace +
                 " --format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  nlohmann::json json = nlohmann::json::parse(r.out);
  EXPECT_NEAR(json["measured"]["step_ms"].get<double>(),
              json["replay"]["measured_ms"].get<double>(), 1e-9);
  EXPECT_EQ(json["measured"]["inside_interval"], false);
}

TEST_F(Cli, OutputIsTheSameEveryTime) {
  for (const char* command : {"whatif", "summary", "info"}) {
    std::string args =
        std::string(command) + " " + kTrace + (command[0] == 'w' ? " --opt prefetch,graphs" : "");
    EXPECT_EQ(Run(args).out, Run(args + " -j 1").out) << command;
  }
}

TEST_F(Cli, BreakdownsAndFormats) {
  for (const char* by : {"cause", "layer", "phase", "kernel", "op", "resource"}) {
    for (const char* format : {"table", "json", "csv", "md"}) {
      Result r = Run(fmt::format("whatif {} --opt graphs --by {} --format {}", kTrace, by, format));
      EXPECT_EQ(r.exit, 0) << by << format << r.err;
      if (std::string(format) == "json") {
        EXPECT_TRUE(nlohmann::json::accept(r.out));
      }
    }
  }
  for (const char* by : {"class", "op", "kernel", "layer", "phase", "stream"}) {
    EXPECT_EQ(Run(fmt::format("summary {} --by {}", kTrace, by)).exit, 0) << by;
  }
}

TEST_F(Cli, ExportsEveryKindAndNeverOverwritesUnasked) {
  for (const char* name : {"t.json", "t.pftrace", "t.csv", "t.dot", "t.folded", "t.ddtrace"}) {
    std::string args = fmt::format("export {} -o {}", kTrace, Path(name));
    Result r = Run(args);
    EXPECT_EQ(r.exit, 0) << name << r.err;
    std::string bytes = ReadAll(Path(name));
    EXPECT_FALSE(bytes.empty());
    Result again = Run(args);
    EXPECT_EQ(again.exit, 1) << name;
    EXPECT_THAT(again.err, HasSubstr("error[E0105]"));
    EXPECT_EQ(Run(args + " -f").exit, 0);
    EXPECT_EQ(ReadAll(Path(name)), bytes) << name;
  }
  EXPECT_TRUE(nlohmann::json::accept(ReadAll(Path("t.json"))));
  // The exported trace is as good as the original.
  EXPECT_EQ(Run("summary " + Path("t.ddtrace")).out, Run(std::string("summary ") + kTrace).out);
}

TEST_F(Cli, NothingHalfWrittenStays) {
  EXPECT_EQ(Run(std::string("summary ") + kTrace + " -o " + Path("no/such/folder.json")).exit, 1);
  EXPECT_EQ(Run(std::string("summary ") + kTrace + " -o " + folder_).exit, 1);
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_THAT(entry.path().string(), Not(HasSubstr(".part")));
  }
}

TEST_F(Cli, TheExtensionOfTheOutputChoosesTheFormat) {
  ASSERT_EQ(Run(std::string("summary ") + kTrace + " -o " + Path("s.json")).exit, 0);
  EXPECT_TRUE(nlohmann::json::accept(ReadAll(Path("s.json"))));
}

TEST_F(Cli, ImportRoundTrips) {
  Result r = Run(std::string("import ") + kTrace + " -o " + Path("copy.ddtrace"));
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("note: wrote "));
  EXPECT_EQ(Run("-").exit, 2);
  Result piped = Run("info -", std::string("cat ") + kTrace + " |");
  EXPECT_NE(piped.exit, 2);
}

TEST_F(Cli, StepsCanBeChosen) {
  std::string base = std::string("whatif ") + kTrace + " --format json ";
  EXPECT_EQ(nlohmann::json::parse(Run(base + "--steps 1-2").out)["steps"], 2);
  EXPECT_EQ(Run(base + "--steps 99").exit, 4);
  const Result first = Run(base + "--steps 0");  // as of a recorder that was on for it
  EXPECT_EQ(first.exit, 0) << first.err;
  EXPECT_EQ(nlohmann::json::parse(first.out)["steps"], 1);
  EXPECT_EQ(Run(base + "--steps x").exit, 2);
}

TEST_F(Cli, DiffOfATraceWithItselfIsZero) {
  Result r = Run(fmt::format("diff {} {} --fail-if 'step > +1%'", kTrace, kTrace));
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out, Not(HasSubstr("***\n")));
  EXPECT_EQ(Run(fmt::format("diff {} {} --fail-if 'step > 1us'", kTrace, kTrace)).exit, 5);
}

TEST_F(Cli, MessagesAsJsonAreOneObjectALine) {
  Result r = Run("info " + Path("missing") + " --message-format json");
  nlohmann::json json = nlohmann::json::parse(r.err);
  EXPECT_EQ(json["severity"], "error");
  EXPECT_EQ(json["code"], "E0201");
  Result flag = Run("info --nope --message-format=json");
  EXPECT_EQ(nlohmann::json::parse(flag.err)["code"], "E0101");
}

TEST_F(Cli, ColourOnlyWhenAsked) {
  EXPECT_THAT(Run("info nothing").err, Not(HasSubstr("\033[")));
  EXPECT_THAT(Run("info nothing --color always").err, HasSubstr("\033["));
  EXPECT_THAT(Run("info nothing", "FORCE_COLOR=1").err, HasSubstr("\033["));
  EXPECT_THAT(Run("info nothing", "FORCE_COLOR=1 NO_COLOR=1").err, Not(HasSubstr("\033[")));
}

TEST_F(Cli, ExplainsEverythingItPrints) {
  for (const char* topic : {"prefetch", "E0301", "W0602", "critical path", "confidence", "rules"}) {
    Result r = Run(std::string("explain ") + topic);
    EXPECT_EQ(r.exit, 0) << topic;
    EXPECT_GT(r.out.size(), 80u) << topic;
  }
  nlohmann::json opts = nlohmann::json::parse(Run("opt list --format json").out);
  for (const auto& opt : opts["optimizations"]) {
    std::string name = opt["name"];
    EXPECT_EQ(Run("explain " + name).exit, 0) << name;
    EXPECT_EQ(Run("opt show " + name).exit, 0) << name;
    for (const auto& param : opt["params"]) EXPECT_NE(param["source"], "") << name;
  }
}

TEST_F(Cli, CompletionsNameEveryCommandAndFlag) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    Result r = Run(std::string("completions ") + shell);
    EXPECT_EQ(r.exit, 0);
    EXPECT_THAT(r.out, HasSubstr("whatif"));
    EXPECT_THAT(r.out, HasSubstr("max-replay-error"));
  }
  Write("c.bash", Run("completions bash").out);
  EXPECT_EQ(std::system(("bash -n " + Path("c.bash")).c_str()), 0);
}

// As bash asks for them: words in COMP_WORDS, the last one being typed.
TEST_F(Cli, BashOffersValuesAndNamesWhereTheyAreKnown) {
  Write("c.bash", Run("completions bash").out);
  const auto offered = [&](const std::string& words) {
    Write("ask.sh", "source " + Path("c.bash") + "\nCOMP_WORDS=(daydream " + words +
                        ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_daydream\n"
                        "echo \"${COMPREPLY[@]}\" >" +
                        Path("offered") + "\n");
    EXPECT_EQ(std::system(("bash " + Path("ask.sh")).c_str()), 0) << words;
    return ReadAll(Path("offered"));
  };
  EXPECT_EQ(offered("wha"), "whatif\n");
  EXPECT_EQ(offered("whatif --max-rep"), "--max-replay-error\n");
  EXPECT_EQ(offered("whatif --unit m"), "ms\n");
  EXPECT_EQ(offered("whatif --unit = m"), "ms\n");
  EXPECT_EQ(offered("export --to perf"), "perfetto\n");
  EXPECT_EQ(offered("whatif --opt prefe"), "prefetch\n");
  EXPECT_EQ(offered("whatif --opt amp,prefe"), "amp,prefetch\n");
  EXPECT_EQ(offered("tour 1"), "1 10 11 12\n");
  EXPECT_EQ(offered("explain E060"), "E0601 E0602 E0603 E0604 E0605 E0606 E0607\n");
  EXPECT_EQ(offered("help comp"), "completions\n");
  EXPECT_EQ(offered("info " + Path("ask.")), Path("ask.sh") + "\n");
}

// docs/cli.md ends with what the program prints; the other two pages are printed whole.
TEST_F(Cli, TheDocsAreWhatTheProgramPrints) {
  const std::string docs = DAYDREAM_SOURCE_DIR "/docs/";
  std::string page = ReadAll(docs + "cli.md"), reference = Run("help --markdown").out;
  EXPECT_TRUE(page.ends_with(reference))
      << "run scripts/docs: docs/cli.md has not the flags of the program";
  EXPECT_EQ(ReadAll(docs + "errors.md"), Run("explain --markdown errors").out)
      << "run scripts/docs";
  EXPECT_EQ(ReadAll(docs + "glossary.md"), Run("explain --markdown glossary").out)
      << "run scripts/docs";
}

// Every code that the sources mention has a page, and only one.
TEST_F(Cli, EveryErrorCodeHasAPage) {
  std::set<std::string> titles;
  std::istringstream lines(ReadAll(DAYDREAM_SOURCE_DIR "/docs/errors.md"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) {
      EXPECT_TRUE(titles.insert(line.substr(0, 8)).second) << line;
    }
  }
  for (const char* folder :
       {"base", "trace", "graph", "simulator", "costmodel", "transforms", "report", "tools"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             std::string(DAYDREAM_SOURCE_DIR "/") + folder)) {
      if (entry.path().extension() != ".cc") continue;
      std::string text = ReadAll(entry.path().string());
      for (size_t at = text.find("\"E0"); at != std::string::npos; at = text.find("\"E0", at + 1)) {
        if (at + 6 >= text.size() || text[at + 6] != '"') continue;
        std::string code = text.substr(at + 1, 5);
        EXPECT_THAT(ReadAll(DAYDREAM_SOURCE_DIR "/docs/errors.md"), HasSubstr("## " + code + ": "))
            << entry.path();
      }
    }
  }
}

}  // namespace
}  // namespace daydream
