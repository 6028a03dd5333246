// Recordings with more events than a graph is built of.
#include <sys/resource.h>

#include <string>
#include <vector>

#include "tests/graph/trace_sketch.h"
#include "tests/tools/cli_fixture.h"
#include "trace/ddtrace/writer.h"
#include "trace/part/steps_to_ask.h"

namespace daydream {
namespace {

constexpr int kSteps = 1000, kOps = 200;  // 601,000 events

// Steps of 200 ops with a launch each, some 2 ms long, whose kernels run behind the host.
// `slow` is the place of one that takes a second longer.
std::shared_ptr<const Trace> LongRecording(int steps = kSteps, int slow = -1) {
  TraceSketch sketch;
  const LaneId thread = sketch.Thread(), stream = sketch.Stream();
  double at = 0;
  for (int s = 0; s < steps; ++s) {
    const double op = s == slow ? 5010 : 10 + 0.01 * (s * 7 % 13);  // us
    sketch.Mark(thread, "ProfilerStep#" + std::to_string(s), at, kOps * op);
    for (int k = 0; k < kOps; ++k, at += op) {
      sketch.Op(thread, "aten::mm", at, op - 1);
      sketch.Launch(thread, stream, "gemm" + std::to_string(k % 7), at + 1, 3, at + 6, 3);
    }
  }
  return sketch.Build();
}

class CliLong : public CliFixture {
 protected:
  static void SetUpTestSuite() { trace_ = LongRecording(); }
  static void TearDownTestSuite() { trace_.reset(); }
  void SetUp() override {
    CliFixture::SetUp();
    if (IsSkipped()) return;
    ASSERT_TRUE(WriteDdtrace(*trace_, Path("long.ddtrace")).ok());
  }
  // Peak of resident memory of `daydream WORDS`, in bytes.
  uint64_t Peak(const std::vector<std::string>& words) const {
    const pid_t pid = Start(words);
    rusage usage{};
    int status = 0;
    EXPECT_EQ(wait4(pid, &status, 0, &usage), pid);
    EXPECT_EQ(status, 0) << ReadAll(Path("err"));
    return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  }

  static std::shared_ptr<const Trace> trace_;
};
std::shared_ptr<const Trace> CliLong::trace_;

TEST_F(CliLong, SomeStepsStandForAllAndTheHeadSaysSo) {
  const CliResult r = Run("whatif " + Path("long.ddtrace"));
  EXPECT_EQ(r.exit, 0) << r.err;
  const std::string out = OneLine(r.out);
  EXPECT_NE(out.find(" of 1,000 steps"), std::string::npos) << r.out;
  EXPECT_NE(out.find("of 1000 steps stand for all of a long recording"), std::string::npos);
  EXPECT_NE(out.find("--steps all asks every step"), std::string::npos);
}

TEST_F(CliLong, EachCommandThatTellsOfAStepSaysSo) {
  for (const char* command : {"info", "summary", "summary --per-step", "causal",
                              "sweep --opt 'speedup(kind:gpu,1..3+1)' --no-interval"}) {
    const CliResult r = Run(std::string(command) + " " + Path("long.ddtrace") + " --format json");
    EXPECT_EQ(r.exit, 0) << command << r.err;
    EXPECT_NE(r.out.find("\"other_steps\""), std::string::npos) << command;
  }
  const std::string twice = Path("long.ddtrace") + " " + Path("long.ddtrace");
  EXPECT_NE(Run("diff " + twice).out.find("stand for all"), std::string::npos);
}

TEST_F(CliLong, StepsByNameArePlacesOfTheRecording) {
  const CliResult r = Run("summary --per-step --steps 700-702 " + Path("long.ddtrace"));
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_NE(r.out.find("ProfilerStep#700"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("ProfilerStep#702"), std::string::npos) << r.out;
  EXPECT_EQ(r.out.find("ProfilerStep#699"), std::string::npos) << r.out;
  EXPECT_EQ(r.out.find("stand for all"), std::string::npos) << "nobody chose these for all";
  EXPECT_EQ(Run("summary --steps 1000 " + Path("long.ddtrace")).exit, 4);
}

TEST_F(CliLong, AStepThatIsUnlikeTheOthersIsNamed) {
  ASSERT_TRUE(WriteDdtrace(*LongRecording(2 * kSteps, 750), Path("slow.ddtrace")).ok());
  const std::string out = OneLine(Run("whatif " + Path("slow.ddtrace")).out);
  EXPECT_NE(out.find("steps are uneven: ProfilerStep#750 takes 1002.0 ms"), std::string::npos)
      << out;
}

// docs/performance.md: bytes beside what the import takes, for each event of a part, on one thread
// and for each further one. They are of this recording: others have more tasks and edges an event.
TEST_F(CliLong, AnswersTakeNoMoreMemoryForALongerRecording) {
  constexpr uint64_t kForThread = 400;
  const uint64_t import = Peak({"import", Path("long.ddtrace"), "-o", Path("copy.ddtrace")});
  const auto expect_at_most = [&](uint64_t bytes, const std::string& command,
                                  const std::vector<std::string>& flags = {}, int threads = 1) {
    std::vector<std::string> words = {command, Path("long.ddtrace")};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--jobs", std::to_string(threads)});
    const uint64_t most = bytes + kForThread * static_cast<uint64_t>(threads - 1);
    EXPECT_LE(Peak(words), import + most * kLongRecording) << command << ", threads: " << threads;
  };
  expect_at_most(500, "whatif");
  expect_at_most(700, "causal");
  expect_at_most(2400, "whatif", {"--opt", "amp"});
  for (int threads : {1, 4}) {
    expect_at_most(900, "sweep", {"--opt", "speedup(kernel:.,1..2+0.01)"}, threads);
    expect_at_most(2400, "advise", {}, threads);
  }
}

// As many launches as before, in one step or in none.
std::shared_ptr<const Trace> WholeRecording(bool marked) {
  TraceSketch sketch;
  const LaneId thread = sketch.Thread(), stream = sketch.Stream();
  constexpr int kLaunches = 100'000;
  constexpr double kPace = 10;  // us
  if (marked) sketch.Mark(thread, "ProfilerStep#1", 0, kLaunches * kPace);
  for (int k = 0; k < kLaunches; ++k) {
    const double at = k * kPace;
    sketch.Op(thread, "aten::mm", at, kPace - 1);
    sketch.Launch(thread, stream, "gemm" + std::to_string(k % 7), at + 1, 3, at + 6, 3);
  }
  return sketch.Build();
}

// docs/performance.md: what is asked as a whole is played without copies of it, on one thread.
TEST_F(CliLong, WhatIsAskedAsAWholeIsHeldOnce) {
  for (const bool marked : {false, true}) {
    const auto trace = WholeRecording(marked);
    const std::string file = Path(marked ? "one.ddtrace" : "none.ddtrace");
    ASSERT_TRUE(WriteDdtrace(*trace, file).ok());
    const uint64_t import = Peak({"import", file, "-o", file + ".copy"});
    const auto expect_at_most = [&](uint64_t bytes, const char* command) {
      EXPECT_LE(Peak({command, file, "--jobs", "1"}), import + bytes * trace->rows())
          << command << (marked ? ", one step" : ", no step");
    };
    expect_at_most(320, "whatif");
    expect_at_most(400, "summary");
  }
}

}  // namespace
}  // namespace daydream
