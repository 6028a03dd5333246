// What recording costs each launch, found in a recording made with a fake CUPTI whose cost is
// known.
#include <algorithm>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/tools/trace_command_fixture.h"

namespace daydream {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A cost is known by the clock, so that a busy machine adds to it what it pleases: then a program
// is recorded again. No number of attempts helps a wrong sum.
constexpr int kAttempts = 6;

bool Near(const json& value, double expected, double share) {
  return value.is_number() && std::abs(value.get<double>() / expected - 1) <= share;
}

TEST_F(TraceCommand, AKnownCostOfALaunchIsFound) {
  // After the window GPU work is recorded for two more seconds: for the 40 steps behind it and the
  // sleep. Kernels are short, so that the program waits for none; and so are steps, or a busy
  // machine interrupts each.
  const std::string train = kProgram + " init train=92x10 sleep=3000 train=40x10";
  const std::string costs = " FAKE_CUDA_KERNEL_NS=100 FAKE_CUPTI='call_cost_us=40;work_cost_us=20'";
  json recording;
  bool found = false;
  for (int i = 0; i < kAttempts && !found; ++i) {
    Result r = Run("daydream trace -f -o run --warmup 40 --steps 12 " + train, kWithGpu + costs);
    ASSERT_EQ(r.exit, 0) << r.err;
    EXPECT_THAT(r.err, HasSubstr("cost of     a launch "));
    r = Run("daydream info run.ddtrace");
    EXPECT_THAT(r.out, HasSubstr("cost of     a launch "));
    r = Run("daydream info run.ddtrace --format json");
    recording = json::parse(r.out)["recording"];
    // A step has 11 calls, one of them waits.
    found = Near(recording["call_ns"], 40'000, 0.1) && Near(recording["gpu_work_ns"], 20'000, 0.1);
  }
  EXPECT_TRUE(found) << recording;
  EXPECT_LT(recording["call_error_ns"].get<double>(), 4'000) << recording;
  EXPECT_EQ(recording["hidden_ns"], 1000) << "ten kernels of 100 ns";
}

// A program whose host works 100 us before each of ten launches a step: recorded with a cost of its
// own, its replayed step is what it takes when nobody records it.
TEST_F(TraceCommand, TheReplayedStepIsThatOfTheProgramThatNobodyRecords) {
  const std::string train = kProgram + " init host=100 train=72x10 sleep=2500 train=20x10";
  const std::string costs = " FAKE_CUDA_KERNEL_NS=100 FAKE_CUPTI='call_cost_us=40;work_cost_us=20'";
  const std::string whatif =
      "daydream whatif run.ddtrace --opt free-gpu --max-replay-error 1000% --format json";
  json without;
  bool found = false;
  for (int i = 0; i < kAttempts && !found; ++i) {
    const Result r =
        Run("daydream trace -f -o run --warmup 30 --steps 12 " + train, kWithGpu + costs);
    ASSERT_EQ(r.exit, 0) << r.err;
    without = json::parse(Run(whatif).out);
    const json& cost = without["replay"]["recording_cost"];
    if (cost.is_null()) continue;
    // Medians: the mean holds steps that were interrupted. Ten launches and a wait are 11 calls of
    // 40 us and 10 kernels of 20 us.
    found =
        Near(without["scenarios"][0]["median_ms"], cost["not_recorded_ms"].get<double>(), 0.03) &&
        Near(cost["host_ns_per_step"], 640'000, 0.1);
  }
  EXPECT_TRUE(found) << without;

  const json with = json::parse(Run(whatif + " --keep-recording-cost").out);
  EXPECT_GT(with["scenarios"][0]["median_ms"].get<double>(),
            1.5 * without["scenarios"][0]["median_ms"].get<double>());
  EXPECT_FALSE(with["replay"].contains("recording_cost"));
  EXPECT_EQ(without["replay"]["measured_ms"], with["replay"]["measured_ms"]);
  EXPECT_NEAR(without["replay"]["error_pct"].get<double>(), 0, 1)
      << "the check is of the recording";

  // The mean step may be another than the others on a busy machine.
  for (const char* command : {"info", "summary --max-replay-error 1000%",
                              "whatif --max-replay-error 1000% --opt free-gpu"}) {
    const Result r = Run(fmt::format("daydream {} run.ddtrace", command));
    EXPECT_THAT(r.out, HasSubstr("recording cost ")) << command;
    EXPECT_THAT(r.out, HasSubstr("left out here")) << command;
  }
  const std::string exported = "daydream export run.ddtrace --to csv";
  EXPECT_NE(Run(exported).out, Run(exported + " --keep-recording-cost").out);
  const Result page =
      Run("daydream report run.ddtrace --max-replay-error 1000% -f -o page.html && cat page.html");
  EXPECT_THAT(page.out, HasSubstr("recording_cost"));
}

// Two windows of three steps, with detached steps between and after them.
TEST_F(TraceCommand, ShortWindowsWithDetachedStepsBetweenTellTheCost) {
  const std::string train =
      kProgram + " init host=50 train=40x10 sleep=3000 train=40x10 sleep=3000 train=20x10";
  const std::string costs = " FAKE_CUDA_KERNEL_NS=100 FAKE_CUPTI='call_cost_us=40;work_cost_us=20'";
  json info;
  bool found = false;
  for (int i = 0; i < kAttempts && !found; ++i) {
    const Result r =
        Run("daydream trace -f -o run --warmup 10 --steps 3 --windows 2 --every 40 " + train,
            kWithGpu + costs);
    ASSERT_EQ(r.exit, 0) << r.err;
    EXPECT_THAT(r.err, HasSubstr("3 steps recorded; others follow"));
    EXPECT_THAT(r.err, HasSubstr("6 steps recorded, recording has ended"));
    info = json::parse(Run("daydream info run.ddtrace --format json").out);
    const json& recording = info["recording"];
    // What lies between, some 15 ms, is no finding: no pause, no stall, no longer step. A step that
    // a busy machine interrupts may be one, and the GPU that stands in for one is no known card.
    const bool none = std::ranges::all_of(info["findings"], [](const json& f) {
      return f["kind"] == "other_gpu" || (f["kind"] == "unequal_steps" && f["ms"] < 5);
    });
    found = none && Near(recording["call_ns"], 40'000, 0.1) &&
            Near(recording["gpu_work_ns"], 20'000, 0.1);
  }
  EXPECT_TRUE(found) << info["recording"] << info["findings"];
  EXPECT_EQ(info["recording"]["steps_with"], 3 + 2 + 2) << "labels of C are in all steps";
  EXPECT_GT(info["recording"]["steps_without"], 20);
  EXPECT_EQ(info["steps"]["all"].size(), 3 + 3 + 1 + 3u) << "and what lies between";
  EXPECT_EQ(info["steps"]["measured"], 3 + 3 - 1 + 3 - 1) << "the first of each starts up";
}

}  // namespace
}  // namespace daydream
