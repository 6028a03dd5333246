// What people expect of any command: defaults of their own, colours where they are wanted, a table
// for each step.
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/real_traces.h"
#include "tests/source_tree.h"
#include "tests/tools/cli_fixture.h"
#include "tests/tools/small_trace.h"

namespace daydream {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class Habits : public CliFixture {
 protected:
  void Config(const std::string& text) const {
    std::filesystem::create_directories(Path("daydream"));
    Write("daydream/config", text);
  }
  std::string trace() const { return std::string(" ") + kExampleTrace + " "; }
};

TEST_F(Habits, AConfigHasDefaultsAndTheCommandLineWins) {
  Config("# mine\n\ncolor = always\n[whatif]\nsamples = 50\nno-alone = yes\n");
  const CliResult r = Run("whatif" + trace() + "--opt prefetch,graphs");
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("\033[1m"));
  EXPECT_THAT(r.out, Not(HasSubstr("one by one")));  // no-alone
  EXPECT_THAT(r.err, HasSubstr("daydream/config has --no-alone, --samples 50"));
  const CliResult won =
      Run("whatif" + trace() + "--opt prefetch,graphs --color never --samples 60");
  EXPECT_THAT(won.out, Not(HasSubstr("\033[")));
  EXPECT_THAT(won.err, Not(HasSubstr("--samples")));
  // The section of another command is not for this one.
  EXPECT_THAT(Run("info" + trace()).err, Not(HasSubstr("--samples")));
  const CliResult without = Run("whatif" + trace() + "--opt prefetch,graphs --no-config");
  EXPECT_THAT(without.out, Not(HasSubstr("\033[")));
  EXPECT_THAT(without.out, HasSubstr("one by one"));
}

TEST_F(Habits, JsonSaysWhatAConfigChanged) {
  Config("[summary]\nby = layer\n");
  const json with = json::parse(Run("summary" + trace() + "--format json").out);
  EXPECT_EQ(with["by"], "layer");
  EXPECT_EQ(with["config"]["flags"], json({"--by layer"}));
  EXPECT_EQ(with["config"]["file"], Path("daydream/config"));
  // Not where nothing of it was used, and not for what only looks different.
  EXPECT_FALSE(
      json::parse(Run("summary" + trace() + "--by op --format json").out).contains("config"));
  Config("jobs = 1\nformat = json\n");
  const std::string looks = Run("summary" + trace()).out;
  EXPECT_FALSE(json::parse(looks).contains("config"));
  // The name of a file says more than a default.
  EXPECT_EQ(Run("summary" + trace() + "-o " + Path("s.csv")).exit, 0);
  EXPECT_FALSE(json::accept(ReadAll(Path("s.csv"))));
}

TEST_F(Habits, AnErrorInAConfigNamesFileAndLine) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"jobs = 4\njbos = 4\n", ":2\n"},
      {"[whatif]\nsampels = 4\n", "did you mean 'samples'?"},
      {"[whatfi]\n", "did you mean 'whatif'?"},
      {"[whatif\n", "is no section"},
      {"samples = 4\n", "below its name in brackets"},
      {"jobs\n", "is no setting"},
      {"jobs =\n", "has no value"},
      {"color = allways\n", "did you mean 'always'?"},
      {"quiet = 1\n", "yes or no"},
      {"jobs = 1\njobs = 2\n", "is there twice"},
      {"output = x\n", "no flag that commands share"},
      {"no-config = yes\n", "no flag that commands share"},
  };
  for (const auto& [text, said] : kWrong) {
    Config(text);
    const CliResult r = Run("info" + trace());
    EXPECT_EQ(r.exit, 2) << text;
    EXPECT_EQ(r.out, "") << text;
    EXPECT_THAT(r.err, testing::StartsWith("error[E0112]: ")) << text;
    EXPECT_THAT(r.err, HasSubstr("--> " + Path("daydream/config:"))) << text;
    EXPECT_THAT(r.err, HasSubstr(said)) << text;
    EXPECT_EQ(Run("info --no-config" + trace()).exit, 0) << text;
    EXPECT_EQ(Run("explain E0112").exit, 0) << text;
  }
}

