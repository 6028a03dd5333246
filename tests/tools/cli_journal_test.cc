// What is said of journals, and by a sweep that is interrupted; dense sweeps in shards.
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "report/text/format.h"
#include "tests/tools/sweep_fixture.h"

namespace daydream {
namespace {

using testing::HasSubstr;

using Journals = Sweeping;

TEST_F(Journals, CtrlCSaysWhatIsDoneAndHowToGoOn) {
  const std::vector<std::string> ask = {
      "sweep", kExampleTrace, "--opt", "speedup(kind:gpu,1..9999)", "--no-interval", "-j1"};
  std::vector<std::string> kept = ask;
  kept.insert(kept.end(), {"--journal", Path("j")});
  const pid_t pid = Start(kept);
  for (int i = 0; i < 1000 && Journal("j").size() < 3; ++i) usleep(10'000);
  EXPECT_EQ(Interrupt(pid), 130);
  const std::string said = OneLine(ReadAll(Path("err")));
  const size_t rows = Journal("j").size();
  ASSERT_GE(rows, 3u);
  // The last row may have been written and not yet counted.
  EXPECT_THAT(said, testing::AnyOf(
                        HasSubstr(fmt::format("interrupted: {} of 9,999 rows are in ", rows)),
                        HasSubstr(fmt::format("interrupted: {} of 9,999 rows are in ", rows - 1))));
  EXPECT_THAT(said, HasSubstr("the same command goes on from there"));
}

// Without a journal the rows that are done are the result.
TEST_F(Journals, CtrlCLeavesTheRowsThatAreDone) {
  const pid_t pid = Start({"sweep", kExampleTrace, "--opt", "speedup(kind:gpu,1..99999)",
                           "--no-interval", "-j1", "--progress=always", "-o", Path("rows.csv")});
  for (int i = 0; i < 1000 && ReadAll(Path("err")).find("sweeping") == std::string::npos; ++i) {
    usleep(10'000);
  }
  EXPECT_EQ(Interrupt(pid), 130);
  const std::string out = ReadAll(Path("rows.csv"));
  const auto lines = static_cast<size_t>(std::count(out.begin(), out.end(), '\n'));
  ASSERT_GE(lines, 2u) << out;
  EXPECT_LT(lines, 100'000u);
  EXPECT_TRUE(out.ends_with('\n'));
  const std::string said = OneLine(ReadAll(Path("err")));
  EXPECT_THAT(said, HasSubstr("stopping after the rows that are begun"));
  EXPECT_THAT(said, HasSubstr(fmt::format("interrupted: {} of 99,999 rows are missing",
                                          FormatCount(100'000 - lines))));
}

// Rows are begun in order, so that one of those that were begun and are not there leaves a hole.
TEST_F(Journals, CtrlCWaitsForTheRowsOfOtherThreads) {
  const pid_t pid = Start({"sweep", kExampleTrace, "--opt", "speedup(kind:gpu,1..99999)",
                           "--no-interval", "-j8", "--progress=always", "-o", Path("rows.csv")});
  for (int i = 0; i < 1000 && ReadAll(Path("err")).find("sweeping") == std::string::npos; ++i) {
    usleep(10'000);
  }
  EXPECT_EQ(Interrupt(pid), 130);
  const std::string out = ReadAll(Path("rows.csv"));
  const auto rows = static_cast<size_t>(std::count(out.begin(), out.end(), '\n')) - 1;
  ASSERT_GE(rows, 2u) << out;
  EXPECT_THAT(out, HasSubstr(fmt::format("\n{},", rows - 1))) << "the last of as many";
  EXPECT_THAT(out, testing::Not(HasSubstr(fmt::format("\n{},", rows))));
}

TEST_F(Journals, AJournalSaysWhatChangedSinceItWasBegun) {
  const std::string sweep = std::string("sweep ") + kExampleTrace + " --journal " + Path("j");
  Write("gpu.yaml", GpuWith(1555));
  const std::string ask = sweep + " --no-interval --opt 'gpu(to=" + Path("gpu.yaml") + ")'";
  ASSERT_EQ(Run(ask).exit, 0);
  const auto why = [](const CliResult& r) { return OneLine(r.err); };
  EXPECT_THAT(why(Run(ask + " --steps 1-3")), HasSubstr("this changed: --steps, the graph"));
  EXPECT_THAT(why(Run(sweep + " --no-interval --opt amp")),
              HasSubstr("this changed: --opt, the optimizations"));
  Write("gpu.yaml", GpuWith(155));
  const CliResult r = Run(ask);
  EXPECT_THAT(r.err, HasSubstr("error[E0702]: this journal belongs to another sweep"));
  EXPECT_THAT(why(r), HasSubstr("this changed: the content of " + Path("gpu.yaml") + " "));
}

TEST_F(Journals, AJournalOfAnotherVersionIsNotCalledNone) {
  Write("j", "daydream-sweep 3\nkey\t1\n");
  const CliResult r = Run(Ask("--journal " + Path("j")));
  EXPECT_EQ(r.exit, 3);
  EXPECT_THAT(r.err, HasSubstr("error[E0703]: this journal is of another version of the program"));
  EXPECT_THAT(r.err, HasSubstr(Path("j") + ":1"));
}

TEST_F(Journals, IntervalsBetweenNeighboursSaySoAndAreTheSameInShards) {
  const std::string ask = std::string("sweep ") + kExampleTrace +
                          " --opt 'speedup(kernel:.,1.05..3.05+0.03)' --format ";
  const nlohmann::json all = nlohmann::json::parse(Run(ask + "json").out);
  size_t between = 0;
  for (const auto& row : all["rows"]) between += row.value("interval_between", false) ? 1 : 0;
  EXPECT_GT(between, 0U);
  EXPECT_THAT(Run(ask + "table").out,
              HasSubstr(fmt::format("  {} of {} intervals lie between those of neighbours that",
                                    between, all["rows"].size())));
  EXPECT_THAT(Run(ask + "md").out, HasSubstr(fmt::format("\n{} of {} intervals lie between",
                                                         between, all["rows"].size())));
  const std::string whole = Run(ask + "csv --jobs 1").out;
  EXPECT_THAT(whole.substr(0, whole.find('\n')), testing::EndsWith(",error,interval_between"));
  size_t marked = 0;
  for (size_t at = 0; (at = whole.find(",1\n", at)) != std::string::npos; ++at) ++marked;
  EXPECT_EQ(marked, between);
  EXPECT_EQ(Run(ask + "csv --jobs 3").out, whole);
  for (const char* part : {"1", "2"}) {
    Run(ask + "csv --journal " + Path(part) + " --shard " + part + "/2");
  }
  EXPECT_EQ(Run("sweep merge --format csv " + Path("1") + " " + Path("2")).out, whole);
}

}  // namespace
}  // namespace daydream
