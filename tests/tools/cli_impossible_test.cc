// Times that cannot be and machines that have too little: both are said, and neither becomes a
// number.
#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/tools/cli_fixture.h"
#include "tests/tools/small_trace.h"

namespace daydream {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr double kHour = 3.6e9, kDay = 24 * kHour, kYear = 365 * kDay;  // in us

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

class Impossible : public CliFixture {
 protected:
  static std::string Kernel(double ts, double dur) {
    return fmt::format(
        R"({{"ph":"X","cat":"kernel","name":"stray","pid":0,"tid":7,"ts":{:.0f},"dur":{:.0f},)"
        R"("args":{{"correlation":9999,"stream":7,"device":0}}}},)",
        ts, dur);
  }
  static std::string Later(double us, std::string events) {
    const std::string key = "\"ts\":";
    for (size_t at = 0; (at = events.find(key, at)) != std::string::npos; ++at) {
      const size_t begin = at + key.size(), end = events.find(',', begin);
      const double ts = std::stod(events.substr(begin, end - begin));
      events.replace(begin, end - begin, fmt::format("{:.0f}", ts + us));
    }
    return events;
  }
  double MeasuredMs(const std::string& file) const {
    const CliResult r = Run("whatif " + Path(file) + " --opt free-gpu --format json");
    EXPECT_EQ(r.exit, 0) << r.err;
    if (!nlohmann::json::accept(r.out)) return -1;
    return nlohmann::json::parse(r.out)["replay"]["measured_ms"].get<double>();
  }
};

TEST_F(Impossible, OneEventFarAwayIsNamedAndLeftOut) {
  const std::pair<double, double> strays[] = {
      {kDay, 5}, {30 * kYear, 5}, {5 * kHour, 1}, {300, kDay}, {300, 30 * kYear}};
  // Without marks the whole recording is one step: 86400 s, with one kernel a day away.
  for (const bool marks : {true, false}) {
    auto write = [&](const std::string& name, const std::string& text) {
      Write(name, marks ? text : WithoutMarks(text));
    };
    write("good.json", SmallTrace());
    const double good = MeasuredMs("good.json");
    EXPECT_LT(good, 1);
    for (const auto& [ts, dur] : strays) {
      write("far.json", SmallTrace(6, Kernel(ts, dur)));
      const CliResult r = Run("info --try " + Path("far.json"));
      EXPECT_EQ(r.exit, 0) << r.err;
      EXPECT_THAT(r.err, HasSubstr("warning[W0203]: 1 events far from all others")) << ts;
      EXPECT_THAT(r.err, HasSubstr("'stray'"));
      EXPECT_EQ(MeasuredMs("far.json"), good) << ts;
    }
  }
}

TEST_F(Impossible, NoStepGoesFromOneWindowToTheNext) {
  // Two windows of one recording, two minutes apart: both have steps, and one answers.
  std::string later;
  for (int i = 0; i < 6; ++i) later += Later(120e6, StepEvents(i));
  Write("windows.json", SmallTrace(6, later));
  const CliResult r = Run("info " + Path("windows.json"));
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("warning[W0203]: 36 events of other windows of 72 inputs"));
  Write("good.json", SmallTrace());
  EXPECT_EQ(MeasuredMs("windows.json"), MeasuredMs("good.json"));
}

// Too near to be left out, and no part of any step.
TEST_F(Impossible, AStrayHalfAMinuteAwayIsAFinding) {
  for (const auto& [ts, dur, says] :
       {std::tuple(50e6, 5.0, "nothing at all was recorded for"),
        std::tuple(300.0, 50e6, "one piece of GPU work takes 50.0 s")}) {
    Write("near.json", WithoutMarks(SmallTrace(6, Kernel(ts, dur))));
    for (const char* command : {"info ", "summary ", "whatif --opt free-gpu "}) {
      const CliResult r = Run(command + Path("near.json"));
      std::string out = r.out + r.err;  // in the refusal where that is all
      for (size_t at; (at = out.find("\n             ")) != std::string::npos;) {
        out.replace(at, 14, " ");  // lines are broken for reading
      }
      EXPECT_THAT(out, HasSubstr(says)) << command << r.err;
      const size_t table = out.find("of critical path");
      EXPECT_LT(out.find(says), table) << "what is wrong comes first";
      if (dur < 1e6) EXPECT_EQ(table, std::string::npos) << "no table of a step with a hole";
    }
  }
}