TEST_F(Habits, AConfigThatIsNoTextIsRefusedAndAMissingOneIsNothing) {
  Config(std::string(70000, '#'));
  EXPECT_THAT(Run("info" + trace()).err, HasSubstr("larger than 64 KiB"));
  std::filesystem::remove_all(Path("daydream"));
  std::filesystem::create_directories(Path("daydream/config"));
  EXPECT_THAT(Run("info" + trace()).err, HasSubstr("error[E0112]"));
  std::filesystem::remove_all(Path("daydream/config"));
  ASSERT_EQ(mkfifo(Path("daydream/config").c_str(), 0600), 0);
  EXPECT_THAT(Run("info" + trace()).err, HasSubstr("it cannot be read as a file")) << "at once";
  EXPECT_EQ(Run("info" + trace(), "XDG_CONFIG_HOME=relative HOME=" + Path("none")).exit, 0);
  std::filesystem::create_directories(Path("home/.config/daydream"));
  Write("home/.config/daydream/config", "nothing = 1\n");
  EXPECT_EQ(Run("info" + trace(), "XDG_CONFIG_HOME= HOME=" + Path("home")).exit, 2);
}

// As where a service runs for another user with the HOME of root.
TEST_F(Habits, AConfigInAFolderThatIsClosedIsNone) {
  namespace fs = std::filesystem;
  fs::create_directories(Path("home/.config/daydream"));
  Write("home/.config/daydream/config", "nothing = 1\n");
  fs::permissions(Path("home"), fs::perms::none);
  // Root may look into every folder, unless it lets go of that.
  const std::string user =
      geteuid() != 0 ? "" : " setpriv --bounding-set=-dac_override,-dac_read_search";
  const std::string home = "XDG_CONFIG_HOME= HOME=" + Path("home");
  const CliResult can = Shell(home + user + " true");
  const CliResult r = Run("info" + trace(), home + user);
  fs::permissions(Path("home"), fs::perms::owner_all);
  if (can.exit != 0) GTEST_SKIP() << "no way to run as another user here";
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("config is not looked for: permission denied"));
  EXPECT_EQ(Run("info" + trace(), home).exit, 2) << "open again";
}

TEST_F(Habits, TimesHaveTheUnitThatIsAskedFor) {
  const std::string whatif = "whatif" + trace() + "--opt amp --no-interval --no-alone ";
  const int64_t step_ns =
      json::parse(Run(whatif + "--format json").out)["scenarios"][1]["step_ns"].get<int64_t>();
  const std::pair<const char*, std::string> kUnits[] = {
      {"ns", fmt::format("  {} ns  ", step_ns)},
      {"us", fmt::format("  {:.0f} us  ", static_cast<double>(step_ns) * 1e-3)},
      {"ms", fmt::format("  {:.1f} ms  ", static_cast<double>(step_ns) * 1e-6)},
      {"s", fmt::format("  {:.4f} s  ", static_cast<double>(step_ns) * 1e-9)}};
  for (const auto& [unit, step] : kUnits) {
    const std::string text = Run(whatif + "--unit " + unit).out;
    EXPECT_THAT(text, HasSubstr(step)) << "the table";
    EXPECT_THAT(text, HasSubstr(fmt::format("step, {}\n", unit))) << "the causes";
    EXPECT_THAT(text.substr(0, text.find('\n')), HasSubstr(fmt::format(" {} measured", unit)));
    // Fields have a unit in their name.
    EXPECT_EQ(Run(whatif + "--format json --unit " + unit).out, Run(whatif + "--format json").out);
    EXPECT_EQ(Run(whatif + "--format csv --unit " + unit).out, Run(whatif + "--format csv").out);
  }
  EXPECT_EQ(Run(whatif + "--unit auto").out, Run(whatif).out);
  for (const std::string untimed : {"tour --list", "opt list", "fabric list", "kernels"}) {
    const CliResult r = Run(untimed + " --unit us");
    EXPECT_EQ(r.exit, 2) << untimed;
    EXPECT_THAT(r.err, HasSubstr("unknown flag --unit"));
  }
  // No command prints times of another unit beside it.
  const std::string ranks = DAYDREAM_SOURCE_DIR "/examples/two-ranks-synthetic";
  const std::string commands[] = {
      "summary" + trace(),
      "summary --by host" + trace(),
      "summary --per-step" + trace(),
      "causal" + trace(),
      "advise --details 0" + trace(),
      "sweep --opt 'speedup(select=kind:kernel,by=2..4)' --no-interval" + trace(),
      "diff --opt graphs --opt prefetch" + trace(),
      "colocate" + trace() + trace(),
      "ranks " + ranks,
      "whatif --opt 'speedup(select=kind:kernel,by=2)' " + ranks};
  for (const std::string& command : commands) {
    const CliResult r = Run(command + " --unit us");
    EXPECT_EQ(r.exit, 0) << command << r.err;
    EXPECT_THAT(r.out, testing::ContainsRegex("[0-9, ] ?us")) << command;
    EXPECT_THAT(r.out, Not(testing::ContainsRegex("[0-9] (ns|ms|s)[ ,;)\n]"))) << command;
  }
  Config("unit = us\n[whatif]\nunit = ns\n");
  EXPECT_EQ(Run(whatif).out, Run(whatif + "--no-config --unit ns").out);
  EXPECT_EQ(Run("summary" + trace()).out, Run("summary --no-config --unit us" + trace()).out);
  EXPECT_EQ(Run(whatif + "--unit minutes").exit, 2);
}

