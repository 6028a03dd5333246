// The command sweep: threads, journals, shards, ranks.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/tools/sweep_fixture.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST_F(Sweeping, PartsThatDoNothingAreNamedInEveryRow) {
  const std::string ask = std::string("sweep ") + kExampleTrace +
                          " --no-interval --opt 'channels-last,graphs(min_nodes=2..3)' --format ";
  const CliResult table = Run(ask + "table");
  EXPECT_THAT(table.err, HasSubstr("2 of 2 scenarios: a part finds nothing"));
  EXPECT_THAT(table.out, HasSubstr("without"));
  const nlohmann::json all = nlohmann::json::parse(Run(ask + "json").out);
  for (const auto& row : all["rows"]) {
    EXPECT_EQ(row["left_out"], "channels-last");
  }
  EXPECT_THAT(Run(ask + "csv").out, HasSubstr(",channels-last,"));
}

TEST_F(Sweeping, MatricesSayWhatWasLeftOutAndWhatMemoryBecomes) {
  const std::string ask = std::string("sweep ") + kExampleTrace + " --no-interval --opt ";
  const CliResult left = Run(ask + "'channels-last,graphs(min_nodes=2..3,launch={5us,9us})'");
  EXPECT_THAT(left.out, HasSubstr(" *"));
  EXPECT_THAT(left.out, HasSubstr("  * without channels-last, which finds nothing to change\n"));
  const CliResult memory = Run(ask + "'batch({x1,x2}),checkpointing(every={0,2})'");
  EXPECT_THAT(memory.out, HasSubstr("peak memory"));
}

TEST_F(Sweeping, AFrontOfNothingComparedDoesNotSayThatTheRecordedStepIsBest) {
  const std::string ask = std::string("sweep ") + kExampleTrace + " --no-interval --pareto ";
  EXPECT_THAT(Run(ask + "step,memory --opt free-comm --opt free-gpu").out,
              HasSubstr("  none: no row has a known step and memory\n"));
  EXPECT_THAT(Run(ask + "memory --opt free-gpu").out,
              HasSubstr("  none: no row has a known memory\n"));
  EXPECT_THAT(Run(ask + "step,memory --opt 'ddp(2,fabric=efa100)'").out,
              HasSubstr("  none: the recorded step beats them all\n"));
}

TEST_F(Sweeping, TheFrontIsTheSameInEveryFormAndAfterAMerge) {
  const std::string ask = std::string("sweep ") + kExampleTrace +
                          " --no-interval --pareto step,memory --opt 'batch({x1,x2})' --opt fuse"
                          " --opt checkpointing --opt no-sync --format ";
  const CliResult table = Run(ask + "table");
  EXPECT_EQ(table.exit, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("no other one, nor the recorded step, beats these in step,mem"));
  size_t on = 0, rows = 0;
  const nlohmann::json all = nlohmann::json::parse(Run(ask + "json").out);
  for (const auto& row : all["rows"]) {
    ++rows;
    if (!row["pareto"].get<bool>()) continue;
    ++on;
    EXPECT_TRUE(row["memory_change_bytes"].is_number());
  }
  EXPECT_GE(on, 1u);
  EXPECT_LT(on, rows);
  const std::string whole = Run(ask + "csv").out;
  EXPECT_THAT(whole, HasSubstr(",error,pareto\n"));
  EXPECT_EQ(Run(ask + "csv --journal " + Path("front")).out, whole);
  EXPECT_EQ(Run("sweep merge " + Path("front") + " --pareto step,memory --format csv").out, whole);
  EXPECT_EQ(Run(ask + "csv --pareto speed").exit, 2);
}

// As whatif does: the step of a run is not that of one rank.
const std::string kSweepOfRanks =
    "sweep " DAYDREAM_SOURCE_DIR
    "/examples/two-ranks-synthetic --opt 'straggler({0,1,7},gpu=0.8)' "
    "--opt 'bandwidth(x1..x2+1)' ";