// What all steps launched begins at one instant: a step of 0 ns is none.
TEST_F(Impossible, AStepWithoutLengthIsRefused) {
  nlohmann::json trace = nlohmann::json::parse(SmallTrace());
  for (nlohmann::json& event : trace["traceEvents"]) {
    if (event["pid"] == 0) event["ts"] = 50;  // on the GPU
  }
  Write("instant.json", trace.dump());
  for (const char* command : {"whatif --opt amp ", "summary ", "advise "}) {
    const CliResult r = Run(command + Path("instant.json"));
    EXPECT_EQ(r.exit, 4) << command << r.out;
    EXPECT_THAT(r.err, HasSubstr("error[E0607]")) << command;
    EXPECT_THAT(r.err, HasSubstr("steps take 0 ns")) << command;
  }
}

TEST_F(Impossible, ADifferenceTellsWhichStepIsInDoubt) {
  Write("good.json", WithoutMarks(SmallTrace()));
  Write("near.json", WithoutMarks(SmallTrace(6, Kernel(50e6, 5))));
  const std::string ask = "diff " + Path("good.json") + " " + Path("near.json");
  const CliResult r = Run(ask);
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("found in AFTER:"));
  EXPECT_THAT(r.out, Not(HasSubstr("found in BEFORE:")));
  const nlohmann::json json = nlohmann::json::parse(Run(ask + " --format json").out);
  EXPECT_EQ(json["before"]["findings"].size(), 0u);
  EXPECT_EQ(json["after"]["findings"][0]["kind"], "pause");
}

TEST_F(Impossible, KernelsFarFromTheirLaunchesAreRefused) {
  std::string events;
  for (int i = 0; i < 6; ++i) {
    std::istringstream lines(StepEvents(i));
    for (std::string line; std::getline(lines, line);) {
      events += line.find("sgemm") == std::string::npos ? line : Later(kDay, line);
    }
  }
  events.pop_back();
  Write("torn.json", "{\"traceEvents\":[" + events + "]}");
  const CliResult r = Run("whatif " + Path("torn.json") + " --opt fuse");
  EXPECT_EQ(r.exit, 3);
  EXPECT_THAT(r.err, HasSubstr("error[E0214]: 6 of 36 events lie at least"));
  EXPECT_THAT(r.err, HasSubstr("6 of them from the call or GPU work they belong to"));
}

TEST_F(Impossible, DurationsThatAddUpToCenturiesAreNoMistakeOfOurs) {
  std::string all;
  for (int i = 0; i < 40; ++i) all += Kernel(i * kYear, kYear);
  Write("long.json", SmallTrace(1, all));
  for (const char* command : {"info --try ", "whatif --opt fuse ", "summary "}) {
    const CliResult r = Run(command + Path("long.json"));
    EXPECT_THAT(r.exit, AnyOf(0, 3, 4)) << r.err;
    EXPECT_THAT(r.err, AnyOf(HasSubstr("W0203"), HasSubstr("E0214")));
    EXPECT_THAT(r.err, Not(HasSubstr("E0901")));
  }
  Write("good.json", SmallTrace());
  const CliResult r = Run("whatif " + Path("good.json") + " --opt 'speedup(kind:gpu,1e-15)'");
  EXPECT_THAT(r.err, Not(HasSubstr("E0901")));
}

