// What a command about ranks together cannot do, or finds nothing to do for, is said.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/cli_fixture.h"

namespace daydream {
namespace {

using testing::HasSubstr;

const std::string kExample = DAYDREAM_SOURCE_DIR "/examples/two-ranks-synthetic";

using CliRanksParts = CliFixture;

// Not ignored, as if these were the steps that were asked for.
TEST_F(CliRanksParts, StepsAreNotChosenForRanksTogether) {
  for (const char* command : {"ranks ", "advise ", "scale --fabric nvlink4 "}) {
    const CliResult r = Run(command + kExample + " --steps 1");
    EXPECT_EQ(r.exit, 2) << command;
    EXPECT_THAT(r.err, HasSubstr("--steps is about one rank")) << command;
  }
  EXPECT_EQ(Run("whatif " + kExample + " --steps 1").exit, 0);
}

// As for one rank: what a part of a combination finds nothing to do is said, and exits with 4.
TEST_F(CliRanksParts, PartsThatDoNothingAndOtherBatchesAreSaid) {
  const CliResult r =
      Run("whatif " + kExample + " --opt 'batch(x2),straggler(7,host=0.5)' --format json");
  EXPECT_EQ(r.exit, 4);
  EXPECT_THAT(r.err, HasSubstr("straggler(rank=7,host=0.5x) finds nothing to change here"));
  EXPECT_THAT(r.err, HasSubstr("a step handles 2 times the examples"));
  const auto left = nlohmann::json::parse(r.out)["scenarios"][1]["left_out"];
  EXPECT_THAT(left, testing::ElementsAre("straggler(rank=7,host=0.5x)"));
  EXPECT_EQ(Run("whatif " + kExample + " --opt 'batch(x2),straggler(0,host=0.5)'").exit, 0);
}

}  // namespace
}  // namespace daydream