TEST_F(Habits, FlagsThatWouldChangeNothingAreRefused) {
  const CliResult r =
      Run(fmt::format("import {} --steps 2-3 -o {}", kExampleTrace, Path("x.ddtrace")));
  EXPECT_EQ(r.exit, 2);
  EXPECT_THAT(r.err, HasSubstr("unknown flag --steps"));
  EXPECT_FALSE(std::filesystem::exists(Path("x.ddtrace")));
}

TEST_F(Habits, TablesHaveColoursOnlyWhereTheyAreWanted) {
  const std::string command = "whatif" + trace() + "--opt graphs --no-interval";
  const std::string plain = Run(command).out;
  EXPECT_THAT(plain, Not(HasSubstr("\033[")));
  std::string colored = Run(command + " --color always").out;
  EXPECT_THAT(colored, HasSubstr("\033[1m  scenario"));
  EXPECT_THAT(colored, HasSubstr("\033[36m  graphs"));
  EXPECT_EQ(Run(command, "CLICOLOR_FORCE=1").out, colored);
  EXPECT_EQ(Run(command, "CLICOLOR_FORCE=1 NO_COLOR=1").out, plain);
  // The colours are all that is different.
  for (size_t at; (at = colored.find("\033[")) != std::string::npos;) {
    colored.erase(at, colored.find('m', at) + 1 - at);
  }
  EXPECT_EQ(colored, plain);
  // Markdown and files have none, even on a terminal that wants them.
  EXPECT_THAT(Run(command + " --color always --format md").out, Not(HasSubstr("\033[")));
  EXPECT_EQ(Run(command + " -o " + Path("t.txt"), "FORCE_COLOR=1").exit, 0);
  EXPECT_EQ(ReadAll(Path("t.txt")), plain);
}

// Also where a caller ignores SIGPIPE, as CI does.
TEST_F(Habits, AReaderThatHasSeenEnoughIsNoError) {
  for (const char* command : {"summary --per-step", "summary --by kernel --format csv",
                              "export --to csv", "whatif --opt amp,fuse --format json"}) {
    Shell(fmt::format(
        "trap '' PIPE; {{ {} {} {}/examples/resnet50-synthetic.ddtrace 2>{}; echo $? >{}; }} "
        "| true",
        DAYDREAM_BINARY, command, DAYDREAM_SOURCE_DIR, Path("said"), Path("code")));
    EXPECT_EQ(ReadAll(Path("said")).find("error"), std::string::npos) << command;
    EXPECT_EQ(ReadAll(Path("code")), "0\n") << command;
  }
}

TEST_F(Habits, EachStepByItselfAddsUpToTheSummary) {
  const json whole = json::parse(Run("summary" + trace() + "--format json").out);
  const json each = json::parse(Run("summary --per-step" + trace() + "--format json").out);
  ASSERT_EQ(each["per_step"].size(), whole["steps"].get<size_t>());
  for (const char* key : {"gpu_busy_ns", "gpu_idle_ns", "exposed_comm_ns"}) {
    double sum = 0;
    for (const json& step : each["per_step"]) sum += step[key].get<double>();
    EXPECT_NEAR(sum / each["per_step"].size(), whole[key].get<double>(), 1) << key;
  }
  for (const json& step : each["per_step"]) {
    double path = 0;
    for (const auto& [name, ns] : step["critical_path"].items()) path += ns.get<double>();
    EXPECT_EQ(path, step["replayed_ns"].get<double>());
    EXPECT_EQ(step["once_ns"], 0);
  }
  const std::string text = Run("summary --per-step" + trace()).out;
  EXPECT_THAT(text, HasSubstr("\n  mean "));
  EXPECT_THAT(text, HasSubstr("not counted: "));
  // Where a loader is on the path while the GPU is busy, a sentence says how that can be.
  const std::string how = "a batch that comes late";
  EXPECT_THAT(text, Not(HasSubstr(how)));
  const std::filesystem::path waits = RealTraceFolder() / "training/resnet18-bs128-2080ti.json.gz";
  if (std::filesystem::exists(waits)) {
    EXPECT_THAT(Run("summary --per-step " + waits.string()).out, HasSubstr(how));
  }
  for (const char* format : {"csv", "md"}) {
    EXPECT_EQ(Run("summary --per-step" + trace() + "--format " + format).exit, 0);
  }
  EXPECT_EQ(Run("summary --per-step --by op" + trace()).exit, 2);
}