TEST_F(Impossible, WithoutMemoryThereIsAnErrorAndExitCode7) {
  if (kSanitized) GTEST_SKIP() << "sanitizers reserve more than any limit of memory";
  // From what the program needs to start up to what it needs for all.
  std::string events;
  for (int i = 0; i < 2000; ++i) events += StepEvents(i);
  Write("big.json", SmallTrace(1, events));
  bool seen = false;
  CliResult last;
  for (int mb = 24; mb <= 2000 && !(seen && last.exit == 0); mb += mb / 8) {
    const std::string limit = fmt::format("ulimit -v {}; ", mb * 1024);
    if (Shell(limit + DAYDREAM_BINARY " --version").exit != 0) continue;
    last = Shell(limit + DAYDREAM_BINARY " whatif -j2 " + Path("big.json") + " --opt amp");
    EXPECT_THAT(last.exit, AnyOf(0, 7)) << mb << last.err;
    if (last.exit != 7) continue;
    seen = true;
    EXPECT_THAT(last.err, AnyOf(HasSubstr("error[E0120]"), HasSubstr("error[E0121]")));
    EXPECT_EQ(last.out, "");
  }
  EXPECT_TRUE(seen);
  EXPECT_EQ(last.exit, 0) << last.err;
}

TEST_F(Impossible, AGraphThatNeedsMoreThanIsFreeIsAnnounced) {
  if (kSanitized) GTEST_SKIP() << "sanitizers reserve more than any limit of memory";
  std::string events;
  for (int i = 0; i < 30000; ++i) events += StepEvents(i);
  Write("big.json", SmallTrace(1, events));
  const std::string ask =
      DAYDREAM_BINARY " whatif -j1 " + Path("big.json") + " --opt free-gpu --no-interval";
  const CliResult little = Shell("ulimit -v 120000; " + ask);
  EXPECT_EQ(little.exit, 7);
  EXPECT_THAT(little.err, HasSubstr("warning[W0120]: 180,006 events may need up to 468.0 MB"));
  EXPECT_THAT(little.err, HasSubstr("error[E0120]"));
  EXPECT_THAT(little.err, HasSubstr("may be needed"));
  // 30,000 steps, each with a mark of its own name, need no more than as many events of few steps.
  const CliResult enough = Shell("ulimit -v 360000; " + ask);
  EXPECT_EQ(enough.exit, 0) << enough.err;
}

TEST_F(Impossible, SoAreRanksThatAreFewEnoughOneByOne) {
  if (kSanitized) GTEST_SKIP() << "sanitizers reserve more than any limit of memory";
  std::string events;
  for (int i = 0; i < 5000; ++i) events += StepEvents(i);
  std::filesystem::create_directory(Path("run"));
  for (int rank : {0, 1}) {
    std::string text = SmallTrace(1, rank == 0 ? events : events + StepEvents(5000));
    text.insert(1, fmt::format(R"("distributedInfo":{{"rank":{},"world_size":2}},)", rank));
    Write(fmt::format("run/rank{}.json", rank), text);
  }
  const CliResult r =
      Shell("ulimit -v 170000; " DAYDREAM_BINARY " ranks -j1 --clock none " + Path("run"));
  EXPECT_THAT(r.err, HasSubstr("warning[W0120]: 60,018 events may need up to 156.0 MB"));
}

TEST_F(Impossible, WithoutMoreThreadsFewerDoTheSameWork) {
  const std::string faults = DAYDREAM_BINARY_DIR "/tests/faults/faults.so";
  if (access(faults.c_str(), R_OK) != 0) GTEST_SKIP() << "not built: " << faults;
  const std::string ask = std::string("sweep ") + kExampleTrace + " --opt 'prefetch(1..4)' -j4";
  const CliResult all = Run(ask);
  EXPECT_EQ(all.exit, 0) << all.err;
  for (int made : {0, 1, 2}) {
    const CliResult r =
        Run(ask, fmt::format("LD_PRELOAD={} DAYDREAM_FAULT_THREADS={}", faults, made));
    EXPECT_EQ(r.exit, 0) << r.err;
    EXPECT_EQ(r.out, all.out) << made;
  }
}

}  // namespace
}  // namespace daydream
