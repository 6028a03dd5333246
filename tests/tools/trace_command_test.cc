// `daydream trace` and `daydream doctor` as users see them: the real program and the real recorder
// on a fake driver and a fake CUPTI (tests/tracer/fake_cuda), or on no driver at all.
#include <pty.h>
#include <signal.h>

#include <set>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/tools/trace_command_fixture.h"

namespace daydream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST_F(TraceCommand, RecordsAProgramThatKnowsNothingOfIt) {
  Result r = Run("daydream trace -c none " + kProgram + " init launch=100 sync print=done");
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(r.out, "done\n");
  EXPECT_THAT(Files(), ElementsAre("gpu_program-1.ddtrace"));
  EXPECT_EQ(Kernels("gpu_program-1.ddtrace"), 100u);
  EXPECT_THAT(r.err, HasSubstr("note: wrote gpu_program-1.ddtrace ("));
  EXPECT_THAT(r.err, HasSubstr("kernels 100"));
  EXPECT_THAT(r.err, HasSubstr("lost 0"));
}

// Every `daydream trace` and `daydream doctor` of the pages, with a program in place of theirs.
TEST_F(TraceCommand, TheCommandsOfTheDocumentationWork) {
  for (const char* page : {"docs/README.md", "examples/cuda/README.md"}) {
    std::ifstream file(std::string(DAYDREAM_SOURCE_DIR "/") + page);
    size_t found = 0;
    for (std::string line; std::getline(file, line);) {
      bool trace = line.starts_with("daydream trace "), doctor = line == "daydream doctor";
      if (!trace && !line.starts_with("daydream doctor ") && !doctor) continue;
      ++found;
      std::string command = line.substr(0, line.find("  #"));
      size_t dashes = command.find(" -- ");
      if (trace) {
        ASSERT_NE(dashes, std::string::npos) << line;
        command.resize(dashes + 4);
        command += kProgram + " init train=30x4";
      }
      Result r = Run(command);
      EXPECT_EQ(r.exit, 0) << page << ": " << line << "\n" << r.err;
      EXPECT_THAT(r.err, Not(HasSubstr("error["))) << page << ": " << line;
    }
    EXPECT_GT(found, 1u) << page;
  }
}

TEST_F(TraceCommand, RecordsTheStepsAskedForAndSaysWhatItCost) {
  Result r = Run("daydream trace --warmup 8 --steps 6 " + kProgram + " init train=30x10");
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr(" while recording, "));
  EXPECT_THAT(r.err, HasSubstr(" otherwise: overhead "));
  // 3 labelled steps and 6 timed ones.
  EXPECT_EQ(Kernels("gpu_program-1.ddtrace"), 90u) << r.err;
}

