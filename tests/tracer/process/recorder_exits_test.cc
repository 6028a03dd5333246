// Every way out of a program: what is in the file afterwards, and that the program ends as it
// would have without the recorder.
#include <signal.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracer/process/child.h"

namespace daydream::tracer {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Each launch leaves a call and a kernel.
void ExpectLaunches(const WrittenFile& file, size_t launches) {
  EXPECT_EQ(file.OfKind(pb::KIND_CALL).size(), launches);
  EXPECT_EQ(file.OfKind(pb::KIND_KERNEL).size(), launches);
}

void ExpectComplete(const Left& left, size_t launches, pb::Index::End end, int detail) {
  const WrittenFile file = OnlyFile(left);
  ExpectLaunches(file, launches);
  ASSERT_TRUE(file.index.has_value()) << left.err;
  EXPECT_TRUE(file.has_trailer);
  EXPECT_EQ(file.index->end(), end);
  EXPECT_EQ(file.index->end_detail(), detail);
  EXPECT_THAT(Messages(left), IsEmpty());
}

TEST(RecorderExits, TheCommandLineIsKeptWithoutItsValuesUnlessToldOtherwise) {
  for (const bool whole : {false, true}) {
    Session session(whole ? "command=whole" : "");
    const Left left = session.Run({"init", "launch=1", "sync", "print=hf_SECRET", "exit=0"});
    const pb::Header header = OnlyFile(left).header;
    const std::vector<std::string> argv(header.recording().argv().begin(),
                                        header.recording().argv().end());
    EXPECT_THAT(argv, Contains(HasSubstr("SECRET")).Times(whole ? 1 : 0));
    EXPECT_EQ(argv.size(), 6u) << "a word stands for each";
  }
}

TEST(RecorderExits, ReturnAndExitWriteEverythingAndKeepTheCode) {
  for (const char* end : {"return=7", "exit=7"}) {
    Session session;
    const Left left = session.Run({"init", "launch=1000", "sync", end});
    EXPECT_TRUE(left.exited);
    EXPECT_EQ(left.code, 7);
    ASSERT_EQ(left.files.size(), 1u);
    const WrittenFile file = OnlyFile(left);
    EXPECT_EQ(file.OfKind(pb::KIND_KERNEL).size(), 1000u);
    EXPECT_EQ(file.OfKind(pb::KIND_CALL).size(), 1001u);
    ASSERT_TRUE(file.index.has_value());
    EXPECT_EQ(file.index->end(), pb::Index::END_EXIT);
    EXPECT_EQ(file.index->end_detail(), 7);
  }
}

TEST(RecorderExits, QuickExitWritesEverything) {
  Session session;
  const Left left = session.Run({"init", "launch=100", "quick_exit=5"});
  EXPECT_EQ(left.code, 5);
  ExpectComplete(left, 100, pb::Index::END_EXIT, 0);
}

TEST(RecorderExits, UnderscoreExitKeepsWhatWasFlushed) {
  Session session;
  const Left left = session.Run({"init", "launch=100", "sleep=400", "launch=10", "_exit=9"});
  EXPECT_EQ(left.code, 9);
  const Count count = CountRows(left.files.at(0));
  EXPECT_GE(count[pb::KIND_KERNEL], 100u);
  EXPECT_FALSE(count.has_index);
}

TEST(RecorderExits, CrashesKeepWhatWasFlushedAndTheirSignal) {
  const std::map<std::string, int> crashes = {
      {"throw", SIGABRT}, {"abort", SIGABRT}, {"segv", SIGSEGV}, {"raise=9", SIGKILL}};
  for (const auto& [crash, signal] : crashes) {
    Session session;
    const Left left = session.Run({"init", "launch=100", "sleep=400", crash});
    EXPECT_FALSE(left.exited);
    EXPECT_EQ(left.code, signal) << crash;
    ASSERT_EQ(left.files.size(), 1u);
    EXPECT_EQ(CountRows(left.files[0])[pb::KIND_KERNEL], 100u) << crash;
  }
}

TEST(RecorderExits, SignalsWithTheDefaultActionWriteEverythingAndStillKill) {
  for (int signal : {SIGTERM, SIGHUP, SIGINT}) {
    Session session;
    Child child(session, {"init", "launch=100", "print=ready", "pause"});
    ASSERT_TRUE(child.WaitForLine("ready"));
    child.Kill(signal);
    const Left left = child.Wait();
    EXPECT_FALSE(left.exited);
    EXPECT_EQ(left.code, signal);
    ExpectComplete(left, 100, pb::Index::END_SIGNAL, signal);
  }
}

TEST(RecorderExits, AProgramThatRaisesASignalAndReturnsIsKilledByTheSignal) {
  for (const char* way : {"return=0", "exit=0", "quick_exit=0"}) {
    Session session;
    const Left left = session.Run({"init", "launch=100", "raise=15", way});
    EXPECT_FALSE(left.exited) << way;
    EXPECT_EQ(left.code, SIGTERM) << way;
    ExpectComplete(left, 100, pb::Index::END_SIGNAL, SIGTERM);
  }
}

TEST(RecorderExits, AHandlerOfTheProgramIsLeftAlone) {
  // Installed before the recorder starts, and after it.
  const std::vector<std::vector<std::string>> orders = {
      {"handle_term", "init", "launch=100", "print=ready", "pause"},
      {"init", "launch=100", "handle_term", "print=ready", "pause"}};
  for (const auto& arguments : orders) {
    Session session;
    Child child(session, arguments);
    ASSERT_TRUE(child.WaitForLine("ready"));
    child.Kill(SIGTERM);
    const Left left = child.Wait();
    EXPECT_TRUE(left.exited);
    EXPECT_EQ(left.code, 3);
    ExpectComplete(left, 100, pb::Index::END_EXIT, 3);
  }
}

TEST(RecorderExits, TheSecondSignalKillsAtOnce) {
  Session session("", "hang_forced=1");
  Child child(session, {"init", "launch=100", "print=ready", "pause"});
  ASSERT_TRUE(child.WaitForLine("ready"));
  const auto begin = std::chrono::steady_clock::now();
  // A busy machine may make one of two signals that are close together.
  for (int i = 0; i < 10; ++i) {
    child.Kill(SIGTERM);
    usleep(200'000);
  }
  const Left left = child.Wait();
  EXPECT_EQ(left.code, SIGTERM);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(RecorderExits, AHangInCuptiEndsAfterTenSeconds) {
  Session session("", "hang_forced=1");
  const auto begin = std::chrono::steady_clock::now();
  const Left left = session.Run({"init", "launch=100", "sleep=400", "exit=4"});
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(left.code, 4);
  EXPECT_LT(took, std::chrono::seconds(13));
  EXPECT_THAT(left.err, HasSubstr("could not be finished within 10 s"));
  EXPECT_EQ(CountRows(left.files.at(0))[pb::KIND_KERNEL], 100u);
}

TEST(RecorderExits, AHangInTheStartOfCuptiEndsAfterTenSecondsToo) {
  Session session("", "hang_subscribe=1");
  Child child(session, {"init", "exit=4"});
  ASSERT_TRUE(child.WaitForLine("hangs"));
  child.Kill(SIGTERM);
  const auto begin = std::chrono::steady_clock::now();
  const Left left = child.Wait();
  EXPECT_EQ(left.code, SIGTERM);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_THAT(left.err, HasSubstr("CUPTI did not return from its start"));
}

TEST(RecorderExits, ExecKeepsTheFirstFileAndMakesASecond) {
  Session session;
  const Left left =
      session.Run({"init", "launch=100", "sleep=400", "exec", "init", "launch=50", "exit=6"});
  EXPECT_EQ(left.code, 6);
  ASSERT_EQ(left.files.size(), 2u);
  std::vector<uint64_t> kernels;
  for (const std::string& file : left.files) {
    kernels.push_back(CountRows(file)[pb::KIND_KERNEL]);
  }
  EXPECT_THAT(kernels, testing::UnorderedElementsAre(100u, 50u));
}

TEST(RecorderExits, FinishClosesTheFileAndTheProgramGoesOn) {
  Session session;
  const Left left =
      session.Run({"init", "launch=100", "finish", "launch=100", "range=x", "exit=0"});
  ExpectComplete(left, 100, pb::Index::END_EXIT, 0);
}

TEST(RecorderExits, WorkThatIsNotDoneHasNoEnd) {
  Session session;
  session.environment["FAKE_CUDA_KERNEL_NS"] = "100000000";
  const Left left = session.Run({"init", "launch=3", "exit=0"});
  const WrittenFile file = OnlyFile(left);
  ExpectLaunches(file, 3);
  EXPECT_GE(file.loss.invalid_time(), 2u);
}

TEST(RecorderExits, AProgramThatUsesNoGpuLeavesNothing) {
  for (const char* facts : {"finish", "return=0", "exit=0"}) {
    Session session;
    const Left left = session.Run({facts});
    EXPECT_THAT(left.files, IsEmpty());
    EXPECT_THAT(left.err, IsEmpty());
  }
}

TEST(RecorderExits, MarksAloneAreWorthAFile) {
  Session session;
  const Left left = session.Run({"step=0", "begin=conv1", "end", "step=1", "exit=0"});
  const WrittenFile file = OnlyFile(left);
  const std::vector<WrittenRow> marks = file.OfKind(pb::KIND_MARK);
  ASSERT_EQ(marks.size(), 2u) << "the window of step 0 is closed: only steps are taken";
  EXPECT_EQ(marks[1].value, 1u);
}

TEST(RecorderExits, WithoutASessionNothingHappens) {
  Session session;
  session.environment["DAYDREAM_SESSION_DIR"] = "";
  const Left left = session.Run({"init", "launch=100", "step=0", "exit=2"});
  EXPECT_EQ(left.code, 2);
  EXPECT_THAT(left.files, IsEmpty());
  EXPECT_THAT(left.err, IsEmpty());
}

}  // namespace
}  // namespace daydream::tracer