TEST_F(Sweeping, RanksOfAFolderArePlayedTogether) {
  const CliResult r = Run(kSweepOfRanks + "--format json");
  ASSERT_EQ(r.exit, 0) << r.err;
  const auto rows = nlohmann::json::parse(r.out);
  EXPECT_TRUE(rows["measured_ns"].is_null());
  EXPECT_EQ(rows["baseline_ns"], 9000000);
  ASSERT_EQ(rows["rows"].size(), 5u);
  for (size_t i : {0, 1, 4}) {
    const std::string opt = rows["rows"][i]["opt"];
    const CliResult one =
        Run("whatif " DAYDREAM_SOURCE_DIR "/examples/two-ranks-synthetic --opt '" + opt +
            "' --format json");
    const auto whatif = nlohmann::json::parse(one.out)["scenarios"][1];
    EXPECT_EQ(rows["rows"][i]["step_ns"], whatif["step_ns"]) << opt;
    EXPECT_EQ(rows["rows"][i]["step_ms"], whatif["step_ms"]) << opt;
    EXPECT_EQ(rows["rows"][i]["low_ns"].is_null(), false) << opt;
    EXPECT_EQ(rows["rows"][i]["interval_ms"], whatif["interval_ms"]) << opt;
    EXPECT_EQ(rows["rows"][i]["speedup_interval"], whatif["speedup_interval"]) << opt;
  }
  EXPECT_EQ(rows["rows"][2]["error"], "E0601");
  // Twice the batch is twice the examples.
  const CliResult larger =
      Run("sweep " DAYDREAM_SOURCE_DIR "/examples/two-ranks-synthetic --opt 'batch({x2,x4})'");
  EXPECT_THAT(larger.out, HasSubstr("most examples a second: batch(x4)"));
  EXPECT_THAT(Run("sweep " DAYDREAM_SOURCE_DIR
                  "/examples/two-ranks-synthetic --opt 'batch(x2),straggler({1,7},host=0.5)'")
                  .err,
              HasSubstr("1 of 2 scenarios: a part finds nothing to change here"));
  EXPECT_THAT(Run(kSweepOfRanks).out, HasSubstr("ranks played together, 9.00 ms per step; 5 of 5"));
  EXPECT_THAT(Run(kSweepOfRanks + "--rank 1").err, HasSubstr("aligned"));
  EXPECT_EQ(Run(kSweepOfRanks + "-j1 --format csv").out,
            Run(kSweepOfRanks + "-j2 --format csv").out);
}

TEST_F(Sweeping, TheSameBytesForAnyNumberOfThreads) {
  const std::string one = Csv("-j1");
  EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), static_cast<ptrdiff_t>(kRows) + 1);
  EXPECT_EQ(one, Csv("-j4"));
}

TEST_F(Sweeping, MatricesAndTablesShowTheShortest) {
  CliResult r = Run(Ask(""));
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("speedup.by=1.5"));
  EXPECT_THAT(r.out, HasSubstr("speedup#2.by=1 "));
  EXPECT_THAT(r.out, HasSubstr("  shortest: speedup("));
  EXPECT_THAT(r.out, HasSubstr("E0601"));
}

