// What a file keeps of the command line: enough to know the program, nothing that may be a secret.
#include "tracer/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace daydream::tracer {
namespace {

using ::testing::ElementsAre;

TEST(Redacted, KeepsNamesOfProgramsAndOptionsAndPlainNumbers) {
  EXPECT_THAT(Redacted({"/usr/bin/python3.11", "-u", "/srv/ann/train.py", "--lr", "0.1",
                        "--batch=32", "--resume", "/srv/ann/run 7", "-j", "8", "--warm=-1e-3"}),
              ElementsAre("python3.11", "-u", "train.py", "--lr", "0.1", "--batch=32", "--resume",
                          "*", "-j", "8", "--warm=-1e-3"));
  EXPECT_THAT(Redacted({"python", "-m", "torch.distributed.run", "train.py"}),
              ElementsAre("python", "-m", "torch.distributed.run", "*"));
  EXPECT_THAT(Redacted({"./simulate", "input.dat", "3"}), ElementsAre("simulate", "*", "3"));
  EXPECT_THAT(Redacted({}), ElementsAre());
}

TEST(Redacted, KeepsNoSecret) {
  EXPECT_THAT(Redacted({"train", "--token", "hf_Abc", "--key=s3cret", "-pSECRET", "-x=SECRET",
                        "123456789012", "user:pass@host", "--pass word"}),
              ElementsAre("train", "--token", "*", "--key=*", "-p", "-x=*", "*", "*", "*"));
  EXPECT_THAT(Redacted({"python", "-c", "login('SECRET')", "SECRET"}),
              ElementsAre("python", "-c", "*", "*"));
}

}  // namespace
}  // namespace daydream::tracer
