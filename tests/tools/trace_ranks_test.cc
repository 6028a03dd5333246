// `daydream trace` with several ranks, commands that read what they left, and what the end of a run
// says about CUPTI and about its cost.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/tools/trace_command_fixture.h"

namespace daydream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(TraceCommand, EachRankGetsItsFile) {
  std::string rank = "WORLD_SIZE=2 " + kProgram + " init launch=";
  Result r = Run("daydream trace -o run sh -c 'RANK=0 " + rank + "3 sync & RANK=1 " + rank +
                 "7 sync; wait'");
  EXPECT_EQ(r.exit, 0);
  EXPECT_THAT(Files(), ElementsAre("run.rank0.ddtrace", "run.rank1.ddtrace")) << r.err;
  EXPECT_EQ(Kernels("run.rank0.ddtrace"), 3u);
  EXPECT_EQ(Kernels("run.rank1.ddtrace"), 7u);

  // One recorder for each rank, as mpirun starts them.
  Run("{ RANK=0 WORLD_SIZE=2 daydream trace -o mpi " + kProgram + " init launch=2 sync & " +
      "RANK=1 WORLD_SIZE=2 daydream trace -o mpi " + kProgram + " init launch=2 sync; wait; }");
  EXPECT_TRUE(fs::exists(Path("mpi.rank0.ddtrace")));
  EXPECT_TRUE(fs::exists(Path("mpi.rank1.ddtrace")));
}

TEST_F(TraceCommand, TheFolderOfARunIsOneTraceOfWhichAWhatIfTakesOneRank) {
  const std::string rank = "WORLD_SIZE=2 " + kProgram + " init train=30x";
  fs::create_directory(Path("run"));
  Result r =
      Run("daydream trace -o run/a -- sh -c 'RANK=0 " + rank + "4 & RANK=1 " + rank + "8; wait'");
  ASSERT_EQ(r.exit, 0) << r.err;

  r = Run("daydream info run --format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  const auto info = nlohmann::json::parse(r.out);
  ASSERT_EQ(info["ranks"].size(), 2u);
  EXPECT_EQ(info["ranks"][1]["rank"], 1);
  EXPECT_GT(info["recording"]["steps_with"], 0);
  EXPECT_EQ(info["recording"], info["ranks"][0]["recording"]) << "of the rank that is looked at";
  EXPECT_GT(info["ranks"][1]["recording"]["steps_with"], 0);
  EXPECT_NE(info["recording"], info["ranks"][1]["recording"]) << "each measures its own";
  EXPECT_THAT(Run("daydream info run").out, HasSubstr("rank 1: "));
  EXPECT_THAT(r.err, HasSubstr("2 traces of one run, 2 on one clock"));
  EXPECT_THAT(r.err, HasSubstr("rank 0 of 2 is looked at; --rank R takes another, alone as well"));

  r = Run("daydream import run -o all.ddtrace");
  EXPECT_EQ(r.exit, 0) << r.err;
  // 3 labelled steps and 8 timed ones, of 4 kernels and of 8.
  EXPECT_EQ(Kernels("all.ddtrace"), 11u * 12);
  for (const char* input : {"run", "all.ddtrace"}) {
    // Steps of a busy machine are not alike: how well they repeat is no matter here.
    r = Run(fmt::format("daydream whatif {} --rank 1 --opt free-launch --max-replay-error 1000%",
                        input));
    EXPECT_EQ(r.exit, 0) << r.err;
    r = Run(fmt::format("daydream summary {} --rank 7", input));
    EXPECT_EQ(r.exit, 2) << r.err;
    EXPECT_THAT(r.err, HasSubstr("error[E0432]: there is no rank '7' in this trace"));
    EXPECT_THAT(r.err, HasSubstr("it holds rank 0, rank 1"));
  }
  fs::create_directory(Path("empty"));
  EXPECT_THAT(Run("daydream info empty").err, HasSubstr("error[E0430]"));
  r = Run("daydream info run/a.rank0.ddtrace run/a.rank0.ddtrace");
  EXPECT_EQ(r.exit, 2) << "one input, which may be a folder";
  r = Run("daydream import run/a.rank0.ddtrace run/a.rank0.ddtrace -o twice.ddtrace");
  EXPECT_THAT(r.err, HasSubstr("error[E0431]: two of these traces are of rank 0"));
}

TEST_F(TraceCommand, OnlyTheRanksAskedForAreRecorded) {
  const std::string rank = "WORLD_SIZE=3 " + kProgram + " init launch=3 sync";
  Result r = Run("daydream trace --ranks 0,2 -o run sh -c 'RANK=0 " + rank + " & RANK=1 " + rank +
                 " & RANK=2 " + rank + "; wait'");
  EXPECT_EQ(r.exit, 0);
  EXPECT_THAT(Files(), ElementsAre("run.rank0.ddtrace", "run.rank2.ddtrace")) << r.err;
  EXPECT_THAT(Run("daydream trace --ranks 0,x true").err,
              HasSubstr("--ranks '0,x' is not a list of ranks"));
}

TEST_F(TraceCommand, CuptiThatIsTakenIsTheReasonForNoGpuWork) {
  Result r = Run("daydream trace " + kProgram + " init launch=3 sync",
                 kWithGpu + " FAKE_CUPTI='subscriber=Nsight Systems'");
  EXPECT_EQ(r.exit, 0);
  EXPECT_THAT(r.err, HasSubstr("warning[W0507]: no GPU work was recorded\n"
                               "   = why: CUPTI is in use by Nsight Systems"));
  EXPECT_THAT(r.err, HasSubstr("put that right and record again"));
}

TEST_F(TraceCommand, FewStepsTellNoOverhead) {
  Result r = Run("daydream trace --warmup 4 --steps 3 " + kProgram + " init train=9x10");
  EXPECT_THAT(r.err, HasSubstr("overhead not measurable on ")) << r.err;
}

}  // namespace
}  // namespace daydream