TEST_F(Sweeping, AKilledSweepGoesOnAndDoesNoRowTwice) {
  const std::string ask = std::string("sweep ") + kExampleTrace +
                          " --opt \"speedup(kind:gpu,{1.5,2,3}),speedup(kind:host,1..2+0.05)\"" +
                          " --no-interval --format csv ";
  constexpr size_t kMany = 3 * 21;
  const std::string whole = Run(ask).out;
  // The journal may not grow beyond 1024 bytes: the row that would is an error, not a signal.
  CliResult limited = Shell("bash -c 'ulimit -f 1; exec " DAYDREAM_BINARY " " + ask +
                            "-j1 --journal " + Path("j") + "'");
  EXPECT_EQ(limited.exit, 2) << limited.err;
  EXPECT_THAT(limited.err, HasSubstr("File too large"));
  EXPECT_EQ(limited.out, "");
  // As a kill leaves it, in mid-row (at each write: cli_files_test).
  std::string left = ReadAll(Path("j"));
  ASSERT_GT(left.size(), 900u);
  ASSERT_LE(left.size(), 1024u);
  left.resize(left.size() - 5);
  Write("j", left);
  const size_t kept = Journal("j").size() - 1;
  ASSERT_GE(kept, 1u);
  CliResult r = Run(ask + "--journal " + Path("j"));
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(r.out, whole);
  EXPECT_THAT(r.err, HasSubstr(std::to_string(kept) + " row"));
  const std::string after = ReadAll(Path("j"));
  EXPECT_EQ(after.substr(0, left.rfind('\n')), left.substr(0, left.rfind('\n')));
  std::vector<std::string> rows = Journal("j");
  EXPECT_EQ(rows.size(), kMany);
  EXPECT_EQ(std::set<std::string>(rows.begin(), rows.end()).size(), kMany);
  // A third time there is nothing left to do.
  EXPECT_EQ(Run(ask + "--journal " + Path("j")).out, whole);
  EXPECT_EQ(ReadAll(Path("j")), after);
}

TEST_F(Sweeping, ShardsMergeToTheWhole) {
  const std::string whole = Csv();
  std::string parts;
  for (const char* shard : {"1", "2", "3"}) {
    const std::string journal = Path(std::string("p") + shard);
    CliResult r = Run(Ask("--journal " + journal + " --shard " + shard + "/3"));
    EXPECT_EQ(r.exit, 0) << r.err;
    parts.insert(0, journal + " ");
  }
  EXPECT_EQ(Run("sweep merge --format csv " + parts).out, whole);
  // A file that is given twice changes nothing.
  EXPECT_EQ(Run("sweep merge --format csv " + parts + parts).out, whole);
  CliResult r = Run("sweep merge --format csv " + Path("p1") + " " + Path("p3"));
  EXPECT_EQ(r.exit, 4);
  EXPECT_THAT(r.err, HasSubstr("error[E0705]: 6 of 19 rows are missing"));
  EXPECT_THAT(whole, HasSubstr(r.out.substr(0, r.out.find('\n'))));
}

TEST_F(Sweeping, JournalsOfOtherSweepsAreRefused) {
  ASSERT_EQ(Run(Ask("--journal " + Path("j"))).exit, 0);
  const std::string before = ReadAll(Path("j"));
  for (const std::string& other :
       {std::string("sweep ") + kExampleTrace + " --opt 'prefetch(1..3)' --journal " + Path("j"),
        std::string("sweep ") + kExampleTrace + kSpec + " --journal " + Path("j"),
        Ask("--steps 1-3 --journal " + Path("j"))}) {
    CliResult r = Run(other);
    EXPECT_EQ(r.exit, 2) << other;
    EXPECT_THAT(r.err, HasSubstr("error[E0702]"));
  }
  ASSERT_EQ(
      Run(std::string("sweep ") + kExampleTrace + " --opt 'prefetch(1..3)' --journal " + Path("k"))
          .exit,
      0);
  CliResult r = Run("sweep merge " + Path("j") + " " + Path("k"));
  EXPECT_THAT(r.err, HasSubstr("error[E0705]"));
  EXPECT_EQ(r.exit, 2);
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(ReadAll(Path("j")), before);
  Write("text", "hello\n");
  EXPECT_EQ(Run("sweep merge " + Path("text")).exit, 3);
  EXPECT_EQ(Run(Ask("--journal " + Path("text"))).exit, 3);
  EXPECT_EQ(ReadAll(Path("text")), "hello\n");
}