TEST_F(TraceCommand, WithoutAGpuItSaysSoAndRunsNothing) {
  Result r = Run("daydream trace touch ran", "env -u LD_LIBRARY_PATH");
  EXPECT_EQ(r.exit, 125);
  EXPECT_THAT(r.err, StartsWith("error[E0502]: no NVIDIA driver on this machine\n"));
  EXPECT_THAT(Files(), IsEmpty());

  // A driver that does not start.
  r = Run("daydream trace touch ran", kWithGpu + " FAKE_CUDA_INIT=100");
  EXPECT_EQ(r.exit, 125) << "cuInit failed, but: " << r.err;
  EXPECT_THAT(r.err, StartsWith("error[E0502]"));
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(TraceCommand, ExitsAsTheCommandDid) {
  const std::pair<const char*, int> ends[] = {{"return=3", 3}, {"exit=200", 200},
                                              {"_exit=4", 4},  {"raise=9", 137},
                                              {"abort", 134},  {"raise=15 pause", 143}};
  for (const auto& [how, code] : ends) {
    Result r = Run(fmt::format("daydream trace -fo run {} init launch=3 sync {}", kProgram, how));
    EXPECT_EQ(r.exit, code) << how << "\n" << r.err;
  }
}

TEST_F(TraceCommand, ACommandThatCannotRunLeavesNothing) {
  EXPECT_EQ(Run("daydream trace -- no-such-command").exit, 127);
  EXPECT_THAT(Run("daydream trace ./missing").err, StartsWith("error[E0504]"));
  std::ofstream(Path("text")) << "no program\n";
  Result r = Run("daydream trace ./text");
  EXPECT_EQ(r.exit, 126);
  EXPECT_THAT(r.err, StartsWith("error[E0505]: './text' cannot be executed\n"));
  EXPECT_THAT(Files(), ElementsAre("text"));
}

TEST_F(TraceCommand, WhatIsWrongWithTheFlagsIsNotTheCommandsExitCode) {
  for (const char* flags :
       {"", "--", "--bad-flag true", "--trace cuda,osrt true", "--trace nvtx true",
        "--max-overhead 5 true", "--steps 0 true", "--warmup x true", "-c nvtx: true",
        "-c time true", "-c steps --delay 3 true", "-e NAME true", "-o %x true", "-o %q{NOT} true",
        "-o no/such/folder/x true", "--flush 0 true"}) {
    Result r = Run(fmt::format("daydream trace {}", flags));
    EXPECT_EQ(r.exit, 125) << flags;
    EXPECT_THAT(r.err, StartsWith("error[E01")) << flags;
  }
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(TraceCommand, NumbersHaveTheLimitsOfTheRecorder) {
  const std::pair<const char*, const char*> wrong[] = {
      {"--warmup -1", "--warmup -1: not 0 or above"},
      {"--warmup 1.5", "--warmup '1.5' is not a whole number"},
      {"--steps 0", "--steps 0: not 1 or above"},
      {"--flush 60001", "--flush 60001: not 60000 or less"},
      {"--max-events 4294967297", "--max-events 4294967297: not 4294967296 or less"},
      {"--max-events 99999999999999999999",
       "--max-events 99999999999999999999: not 4294967296 or less"}};
  for (const auto& [flag, what] : wrong) {
    Result r = Run(fmt::format("daydream trace {} true", flag));
    EXPECT_EQ(r.exit, 125) << flag;
    EXPECT_THAT(r.err, StartsWith(fmt::format("error[E0104]: {}\n", what)));
  }
  Result r = Run("daydream trace -c none --flush 60000 --max-events 4294967296 " + kProgram +
                 " init launch=3 sync");
  EXPECT_THAT(r.err, Not(HasSubstr("cannot use"))) << "the recorder takes what is allowed";
}

TEST_F(TraceCommand, FlagsBehindTheCommandAreTheCommands) {
  Result r = Run("daydream trace -q printf '%s ' -o x --steps -- --bad");
  EXPECT_EQ(r.exit, 0);
  EXPECT_EQ(r.out, "-o x --steps -- --bad ");
}

TEST_F(TraceCommand, InputOutputAndEnvironmentPassThrough) {
  Result r =
      Run("printf 'in put' | (daydream trace -e EXTRA='a b' -- sh -c "
          "'cat; echo; echo \"$EXTRA\"; echo to-err >&2')");
  EXPECT_EQ(r.exit, 0);
  EXPECT_EQ(r.out, "in put\na b\n");
  EXPECT_THAT(r.err, HasSubstr("to-err\n"));
  // Nothing of it used the GPU.
  EXPECT_THAT(r.err, HasSubstr("warning[W0507]: no GPU work was recorded"));
  EXPECT_THAT(Files(), IsEmpty());

  r = Run("daydream trace -q -- sh -c 'echo $LD_LIBRARY_PATH'");
  EXPECT_EQ(r.out, kFakes + "\n") << "the libraries of the program are its own business";
}

TEST_F(TraceCommand, NamesFollowThePattern) {
  std::string launch = kProgram + " init launch=3 sync";
  char host[256] = "";
  gethostname(host, sizeof host);
  Run("daydream trace -o '%h-%q{JOB}-100%%' " + launch, kWithGpu + " JOB=a/b");
  Run("daydream trace -o run-%n.ddtrace " + launch);
  Run("daydream trace -o run-%n.ddtrace " + launch);
  fs::create_directory(Path("a folder"));
  Run("daydream trace -o 'a folder/' " + launch);
  EXPECT_THAT(Files(), testing::UnorderedElementsAre(fmt::format("{}-a_b-100%.ddtrace", host),
                                                     "run-1.ddtrace", "run-2.ddtrace", "a folder"));
  EXPECT_TRUE(fs::exists(Path("a folder/gpu_program-1.ddtrace")));
  std::ofstream(Path("train.py")) << "exec " << launch << "\n";
  Run("daydream trace -- sh -eu ./train.py --lr 1");
  EXPECT_TRUE(fs::exists(Path("train-1.ddtrace")));
}

TEST_F(TraceCommand, AFileThatExistsIsReplacedOnlyWhenTold) {
  std::ofstream(Path("run.ddtrace")) << "precious";
  Result r = Run("daydream trace -o run sh -c 'touch ran'");
  EXPECT_EQ(r.exit, 125);
  EXPECT_THAT(r.err, StartsWith("error[E0105]: cannot write run.ddtrace\n"));
  EXPECT_THAT(Files(), ElementsAre("run.ddtrace"));
  EXPECT_EQ(Run("daydream trace -f -o run " + kProgram + " init launch=4 sync").exit, 0);
  EXPECT_EQ(Kernels("run.ddtrace"), 4u);
}

TEST_F(TraceCommand, AFileThatAppearsMeanwhileIsNotReplacedAndNothingIsLost) {
  Result r = Run("daydream trace -o run sh -c 'echo precious >run.ddtrace; exec " + kProgram +
                 " init launch=5 sync'");
  EXPECT_EQ(r.exit, 0);
  EXPECT_EQ(ReadAll(Path("run.ddtrace")), "precious\n");
  EXPECT_THAT(r.err, HasSubstr("warning[W0508]"));
  ASSERT_THAT(Files(), ElementsAre("run.ddtrace", "run.session"));
  for (const auto& entry : fs::directory_iterator(Path("run.session"))) {
    EXPECT_EQ(Kernels("run.session/" + entry.path().filename().string()), 5u);
  }
}

TEST_F(TraceCommand, ProcessesWithoutRanksAreToldApartByTheirIds) {
  Result r =
      Run(fmt::format("daydream trace -o run sh -c '{0} init launch=3 sync; "
                      "{0} init launch=4 sync sleep=300 exec init launch=5 sync'",
                      kProgram));
  EXPECT_EQ(r.exit, 0);
  std::multiset<size_t> kernels;
  for (const std::string& name : Files()) {
    EXPECT_THAT(name, testing::MatchesRegex("run\\.pid[0-9]+(-2)?\\.ddtrace"));
    kernels.insert(Kernels(name));
  }
  EXPECT_THAT(kernels, ElementsAre(3, 4, 5)) << r.err;
}

TEST_F(TraceCommand, HelpersThatOnlyMakeMarksLeaveNoFiles) {
  Result r =
      Run(fmt::format("daydream trace -o run sh -c '{0} step=1 step=2; "
                      "{0} init launch=3 sync; {0} print=x'",
                      kProgram));
  EXPECT_THAT(Files(), ElementsAre("run.ddtrace")) << r.err;
}

TEST_F(TraceCommand, FewerStepsThanTheWarmUpIsExplained) {
  Result r = Run("daydream trace " + kProgram + " init train=4x2");
  EXPECT_EQ(r.exit, 0);
  EXPECT_THAT(r.err, HasSubstr("warning[W0507]: no GPU work can be told from this recording\n"
                               "   = why: what ran on the GPU in the recorded range was launched "
                               "before it"));
  EXPECT_THAT(r.err, HasSubstr("try a smaller --warmup"));
}

TEST_F(TraceCommand, ASignalSentToItGoesToTheCommand) {
  for (int signal : {SIGTERM, SIGHUP, SIGINT, SIGUSR1}) {
    pid_t child = Start(
        {"-q", "-o", fmt::format("run{}", signal), kProgram, "init", "launch=6", "sync", "pause"});
    std::string folder = fmt::format("run{}.session", signal);
    // Nothing is written any more after a signal that the recorder does not know.
    ASSERT_TRUE(WaitFor([&] { return KernelsIn(folder) == 6; }));
    kill(child, signal);
    EXPECT_EQ(End(child), 128 + signal);
    EXPECT_EQ(Kernels(fmt::format("run{}.ddtrace", signal)), 6u) << signal;
    EXPECT_FALSE(fs::exists(Path(folder)));
  }
}

TEST_F(TraceCommand, ASignalToTheWholeGroupKeepsTheRecordingComplete) {
  pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    Execute({"-q", "-o", "run", kProgram, "init", "launch=6", "sync", "pause"});
  }
  ASSERT_TRUE(WaitFor([&] { return KernelsIn("run.session") == 6; }));
  kill(-child, SIGTERM);
  EXPECT_EQ(End(child), 128 + SIGTERM);
  auto trace = ImportFile(Path("run.ddtrace"));
  ASSERT_TRUE(trace.ok());
  for (const ImportCount& c : (*trace)->provenance.counts) EXPECT_FALSE(c.loss) << c.what;
}

TEST_F(TraceCommand, TheCommandsOwnHandlerDecides) {
  std::string mark = Path("ready");
  pid_t child = Start(
      {"-q", "-o", "run", kProgram, "init", "handle_term", "launch=3", "sync", "endless=" + mark});
  ASSERT_TRUE(WaitFor([&] { return fs::exists(mark); }));
  kill(child, SIGTERM);
  EXPECT_EQ(End(child), 3);
  EXPECT_TRUE(fs::exists(Path("run.ddtrace")));
}

TEST_F(TraceCommand, CtrlCEndsTheCommandAndKeepsTheRecording) {
  int terminal = -1;
  std::string mark = Path("ready");
  pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(child, 0);
  if (child == 0) Execute({"-o", "run", kProgram, "init", "launch=8", "sync", "endless=" + mark});
  ASSERT_TRUE(WaitFor([&] { return fs::exists(mark); }));
  ASSERT_EQ(write(terminal, "\x03", 1), 1);
  char screen[4096];
  while (read(terminal, screen, sizeof screen) > 0) continue;
  EXPECT_EQ(End(child), 128 + SIGINT);
  close(terminal);
  EXPECT_GE(Kernels("run.ddtrace"), 8u);
}

TEST_F(TraceCommand, WhenItIsKilledTheProgramGoesOnAndTheFileCanBeRead) {
  std::string mark = Path("ready"), done = Path("done");
  pid_t child = Start({"-o", "run", "sh", "-c",
                       fmt::format("{} init launch=9 sync sleep=300; touch {}", kProgram, done)});
  ASSERT_TRUE(WaitFor(
      [&] { return fs::exists(Path("run.session")) && !fs::is_empty(Path("run.session")); }));
  kill(child, SIGKILL);
  EXPECT_EQ(End(child), -SIGKILL);
  ASSERT_TRUE(WaitFor([&] { return fs::exists(done); }));
  std::string name = fs::directory_iterator(Path("run.session"))->path().filename().string();
  EXPECT_EQ(Kernels("run.session/" + name), 9u);
  // The name is not given away while the folder is there.
  EXPECT_EQ(Run("daydream trace -o run true").exit, 125);
}

TEST_F(TraceCommand, AnotherProfilerInTheEnvironmentIsRefused) {
  for (const char* name : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"}) {
    Result r =
        Run("daydream trace touch ran", fmt::format("{} {}=/opt/nsys/lib.so", kWithGpu, name));
    EXPECT_EQ(r.exit, 125);
    EXPECT_THAT(r.err,
                StartsWith("error[E0501]: another tool is to record this command already\n"));
    EXPECT_THAT(r.err, HasSubstr(std::string(name) + "=/opt/nsys/lib.so"));
  }
  EXPECT_EQ(Run("daydream trace -q true", kWithGpu + " CUDA_INJECTION64_PATH=none").exit, 0);
  EXPECT_THAT(Run("daydream trace " DAYDREAM_BINARY " trace true").err,
              HasSubstr("error[E0501]: daydream trace inside daydream trace"));
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(TraceCommand, AStubOfTheDriverInThePathIsPointedOut) {
  fs::create_directory(Path("stubs"));
  std::ofstream(Path("stubs/libcuda.so")) << "";
  Result r = Run("daydream trace true", kWithGpu + ":" + Path("stubs"));
  EXPECT_THAT(r.err, StartsWith("warning[W0506]: LD_LIBRARY_PATH has a folder of driver stubs\n"));
}

TEST_F(TraceCommand, DoctorSaysWhatIsThereAndWhatIsMissing) {
  Result r = Run("daydream doctor --format json");
  auto json = nlohmann::json::parse(r.out);
  EXPECT_EQ(json["schema"], "daydream.doctor/1");
  EXPECT_EQ(json["can_record"], true) << r.out;
  EXPECT_EQ(r.exit, 0);
  std::map<std::string, std::string> health;
  for (const auto& check : json["checks"]) health[check["check"]] = check["health"];
  EXPECT_EQ(health["driver"], "ok");
  EXPECT_EQ(health["recorder"], "ok");
  EXPECT_EQ(health["CUPTI"], "ok");

  std::string fake_cupti = fmt::format("{} DAYDREAM_CUPTI={}/libcupti.so.13", kWithGpu, kFakes);
  r = Run("daydream trace --check", fake_cupti + " FAKE_CUPTI=version=130000");
  EXPECT_EQ(r.exit, 0);
  EXPECT_THAT(r.out, HasSubstr("  warn  CUPTI       version 130000, of CUDA 13.0"));
  r = Run("daydream doctor", fake_cupti + " FAKE_CUPTI=version=140000");
  EXPECT_EQ(r.exit, 6);
  EXPECT_THAT(r.out, HasSubstr("is newer than the driver"));

  r = Run("daydream doctor", "env -u LD_LIBRARY_PATH");
  EXPECT_EQ(r.exit, 6);
  EXPECT_THAT(r.out, HasSubstr("  fail  driver      no NVIDIA driver on this machine"));
  EXPECT_THAT(r.out, HasSubstr("recording cannot work here"));

  r = Run("daydream doctor", kWithGpu + " CUDA_INJECTION64_PATH=/x.so");
  EXPECT_EQ(r.exit, 6);
  EXPECT_THAT(r.out, HasSubstr("unset CUDA_INJECTION64_PATH"));
}

}  // namespace
}  // namespace daydream