// Steps of 10 ms. An operator that takes 0.1 ms in each takes 2.2 ms in the fourth, and the GPU
// idles meanwhile.
TEST_F(Habits, WhatHappensInOneStepOnlyIsSaidThere) {
  std::string events;
  auto x = [&](std::string_view what, int lane, int at, int us, int id) {
    events += fmt::format(
        R"({}{{"ph":"X",{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"correlation":{}{}}}}})",
        events.empty() ? "" : ",", what, lane == 1 ? 0 : 7, lane, at, us, id,
        lane == 7 ? R"(,"stream":7,"device":0)" : "");
  };
  for (int i = 0; i < 6; ++i) {
    const int at = 10'000 * i + 1;
    x(fmt::format(R"("cat":"user_annotation","name":"ProfilerStep#{}")", i), 1, at, 10'000, 0);
    x(R"("cat":"cuda_runtime","name":"cudaLaunchKernel")", 1, at + 500, 500, i + 1);
    x(R"("cat":"kernel","name":"sgemm")", 7, at + 1200, 4000, i + 1);
    x(R"("cat":"cpu_op","name":"my_compiler")", 1, at + 7700, i == 3 ? 2200 : 100, 0);
  }
  Write("stall.json", "{\"traceEvents\":[" + events + "]}");
  const json each = json::parse(Run("summary --per-step --format json " + Path("stall.json")).out);
  std::vector<std::string> in;
  for (const json& step : each["per_step"]) {
    if (step["once_ns"].get<int64_t>() == 0) continue;
    in.push_back(step["step"]);
    EXPECT_EQ(step["once"], "my_compiler");
    EXPECT_EQ(step["once_ns"], 2'100'000);
  }
  EXPECT_THAT(in, testing::ElementsAre(HasSubstr("3")));
  EXPECT_THAT(Run("summary --per-step " + Path("stall.json")).out, HasSubstr("my_compiler"));
}

// As the table of docs/cli.md has them.
TEST_F(Habits, TheManualHasExitCodesFilesAndVariables) {
  const std::string man = Run("help --man").out;
  for (const char* section : {"EXIT STATUS", "FILES", "ENVIRONMENT", "SEE ALSO"}) {
    EXPECT_THAT(man, HasSubstr(fmt::format(".SH {}\n", section)));
  }
  const std::string page = ReadAll(DAYDREAM_SOURCE_DIR "/docs/cli.md");
  const size_t begin = page.find("## Exit codes"),
               end = page.find("\n\n", page.find("| --- ", begin));
  size_t codes = 0;
  for (const std::string& line : SplitLines(page.substr(begin, end - begin))) {
    const size_t bar = line.find(" |", 2);
    if (!line.starts_with("| ") || line.find_first_of("0123456789") != 2) continue;
    EXPECT_THAT(man, HasSubstr(fmt::format("\\fB{}\\fR\n", line.substr(2, bar - 2))));
    ++codes;
  }
  EXPECT_EQ(codes, 10u);
}

TEST_F(Habits, StacksForFlameGraphs) {
  const CliResult r = Run("export --folded" + trace());
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("\nGPU;GPU 0 stream "));
  EXPECT_THAT(r.out, testing::StartsWith("CPU;thread "));
  EXPECT_EQ(Run("export --to folded" + trace()).out, r.out);
  const CliResult after = Run("export --folded --opt graphs" + trace());
  EXPECT_EQ(after.exit, 0) << after.err;
  EXPECT_NE(after.out, r.out);
  EXPECT_EQ(Run("export --folded --to csv" + trace()).exit, 2);
}

}  // namespace
}  // namespace daydream