TEST_F(Sweeping, MistakesExitAsDocumented) {
  const std::string sweep = std::string("sweep ") + kExampleTrace;
  for (const char* flags :
       {"", " --opt 'prefetch(8..1)'", " --opt 'prefetch(wrokers=1..2)'", " --opt ampp",
        " other.ddtrace --opt amp", " --opt amp --shard 2/3", " --opt amp --shard 0/3 --journal j",
        " --opt amp --shard 4/3 --journal j", " --opt amp --shard x --journal j"}) {
    CliResult r = Run(sweep + flags);
    EXPECT_EQ(r.exit, 2) << flags << r.err;
    EXPECT_EQ(r.out, "");
  }
  EXPECT_EQ(Run("sweep merge").exit, 2);
  EXPECT_EQ(Run("sweep missing.json --opt amp").exit, 3);
  EXPECT_EQ(Run("sweep merge missing.sweep").exit, 2);
  CliResult r = Run(sweep + " --opt amp", "OMPI_COMM_WORLD_SIZE=2");
  EXPECT_EQ(r.exit, 2);
  EXPECT_THAT(r.err, HasSubstr("error[E0706]"));
}

TEST_F(Sweeping, AChangedFileIsAnotherSweep) {
  const std::string ask = std::string("sweep ") + kExampleTrace + " --no-interval --format csv";
  const std::string gpu = ask + " --opt 'gpu(to=" + Path("gpu.yaml") + ")'";
  Write("gpu.yaml", GpuWith(1555));
  const CliResult slow = Run(gpu + " --journal " + Path("j"));
  ASSERT_EQ(slow.exit, 0) << slow.err;
  EXPECT_EQ(Run(gpu + " --journal " + Path("j")).out, slow.out);
  Write("gpu.yaml", GpuWith(155));
  const CliResult r = Run(gpu + " --journal " + Path("j"));
  EXPECT_EQ(r.exit, 2);
  EXPECT_THAT(r.err, HasSubstr("error[E0702]"));
  const CliResult other = Run(gpu + " --journal " + Path("k"));
  EXPECT_NE(other.out, slow.out);
  const CliResult both = Run("sweep merge " + Path("j") + " " + Path("k"));
  EXPECT_THAT(both.err, HasSubstr("error[E0705]"));
  EXPECT_EQ(both.out, "");

  // A file of options, and a GPU that only such a file names.
  const std::string mine = ask + " --opt-file " + Path("mine.yaml") + " --opt mine";
  for (const char* use : {"speedup(kind:gpu,2)", "speedup(kind:gpu,3)"}) {
    Write("mine.yaml",
          std::string("daydream: 1\nname: mine\nsummary: one\nsteps:\n  - use: ") + use + "\n");
    const CliResult first = Run(mine + " --journal " + Path("m"));
    if (std::string(use).ends_with("2)")) {
      EXPECT_EQ(first.exit, 0) << first.err;
    } else {
      EXPECT_THAT(first.err, HasSubstr("error[E0702]"));
    }
  }
  Write("mine.yaml", "daydream: 1\nname: mine\nsummary: one\nsteps:\n  - use: gpu(to=" +
                         Path("gpu.yaml") + ")\n");
  EXPECT_EQ(Run(mine + " --journal " + Path("n")).exit, 0);
  Write("gpu.yaml", GpuWith(1000));
  EXPECT_THAT(Run(mine + " --journal " + Path("n")).err, HasSubstr("error[E0702]"));

  // The same rows from a trace of other bytes; and flags that change how it is read.
  Write("copy.ddtrace", ReadAll(kExampleTrace));
  const std::string copy =
      "sweep " + Path("copy.ddtrace") + " --opt free-gpu --journal " + Path("c");
  EXPECT_EQ(Run(copy).exit, 0);
  EXPECT_THAT(Run(copy + " --strict").err, HasSubstr("error[E0702]"));
  Write("copy.ddtrace", ReadAll(kExampleTrace) + "trailing");
  EXPECT_THAT(Run(copy).err, HasSubstr("error[E0702]"));
}

