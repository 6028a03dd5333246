// The command sweep: threads, journals, shards, ranks.
#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/tools/cli_fixture.h"

namespace daydream {
namespace {

using testing::HasSubstr;

constexpr char kSpec[] =
    " --opt 'speedup(select=class:gemm,by={1.5,2,3}),speedup(select=kind:host,by=1..2+0.25)'"
    " --opt 'prefetch(1..3)' --opt free-comm";
constexpr size_t kRows = 3 * 5 + 3 + 1;

class Sweeping : public CliFixture {
 protected:
  std::string Ask(const std::string& flags) const {
    return std::string("sweep ") + kExampleTrace + kSpec + " --no-interval " + flags;
  }
  std::string Csv(const std::string& flags = "") const {
    CliResult r = Run(Ask("--format csv " + flags));
    EXPECT_EQ(r.exit, 0) << r.err;
    return r.out;
  }
  // First fields of the rows of a journal.
  std::vector<std::string> Journal(const std::string& name) const {
    std::istringstream lines(ReadAll(Path(name)));
    std::vector<std::string> rows;
    bool head = true;
    for (std::string line; std::getline(lines, line);) {
      if (!head) rows.push_back(line.substr(0, line.find('\t')));
      head &= !line.empty();
    }
    return rows;
  }
};

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
  EXPECT_THAT(Run(ask + "step,memory --opt 'batch(x2)'").out,
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

TEST_F(Sweeping, RowsAreWhatWhatifSays) {
  nlohmann::json all = nlohmann::json::parse(Run(Ask("--format json")).out);
  ASSERT_EQ(all["rows"].size(), kRows);
  for (size_t i : {size_t{0}, size_t{8}, kRows - 2}) {
    const nlohmann::json& row = all["rows"][i];
    CliResult r = Run(std::string("whatif ") + kExampleTrace + " --no-alone --no-interval --opt '" +
                      row["opt"].get<std::string>() + "' --format json");
    nlohmann::json whatif = nlohmann::json::parse(r.out);
    EXPECT_EQ(row["step_ns"], whatif["scenarios"][1]["step_ns"]);
  }
  // What finds nothing to change is a row of its own.
  EXPECT_EQ(all["rows"][kRows - 1]["error"], "E0601");
  EXPECT_TRUE(all["rows"][kRows - 1]["step_ns"].is_null());
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
  // The system ends the program when its journal would grow beyond 1024 bytes, in mid-row.
  CliResult killed = Shell("bash -c 'ulimit -f 1; exec " DAYDREAM_BINARY " " + ask +
                           "-j1 --journal " + Path("j") + "'");
  EXPECT_NE(killed.exit, 0);
  EXPECT_EQ(killed.out, "");
  const std::string left = ReadAll(Path("j"));
  ASSERT_EQ(left.size(), 1024u);
  ASSERT_FALSE(left.ends_with('\n'));
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
    parts = journal + " " + parts;
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

TEST_F(Ranks, MistakesEndAllOfThem) {
  EXPECT_NE(Mpi(3, "sweep missing.json --opt amp").exit, 0);
  Write("text", "hello\n");
  CliResult r = Mpi(3, Ask("--journal " + Path("text")));
  EXPECT_NE(r.exit, 0);
  EXPECT_THAT(r.err, HasSubstr("error[E0703]"));
}

}  // namespace
}  // namespace daydream
