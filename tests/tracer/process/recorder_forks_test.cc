// Forks: the parent's file is complete, the child neither writes into it nor hangs, and a child
// that is the first to use CUDA is recorded itself.
#include <signal.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracer/process/child.h"

namespace daydream::tracer {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<uint64_t> KernelsOf(const Left& left) {
  std::vector<uint64_t> kernels;
  for (const std::string& path : left.files) {
    const Count count = CountRows(path);
    EXPECT_TRUE(count.has_index) << path;
    kernels.push_back(count[pb::KIND_KERNEL]);
  }
  return kernels;
}

TEST(RecorderForks, AChildOfARecordedProcessIsSilent) {
  for (const char* child : {"exit=0", "_exit=0", "launch=50,exit=0", "init,launch=50,return=0",
                            "step=1,range=x,end_range,exit=0"}) {
    Session session;
    const Left left = session.Run(
        {"init", "launch=100", std::string("fork=") + child, "launch=100", "sync", "exit=3"});
    EXPECT_EQ(left.code, 3) << child;
    EXPECT_THAT(KernelsOf(left), UnorderedElementsAre(200u)) << child;
    EXPECT_THAT(Messages(left), IsEmpty());
  }
}

TEST(RecorderForks, AChildThatIsForkedByAThreadIsSilentToo) {
  Session session;
  const Left left =
      session.Run({"init", "launch=100", "fork_thread=launch=10,exit=0", "sync", "exit=0"});
  EXPECT_THAT(KernelsOf(left), UnorderedElementsAre(100u));
}

TEST(RecorderForks, AChildThatOpensCudaFirstHasAFileOfItsOwn) {
  Session session;
  const Left left =
      session.Run({"fork=init,launch=50,sync,exit=0", "init", "launch=100", "sync", "exit=0"});
  EXPECT_THAT(KernelsOf(left), UnorderedElementsAre(50u, 100u));
}

TEST(RecorderForks, SoDoesAChildOfAParentThatOnlyMarks) {
  Session session("capture=none");
  const Left left = session.Run(
      {"range=main", "fork=range=lost,init,range=kept,launch=50,sync", "end_range", "exit=0"});
  ASSERT_EQ(left.files.size(), 2u);
  EXPECT_THAT(KernelsOf(left), UnorderedElementsAre(0u, 50u));
  for (const std::string& path : left.files) {
    for (const WrittenRow& mark : ReadWritten(FileBytes(path)).OfKind(pb::KIND_MARK)) {
      EXPECT_NE(mark.name, "lost") << "marks before the child opens CUDA leave nothing";
    }
  }
}

TEST(RecorderForks, AChildDoesNotWriteIntoTheFileThatItsParentHasOpen) {
  Session session("capture=none;flush_ms=10");
  const Left left = session.Run(
      {"range=main", "sleep=200", "fork=init,range=kept,launch=50,sync", "end_range", "exit=0"});
  EXPECT_THAT(KernelsOf(left), UnorderedElementsAre(0u, 50u));
}

TEST(RecorderForks, AChildOfAParentWhoseWindowIsOverHasAWindowOfItsOwn) {
  Session session("warmup=1;steps=1;labels=0");
  const Left left = session.Run(
      {"step=1", "step=2", "step=3", "fork=init,launch=50,sync,exit=0", "step=4", "exit=0"});
  EXPECT_THAT(KernelsOf(left), UnorderedElementsAre(0u, 50u));
}

TEST(RecorderForks, AForkWithinCuptiOnTheThreadThatSwitchesItDoesNotHang) {
  // As the driver forks for nvidia-modprobe.
  for (const char* function : {"Subscribe", "ActivityEnable", "ActivityDisable"}) {
    Session session("capture=nvtx:roi", std::string("fork_in=") + function);
    const Left left =
        session.Run({"init", "range=roi", "launch=20", "sync", "end_range", "exit=3"});
    EXPECT_EQ(left.code, 3) << function;
    EXPECT_THAT(KernelsOf(left), UnorderedElementsAre(20u)) << function;
  }
}

TEST(RecorderForks, SigtermEndsAChildAtOnce) {
  // The parent has our handler; a child has no thread for it.
  Session session;
  const Left left = session.Run({"init", "launch=10", "fork_die=15", "exit=0"});
  EXPECT_THAT(left.out, HasSubstr("child ended by signal 15"));
  EXPECT_THAT(KernelsOf(left), UnorderedElementsAre(10u));
}

TEST(RecorderForks, AStormOfForksWhileThreadsLaunchLosesNothing) {
  Session session("flush_ms=1");
  const Left left = session.Run({"init", "storm=4x200", "sync", "exit=0"});
  EXPECT_EQ(left.code, 0);
  // Four threads launch 5000 kernels each while 200 children come and go.
  EXPECT_THAT(KernelsOf(left), UnorderedElementsAre(20'000u));
}

TEST(RecorderForks, TwoProgramsOfOneSessionHaveTwoFiles) {
  Session session;
  Child first(session, {"init", "launch=10", "sync", "exit=0"});
  Child second(session, {"init", "launch=20", "sync", "exit=0"});
  first.Wait();
  const Left left = second.Wait();
  EXPECT_THAT(KernelsOf(left), UnorderedElementsAre(10u, 20u));
  for (const std::string& path : left.files) {
    const WrittenFile file = ReadWritten(FileBytes(path));
    EXPECT_EQ(file.header.recording().session_id(),
              std::string("\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17", 16));
  }
}

}  // namespace
}  // namespace daydream::tracer