TEST_F(Sweeping, AJournalMayLieBesideTheTracesOfItsFolder) {
  const std::filesystem::path ranks =
      std::filesystem::path(kExampleTrace).parent_path() / "two-ranks-synthetic";
  std::filesystem::copy(ranks, Path("ranks"));
  const std::string ask = "sweep " + Path("ranks") + " --opt 'speedup(kind:gpu,1..2+1)'" +
                          " --no-interval --format csv --journal " + Path("ranks/j.sweep");
  const CliResult first = Run(ask);
  EXPECT_EQ(first.exit, 0) << first.err;
  Write("ranks/notes.txt", "which is no trace\n");
  const CliResult again = Run(ask);
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_EQ(again.out, first.out);
  EXPECT_THAT(again.err, HasSubstr("in the journal already"));
}

TEST_F(Sweeping, AJournalNeedsFilesThatCanBeReadAgain) {
  const std::string ask = std::string("sweep ") + kExampleTrace +
                          " --no-interval -j1 --opt 'gpu(to=/dev/stdin)' --journal " + Path("j");
  Write("gpu.yaml", GpuWith(1555));
  const CliResult r = Shell("cat " + Path("gpu.yaml") + " | " DAYDREAM_BINARY " " + ask);
  EXPECT_EQ(r.exit, 2);
  EXPECT_THAT(r.err, HasSubstr("error[E0703]: a journal cannot tell what was in this file"));
  EXPECT_FALSE(std::filesystem::exists(Path("j")));
}

// Neither read to its end nor waited for.
TEST_F(Sweeping, AJournalIsAPlainFile) {
  ASSERT_EQ(Run(Ask("--journal " + Path("j"))).exit, 0);
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const std::string fed = "timeout 20 bash -c 'cat " + Path("j") + " | " DAYDREAM_BINARY " ";
  for (const std::string& command :
       {fed + "sweep merge /dev/stdin'",
        "timeout 20 " DAYDREAM_BINARY " " + Ask("--journal " + Path("pipe")),
        "timeout 20 " DAYDREAM_BINARY " sweep merge " + Path("pipe")}) {
    const CliResult r = Shell(command);
    EXPECT_THAT(r.exit, testing::AnyOf(2, 3)) << command << r.err;
    EXPECT_THAT(r.err, HasSubstr("error[E0703]: not a plain file")) << command;
    EXPECT_EQ(r.out, "") << command;
  }
}

// The row would still be one: 9 where there was a 1.
TEST_F(Sweeping, AChangedDigitOfAJournalIsNoOtherResult) {
  ASSERT_EQ(Run(Ask("--journal " + Path("j"))).exit, 0);
  const std::string whole = ReadAll(Path("j"));
  for (size_t at = 0; at < whole.size(); ++at) {
    if (whole[at] < '0' || whole[at] > '9') continue;
    std::string text = whole;
    text[at] = text[at] == '9' ? '1' : '9';
    Write("damaged", text);
    const CliResult r = Run("sweep merge " + Path("damaged"));
    ASSERT_EQ(r.exit, 3) << at << r.err;
    ASSERT_THAT(r.err, HasSubstr("error[E0703]"));
  }
}

TEST_F(Sweeping, AJournalKnowsItsOwnNameAgain) {
  Write("a\tb.ddtrace", ReadAll(kExampleTrace));
  const std::string ask = "sweep '" + Path("a\tb.ddtrace") + "' --opt 'prefetch(1..2)' --journal " +
                          Path("j") + " --format csv";
  const CliResult first = Run(ask);
  EXPECT_EQ(first.exit, 0) << first.err;
  const CliResult again = Run(ask);
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_EQ(again.out, first.out);
}

