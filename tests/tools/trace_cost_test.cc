// What recording costs each launch, found in a recording made with a fake CUPTI whose cost is
// known.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/tools/trace_command_fixture.h"

namespace daydream {
namespace {

using testing::HasSubstr;

TEST_F(TraceCommand, AKnownCostOfALaunchIsFound) {
  // After the window GPU work is recorded for two more seconds: for the 40 steps behind it and the
  // sleep. Kernels are short, so that the program waits for none; and so are steps, or a busy
  // machine interrupts each.
  const std::string train = kProgram + " init train=92x10 sleep=3000 train=40x10";
  const std::string costs = " FAKE_CUDA_KERNEL_NS=100 FAKE_CUPTI='call_cost_us=40;work_cost_us=20'";
  Result r = Run("daydream trace --warmup 40 --steps 12 " + train, kWithGpu + costs);
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("cost of     a launch "));

  r = Run("daydream info gpu_program-1.ddtrace");
  EXPECT_THAT(r.out, HasSubstr("cost of     a launch "));
  r = Run("daydream info gpu_program-1.ddtrace --format json");
  const auto recording = nlohmann::json::parse(r.out)["recording"];
  // A step has 11 calls, one of them waits.
  EXPECT_NEAR(recording["call_ns"].get<double>(), 40'000, 4'000) << recording;
  EXPECT_NEAR(recording["gpu_work_ns"].get<double>(), 20'000, 2'000) << recording;
  EXPECT_LT(recording["call_error_ns"].get<double>(), 4'000) << recording;
  EXPECT_EQ(recording["hidden_ns"], 1000) << "ten kernels of 100 ns";
}

}  // namespace
}  // namespace daydream
