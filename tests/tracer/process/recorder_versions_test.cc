// Every CUPTI of CUDA 12 and 13, by fakes with the functions and record sizes of each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracer/process/child.h"

namespace daydream::tracer {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// A program that does without the runtime, as Triton does, and with it.
const std::vector<std::string> kProgram = {"init",       "launch=10", "launch_ex=10", "rlaunch=10",
                                           "pipeline=5", "graph=4",   "copies=3",     "queries=20",
                                           "sync",       "exit=0"};

struct Recorded {
  WrittenFile file;
  std::vector<std::string> messages;
};

Recorded RunWith(const std::string& version, const std::string& faults = "") {
  Session session("", faults);
  const std::string folder = version == "13.0" ? "" : version + "/";
  session.environment["DAYDREAM_CUPTI"] =
      DAYDREAM_FAKE_CUDA "/" + folder + "libcupti.so." + version.substr(0, 2);
  const Left left = session.Run(kProgram);
  return {OnlyFile(left), Messages(left)};
}

std::map<std::string, int> Calls(const WrittenFile& file) {
  std::map<std::string, int> calls;
  for (const WrittenRow& row : file.OfKind(pb::KIND_CALL)) ++calls[row.name];
  return calls;
}

std::vector<std::string> Lacks(const WrittenFile& file) {
  std::vector<std::string> lacks;
  for (const auto& lack : file.header.recording().lacks()) lacks.push_back(lack.key());
  return lacks;
}

class CuptiVersion : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, CuptiVersion,
                         testing::Values("12.1", "12.4", "12.6", "12.8", "13.0", "13.4"));

TEST_P(CuptiVersion, TheSameIsRecorded) {
  const Recorded run = RunWith(GetParam());
  EXPECT_THAT(run.messages, IsEmpty());
  const WrittenFile& file = run.file;
  EXPECT_THAT(file.OfKind(pb::KIND_KERNEL), SizeIs(10 + 10 + 10 + 2 * 5 + 4));
  EXPECT_THAT(file.OfKind(pb::KIND_MEMCPY), SizeIs(6));
  EXPECT_THAT(file.OfKind(pb::KIND_MEMSET), SizeIs(3));
  EXPECT_THAT(file.OfKind(pb::KIND_EVENT_RECORD), SizeIs(6));
  std::map<std::string, int> calls = Calls(file);
  EXPECT_EQ(calls["cuLaunchKernelEx"], 10);
  EXPECT_EQ(calls["cudaLaunchKernel"], 10);
  EXPECT_EQ(calls["cuGraphLaunch"], 1);
  EXPECT_EQ(calls["cuStreamWaitEvent"], 5);
  // What says nothing is left out, whether CUPTI can be told or not.
  for (const char* name : {"cuEventQuery", "cuStreamCreate", "cudaGetDevice", "cuGraphCreate"}) {
    EXPECT_EQ(calls[name], 0) << name;
  }
  EXPECT_EQ(file.loss.unknown_kind(), 0u);
}

TEST_P(CuptiVersion, EveryKindThatIsReadIsRecorded) {
  const bool chosen = std::string(GetParam()) >= "12.6";
  EXPECT_THAT(
      RunWith(GetParam()).file.header.recording().enabled_kinds(),
      testing::ElementsAre("DEVICE", "CONTEXT", "STREAM", "CONCURRENT_KERNEL", "MEMCPY", "MEMCPY2",
                           "MEMSET", "RUNTIME", "SYNCHRONIZATION", "CUDA_EVENT", "OVERHEAD",
                           "INTERNAL_LAUNCH_API", chosen ? "DRIVER (selected calls)" : "DRIVER"));
}

TEST_P(CuptiVersion, TheHeaderSaysWhatItDoesNotTell) {
  const WrittenFile file = RunWith(GetParam()).file;
  const bool old = std::string(GetParam()) < "12.8";
  if (old) {
    EXPECT_THAT(Lacks(file), Contains("event ids"));
  } else {
    EXPECT_THAT(Lacks(file), IsEmpty());
  }
}

TEST(RecorderVersions, WithoutDriverCallsTheHeaderSaysSo) {
  const Recorded run = RunWith("12.1", "ActivityEnable:4=15");
  EXPECT_THAT(run.messages, testing::ElementsAre(testing::HasSubstr("refused to record DRIVER")));
  EXPECT_THAT(Lacks(run.file), Contains("driver calls"));
  EXPECT_THAT(Lacks(RunWith("12.1").file), Not(Contains("driver calls")));
}

}  // namespace
}  // namespace daydream::tracer