TEST_F(Sweeping, AFileThatChangesMeanwhileEndsTheSweep) {
  Write("gpu.yaml", GpuWith(1555));
  const CliResult r = SweepWhile("echo '#' >>" + Path("gpu.yaml"));
  EXPECT_EQ(r.exit, 1) << r.err;
  EXPECT_THAT(r.err, HasSubstr("error[E0708]"));
  EXPECT_EQ(r.out, "");
}

TEST_F(Sweeping, OneThatKeepsItsSizeAndTimeDoesSo) {
  Write("gpu.yaml", GpuWith(1555));
  Write("other", GpuWith(1355));
  const CliResult r = SweepWhile("touch -r " + Path("gpu.yaml") + " " + Path("other") + "; cp -p " +
                                 Path("other") + " " + Path("gpu.yaml"));
  EXPECT_EQ(r.exit, 1) << r.err;
  EXPECT_THAT(r.err, HasSubstr("error[E0708]"));
  EXPECT_EQ(r.out, "");
}

class Ranks : public Sweeping {
 protected:
  void SetUp() override {
    Sweeping::SetUp();
    if (access(DAYDREAM_BINARY "-mpi", X_OK) != 0)
      GTEST_SKIP() << "daydream-mpi was not built: no MPI";
    if (Shell("mpirun --version").exit != 0) GTEST_SKIP() << "there is no mpirun";
  }
  CliResult Mpi(int ranks, const std::string& args) const {
    return Shell(
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe "
        "-n " +
        std::to_string(ranks) +
        " " DAYDREAM_BINARY
        "-mpi"
        " " +
        args);
  }
};

TEST_F(Ranks, AnyNumberOfThemGivesTheSameBytes) {
  const std::string whole = Csv();
  for (int ranks : {1, 2, 4}) {
    CliResult r = Mpi(ranks, Ask("-j1 --format csv"));
    EXPECT_EQ(r.exit, 0) << r.err;
    EXPECT_EQ(r.out, whole) << ranks;
  }
  EXPECT_EQ(Mpi(3, Ask("-j2 --format csv")).out, whole);
  // Of a run of several recorded ranks, too.
  EXPECT_EQ(Mpi(2, kSweepOfRanks + "--format csv").out, Run(kSweepOfRanks + "--format csv").out);
}

TEST_F(Ranks, ShareThePointsOfACurve) {
  const std::string folder = DAYDREAM_SOURCE_DIR "/examples/two-ranks-synthetic";
  for (const std::string& ask :
       {folder + " --ranks 1,2,8 --fabric nvlink4 --format csv",
        kExampleTrace + std::string(" --ranks 4,8,16,32 --format json") + " --fabric nvlink4"}) {
    const CliResult alone = Run("scale " + ask);
    for (int ranks : {1, 3}) {
      const CliResult r = Mpi(ranks, "scale " + ask + " -j1");
      EXPECT_EQ(r.out, alone.out) << r.err;
      EXPECT_EQ(r.exit, alone.exit);
      EXPECT_THAT(r.err, HasSubstr(alone.err));
      EXPECT_EQ(r.err.find(alone.err), r.err.rfind(alone.err)) << "told twice";
    }
  }
  EXPECT_THAT(Run("scale x", "OMPI_COMM_WORLD_SIZE=2").err, HasSubstr("daydream-mpi scale ..."));
}

TEST_F(Ranks, ShareOneJournal) {
  const std::string whole = Csv();
  CliResult first = Mpi(3, Ask("-j1 --shard 1/2 --journal " + Path("j")));
  EXPECT_EQ(first.exit, 0) << first.err;
  EXPECT_EQ(Journal("j").size(), (kRows + 1) / 2);
  CliResult r = Mpi(2, Ask("-j1 --format csv --journal " + Path("j")));
  EXPECT_EQ(r.out, whole) << r.err;
  std::vector<std::string> rows = Journal("j");
  EXPECT_EQ(rows.size(), kRows);
  EXPECT_EQ(std::set<std::string>(rows.begin(), rows.end()).size(), kRows);
}

