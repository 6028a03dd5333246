// What is told of long work in a pipe. DAYDREAM_PROGRESS_MS is the time between two lines, of which
// 0 makes one of every step.
#include <unistd.h>

#include <algorithm>

#include <gmock/gmock.h>

#include "tests/tools/cli_fixture.h"
#include "tests/tools/small_trace.h"

namespace daydream {
namespace {

using testing::HasSubstr;

class Progresses : public CliFixture {
 protected:
  void TearDown() override {
    unsetenv("DAYDREAM_PROGRESS_MS");
    CliFixture::TearDown();
  }
  // The phases of `ask`, one after the other.
  void ExpectPhases(const std::string& ask, const std::vector<std::string>& phases) const {
    const CliResult r = Run(ask + " --progress always", "DAYDREAM_PROGRESS_MS=0");
    ASSERT_EQ(r.exit, 0) << r.err;
    size_t at = 0;
    for (const std::string& phase : phases) {
      const size_t next = r.err.find(phase, at);
      ASSERT_NE(next, std::string::npos) << ask << ": " << phase << "\n" << r.err;
      at = next;
    }
  }
};

TEST_F(Progresses, EveryPhaseOfALongCommandIsTold) {
  const std::string trace = std::string(" ") + kExampleTrace;
  const std::vector<std::string> read = {std::string("reading ") + kExampleTrace,
                                         "building the graph", "checking the replay"};
  const auto behind = [&](std::vector<std::string> phases) {
    phases.insert(phases.begin(), read.begin(), read.end());
    return phases;
  };
  ExpectPhases("advise" + trace + " -j2 -o " + Path("a.txt"),
               behind({"playing the step", "trying options 0 of ", "trying options 5 of ",
                       "looking for the best set, 1 done", "looking for the best set, 9 done",
                       "finding reasons", "writing " + Path("a.txt")}));
  ExpectPhases("whatif" + trace + " --opt amp,fuse --timeline " + Path("t.json"),
               behind({"predicting 0 of 3", "predicting 3 of 3", "playing before and after",
                       "making " + Path("t.json")}));
  ExpectPhases("report" + trace + " -o " + Path("r.html"),
               behind({"drawing the timelines", "trying options 5 of ", "looking for the best set",
                       "making the page", "writing " + Path("r.html")}));
  ExpectPhases("causal" + trace, behind({"playing curves 1 of "}));
  ExpectPhases("scale" + trace + " --fabric nvlink4 --ranks 1,2",
               behind({"playing one GPU alone", "playing points 0 of 2", "playing points 2 of 2"}));
  ExpectPhases("sweep" + trace + " --opt 'prefetch(1..3)'",
               behind({"sweeping 0 of 3", "sweeping 3 of 3"}));
  ExpectPhases("export" + trace + " -o " + Path("e.json"),
               {read[0], read[1], "playing the steps", "making the chrome file",
                "writing " + Path("e.json")});
  ExpectPhases("import" + trace + " -o " + Path("i.ddtrace"),
               {read[0], "packing the trace", "writing " + Path("i.ddtrace")});
  ExpectPhases("kernels --gpu H200 --gemm 1024x1024x1024 --gemm 64x64x64 -o " + Path("k.txt"),
               {"timing 2 kernels", "writing " + Path("k.txt")});
  ExpectPhases("fabric show ib-ndr --ranks 16 --at 1024,2048", {"timing 2 sizes"});
  Write("sweep.txt",
        "1024 256 float sum -1 30.0 0.03 0.03 0\n"
        "1048576 262144 float sum -1 60.0 17.5 17.5 0\n");
  ExpectPhases("fabric fit " + Path("sweep.txt") + " --collective all_reduce --ranks 2",
               {"fitting " + Path("sweep.txt")});
}

TEST_F(Progresses, TimelinesAreCountedByTheirTasksAndTriesByTheirOptimizations) {
  Write("long.json", SmallTrace(4000));
  const std::string ask = Path("long.json") + " --steps all";
  ExpectPhases("export " + ask + " -o " + Path("e.json"),
               {"making the chrome file 8,192 of ", "making the chrome file 16,384 of "});
  ExpectPhases("export " + ask + " -o " + Path("e.pftrace"),
               {"making the perfetto file 8,192 of ", "making the perfetto file 16,384 of "});
  ExpectPhases("info " + ask, {"trying optimizations 0 of ", "trying optimizations 9 of "});
  ExpectPhases("opt list --applicable " + ask,
               {"building the graph", "trying optimizations 0 of ", "trying optimizations 9 of "});
}

// What counts nothing is told again and again, by the clock.
TEST_F(Progresses, WorkThatCountsNothingIsToldByTheClock) {
  setenv("DAYDREAM_PROGRESS_MS", "1", 1);
  ASSERT_EQ(Shell("mkfifo " + Path("pipe")).exit, 0);
  const pid_t pid = Start({"info", Path("pipe"), "--progress=always"});
  const auto lines = [&] {
    const std::string said = ReadAll(Path("err"));
    return std::count(said.begin(), said.end(), '\n');
  };
  for (int i = 0; i < 3000 && lines() < 3; ++i) usleep(10'000);
  EXPECT_GE(lines(), 3);
  EXPECT_THAT(ReadAll(Path("err")), HasSubstr("reading " + Path("pipe") + "\nreading "));
  EXPECT_EQ(Interrupt(pid), 130);
}

TEST_F(Progresses, NothingIsToldBeforeItIsTimeNorUnasked) {
  const std::string ask = std::string("advise ") + kExampleTrace;
  EXPECT_EQ(Run(ask + " --quiet --progress always", "DAYDREAM_PROGRESS_MS=0").err, "");
  for (const char* flags : {"", " --progress never", " --progress auto"}) {
    const CliResult r = Run(ask + flags, "DAYDREAM_PROGRESS_MS=0");
    EXPECT_EQ(r.exit, 0) << r.err;
    EXPECT_THAT(r.err, testing::Not(HasSubstr("trying"))) << flags;
  }
  // It takes less than this.
  EXPECT_THAT(Run(ask + " --progress always", "DAYDREAM_PROGRESS_MS=100000").err,
              testing::Not(HasSubstr("trying")));
}

}  // namespace
}  // namespace daydream
