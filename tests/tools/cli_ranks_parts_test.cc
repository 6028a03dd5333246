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
  for (const char* command : {"ranks ", "whatif ", "advise ", "scale --fabric nvlink4 "}) {
    const CliResult r = Run(command + kExample + " --steps 1");
    EXPECT_EQ(r.exit, 2) << command;
    EXPECT_THAT(r.err, HasSubstr("--steps is about one rank")) << command;
  }
}

// The answer stays that of all ranks, or there is none: no flag has one rank answer in their place.
TEST_F(CliRanksParts, AFlagOfOneRankIsRefusedForAFolder) {
  const std::string all = "whatif " + kExample + " --opt amp ", one = " --rank 1 ";
  for (const std::string flag : {"--by layer", "--timeline x.json", "--true-step 8ms", "--steps 0",
                                 "--samples 8", "--measured x.json", "--learned x.txt"}) {
    const CliResult r = Run(all + flag);
    EXPECT_EQ(r.exit, 2) << flag << r.out;
    EXPECT_THAT(
        r.err, HasSubstr("error[E0104]: " + flag.substr(0, flag.find(' ')) + " is about one rank"));
    EXPECT_THAT(r.err, HasSubstr("--rank R"));
  }
  for (const std::string flag : {"--by layer", "--true-step 8ms", "--steps 1", "--samples 8"}) {
    EXPECT_EQ(Run("whatif " + kExample + one + flag).exit, 0) << flag;
  }
  for (const std::string flag : {"--true-step 8ms", "--steps 0", "--samples 8"}) {
    EXPECT_EQ(Run("sweep " + kExample + " --opt 'bandwidth({x2,x4})' " + flag).exit, 2) << flag;
  }
  for (const std::string asked : {"--peers joint", "--on 'rank 1'"}) {
    EXPECT_EQ(Run(all + asked).exit, 0) << asked;
    for (const std::string other : {"--rank 1", "--by layer", "--steps 0"}) {
      EXPECT_THAT(Run(all + asked + " " + other).err, HasSubstr("E0104")) << asked << other;
    }
    EXPECT_THAT(Run("whatif " + kExample + "/rank1.json --opt amp " + asked).err,
                HasSubstr("is about ranks that are played together"));
  }
  EXPECT_THAT(Run(all + "--on 'rank 1' --peers none").err,
              HasSubstr("--on does not go with --peers none"));
}

TEST_F(CliRanksParts, AGateIsAboutTheRanksTogether) {
  const std::string ask = "whatif " + kExample + " --opt 'straggler(1,gpu=0.8)' ";
  const auto json = nlohmann::json::parse(
      Run(ask + "--format json --fail-if 'step > 7.7ms' --fail-if 'step > 7.9ms'").out);
  EXPECT_NEAR(json["scenarios"][1]["step_ms"].get<double>(), 7.8, 0.01);
  ASSERT_EQ(json["gates"].size(), 2u);
  EXPECT_EQ(json["gates"][0]["holds"], true);
  EXPECT_EQ(json["gates"][1]["holds"], false);
  for (const std::string gate :
       {"step > 7.7ms", "speedup < 1.2", "saved < 1.3ms", "step > -15%", "replay_error < 1%"}) {
    const CliResult r = Run(ask + "--fail-if '" + gate + "'");
    EXPECT_EQ(r.exit, 5) << gate << r.err;
    EXPECT_THAT(r.err, HasSubstr("error[E0604]: --fail-if '" + gate + "' holds for straggler"));
  }
  for (const std::string gate : {"step > 7.9ms", "speedup < 1.1", "saved < 1.1ms"}) {
    EXPECT_EQ(Run(ask + "--fail-if '" + gate + "'").exit, 0) << gate;
  }
  EXPECT_EQ(Run("whatif " + kExample + " --fail-if 'step > 8.9ms'").exit, 5);
  EXPECT_THAT(Run(ask + "--fail-if 'steps > 1'").err, HasSubstr("E0108"));
  EXPECT_THAT(Run(ask + "--format md --fail-if 'step > 7.7ms'").out,
              HasSubstr("straggler(rank=1,gpu=0.8x): 7.80 ms, 1.15x"));
  // Of what cannot be predicted nothing is told.
  const CliResult none = Run("whatif " + kExample +
                             " --opt 'straggler(9,gpu=0.5)' --format json --fail-if 'step > 1ms'");
  EXPECT_EQ(none.exit, 4);
  EXPECT_TRUE(nlohmann::json::parse(none.out)["gates"][0]["holds"].is_null());
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