TEST_F(Ranks, OneThatReadsOtherFilesEndsTheJob) {
  Write("a.yaml", GpuWith(1555));
  Write("b.yaml", GpuWith(155));
  fs::create_directory(Path("a"));
  fs::create_directory(Path("b"));
  fs::rename(Path("a.yaml"), Path("a/gpu.yaml"));
  fs::rename(Path("b.yaml"), Path("b/gpu.yaml"));
  const std::string one = std::string(DAYDREAM_BINARY "-mpi sweep ") + kExampleTrace +
                          " --opt 'gpu(to=./gpu.yaml),speedup(kind:gpu,{1,2,3})' --no-interval";
  const std::string run =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe ";
  const CliResult same = Shell(run + "-n 2 --wdir " + Path("a") + " " + one);
  EXPECT_EQ(same.exit, 0) << same.err;
  const CliResult r = Shell(run + "-n 1 --wdir " + Path("a") + " " + one + " : -n 1 --wdir " +
                            Path("b") + " " + one);
  EXPECT_NE(r.exit, 0);
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(r.err, HasSubstr("error[E0707]: rank 1 on "));
  // One that cannot read its file ends the job as well, instead of leaving its rows to others.
  fs::remove(Path("b/gpu.yaml"));
  const CliResult gone =
      Shell(run + "-n 2 --wdir " + Path("a") + " " + one + " : -n 1 --wdir " + Path("b") + " " +
            DAYDREAM_BINARY "-mpi sweep missing.json --opt amp");
  EXPECT_NE(gone.exit, 0);
  EXPECT_THAT(gone.err, HasSubstr("error[E0707]: rank 2 on "));
}

TEST_F(Ranks, AFlagThatOneDoesNotKnowIsToldWithItsRank) {
  const std::string run =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2 ";
  const std::string one = DAYDREAM_BINARY "-mpi " + Ask("-j1 --format csv");
  for (const char* wrong : {" --bogus", " --shard 3/2"}) {
    const CliResult r = Shell(fmt::format("{}{} : -n 1 {}{}", run, one, one, wrong));
    EXPECT_NE(r.exit, 0);
    EXPECT_EQ(r.out, "");
    EXPECT_THAT(r.err, HasSubstr("error[E0707]: rank 2 on ")) << wrong;
    EXPECT_THAT(r.err, HasSubstr(std::string(wrong).substr(1, 7)));
  }
  // One that all of them do not know is told once, by the first.
  const CliResult all = Mpi(3, Ask("--bogus"));
  EXPECT_EQ(all.exit, 2) << all.err;
  const std::string told = "unknown flag --bogus";
  EXPECT_NE(all.err.find(told), std::string::npos) << all.err;
  EXPECT_EQ(all.err.find(told), all.err.rfind(told)) << all.err;
}

TEST_F(Ranks, OneWhoseConfigIsWrongIsToldWithItsRank) {
  fs::create_directories(Path("bad/daydream"));
  Write("bad/daydream/config", "jbos = 4\n");
  const std::string run =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 1 ";
  const std::string one = DAYDREAM_BINARY "-mpi " + Ask("-j1 --format csv");
  const CliResult r = Shell(run + one + " : -n 1 env XDG_CONFIG_HOME=" + Path("bad") + " " + one);
  EXPECT_NE(r.exit, 0);
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(r.err, HasSubstr("error[E0707]: rank 1 on "));
  EXPECT_THAT(r.err, HasSubstr("jbos"));
}

TEST_F(Ranks, MistakesEndAllOfThem) {
  EXPECT_NE(Mpi(3, "sweep missing.json --opt amp").exit, 0);
  Write("text", "hello\n");
  CliResult r = Mpi(3, Ask("--journal " + Path("text")));
  EXPECT_NE(r.exit, 0);
  EXPECT_THAT(r.err, HasSubstr("error[E0703]"));
}

}  // namespace
}  // namespace daydream
