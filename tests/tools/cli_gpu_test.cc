// Commands about other GPUs and shares of one, as users type them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/cli_fixture.h"
#include "tests/tools/small_trace.h"

namespace daydream {
namespace {

using testing::HasSubstr;

class CliGpu : public CliFixture {};

TEST_F(CliGpu, TwoLaunchBoundProgramsShareAGpu) {
  const CliResult r = Run(fmt::format("colocate {0} {0}", kExampleTrace));
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("steps/s together"));
  EXPECT_THAT(r.out, HasSubstr("together they do"));
  EXPECT_THAT(Run(fmt::format("colocate {0} {0} --policy space --format json", kExampleTrace)).out,
              HasSubstr("\"schema\": \"daydream.colocate/1\""));
  EXPECT_EQ(Run(fmt::format("colocate {}", kExampleTrace)).exit, 2);
  EXPECT_EQ(Run(fmt::format("colocate {0} {0} --policy spaec", kExampleTrace)).exit, 2);
}

TEST_F(CliGpu, TheKneeOfAStepIsAShareOfItsGpu) {
  const CliResult r = Run(fmt::format("summary {} --knee", kExampleTrace));
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("108 multiprocessors"));
  EXPECT_THAT(r.out, HasSubstr("enough for 5 % slower"));
  EXPECT_THAT(Run(fmt::format("summary {} --knee --format json", kExampleTrace)).out,
              HasSubstr("\"step_knee\""));
}

TEST_F(CliGpu, AnExplanationHasCausesAssumptionsAndTheTermsOfKernels) {
  const CliResult r = Run(fmt::format("explain 'gpu(H100),graphs' {}", kExampleTrace));
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("where the time goes"));
  EXPECT_THAT(r.out, HasSubstr("assumed: kernel time: "));
  EXPECT_THAT(r.out, HasSubstr("kernels with the most time"));
  EXPECT_THAT(r.out, HasSubstr("by "));
}

// Nothing but numbers says what it is: another GPU is predicted from the one that is named.
TEST_F(CliGpu, ARecordedVariantThatIsNotKnownIsTakenByItsNumbersAndSaysSo) {
  std::string trace = SmallTrace(2);
  constexpr std::string_view kKnown = R"("NVIDIA A100-SXM4-40GB")";
  trace.replace(trace.find(kKnown), kKnown.size(),
                R"("NVIDIA GeForce RTX 3090 Ti","totalGlobalMem":25438126080,"computeMajor":8,)"
                R"("computeMinor":6,"numSms":84)");
  Write("ti.json", trace);
  const CliResult r = Run("whatif " + Path("ti.json") + " --opt 'gpu(H100-PCIE-80GB)'");
  EXPECT_THAT(OneLine(r.out),
              HasSubstr("RTX 3090 Ti is no GPU that is known here: it is taken as"));
  EXPECT_THAT(OneLine(r.out), HasSubstr("confidence low: NVIDIA GeForce RTX 3090 Ti is taken as"));
  EXPECT_THAT(OneLine(r.out), HasSubstr("measured gpu(to=")) << "another GPU is in doubt";
  const CliResult named =
      Run("whatif " + Path("ti.json") + " --opt 'gpu(H100-PCIE-80GB,from=RTX3090)'");
  EXPECT_EQ(named.exit, 0) << named.err;
  EXPECT_THAT(named.err, HasSubstr("from RTX3090 to H100-PCIE-80GB"));
}

TEST_F(CliGpu, ShapesComeFromExecutionTracesOnly) {
  Write("et.json", "[1, 2, 3]");
  const CliResult r = Run(fmt::format("info {} --shapes {}", kExampleTrace, Path("et.json")));
  EXPECT_NE(r.exit, 0);
  EXPECT_THAT(r.err, HasSubstr("E0813"));
}

}  // namespace
}  // namespace daydream
