// `daydream calibrate` as users type it: a table of measured operations becomes a GPU that gpu()
// takes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/cli_fixture.h"

namespace daydream {
namespace {

using testing::HasSubstr;

constexpr char kHead[] = "op,b,m,k,n,h,bytes,dtype,us\n";

class CliCalibrate : public CliFixture {};

TEST_F(CliCalibrate, ATableBecomesAGpuThatAWhatIfTakes) {
  Write("ops.csv", std::string(kHead) +
                       "linear,1,4096,4096,4096,0,0,fp16,2400\n"
                       "memory,0,0,0,0,0,268435456,fp16,1200\n");
  const std::string description = Path("mine.textproto");
  CliResult r = Run(fmt::format("calibrate {} --gpu L4 -o {}", Path("ops.csv"), description));
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(ReadAll(description), HasSubstr("daydream calibrate: 2 operations of ops.csv"));
  r = Run(fmt::format("whatif {} --opt 'gpu({})' --no-interval", kExampleTrace, description));
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("from A100-SXM4-40GB to L4"));
}

TEST_F(CliCalibrate, FasterThanTheDataSheetIsNotUsed) {
  // 268 MB in 100 us are 2.7 TB/s; the memory of an L4 is rated at 0.3.
  Write("ops.csv", std::string(kHead) +
                       "memory,0,0,0,0,0,268435456,fp16,1200\n"
                       "memory,0,0,0,0,0,268435456,fp16,100\n");
  EXPECT_THAT(Run(fmt::format("calibrate {} --gpu L4", Path("ops.csv"))).err,
              HasSubstr("1 operation not used: faster than the data sheet"));
}

TEST_F(CliCalibrate, AMistakeIsShownInItsLine) {
  Write("ops.csv", std::string(kHead) + "linear,1,x,4096,4096,0,0,fp16,2400\n");
  const CliResult r = Run(fmt::format("calibrate {} --gpu L4", Path("ops.csv")));
  EXPECT_EQ(r.exit, 2);
  EXPECT_THAT(r.err, HasSubstr("E0805"));
  EXPECT_THAT(r.err, HasSubstr("ops.csv:2:10"));
}

}  // namespace
}  // namespace daydream
