// Disks that are full, slow or forbidden, and what the injected library needs and exports.
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracer/process/child.h"
#include "trace/importer.h"

namespace daydream::tracer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RecorderDisk, AFolderThatCannotBeWrittenStopsTheRecorderOnly) {
  Session session;
  session.environment["DAYDREAM_SESSION_DIR"] = "/proc";
  const Left left = session.Run({"init", "launch=100", "step=1", "sync", "exit=5"});
  EXPECT_EQ(left.code, 5);
  EXPECT_THAT(Messages(left), ElementsAre(HasSubstr("nothing is recorded")));
}

TEST(RecorderDisk, AFullDiskKeepsWhatFitsAndCountsTheRest) {
  if (kSanitized) GTEST_SKIP() << "nothing can be loaded before a sanitizer";
  Session session("flush_ms=10");
  session.environment["LD_PRELOAD"] = DAYDREAM_BAD_DISK;
  session.environment["BAD_DISK_ROOM"] = "20000";
  const Left left = session.Run({"init", "threads=2x100000", "sync", "exit=5"});
  EXPECT_EQ(left.code, 5);
  EXPECT_THAT(left.err, HasSubstr("No space left on device"));
  EXPECT_TRUE(ImportFile(left.files.at(0)).ok());
  const Count count = CountRows(left.files[0]);
  EXPECT_LT(count[pb::KIND_KERNEL], 200'000u);
}

// What is in the file and what is counted are all there was; the reason is the disk.
void ExpectTrueLoss(const Left& left) {
  const Count count = CountRows(left.files.at(0));
  ASSERT_TRUE(count.has_index) << left.err;
  const uint64_t kept = count[pb::KIND_KERNEL] + count[pb::KIND_CALL] + count[pb::KIND_SYNC];
  const uint64_t lost = count.index.loss().not_written();
  EXPECT_GT(lost, 100'000u);
  // 200 000 launches with their kernels, two calls that synchronize and two syncs.
  EXPECT_NEAR(static_cast<double>(kept + lost), 400'004.0, 4.0);
  EXPECT_EQ(count.index.loss().write_error(), static_cast<uint32_t>(ENOSPC));
  EXPECT_EQ(count.index.loss().writer_backpressure(), 0u);
  EXPECT_THAT(left.err, HasSubstr(std::to_string(lost) + " events could not be written"));
  const auto trace = ImportFile(left.files[0]);
  ASSERT_TRUE(trace.ok());
  for (const ImportCount& c : (*trace)->provenance.counts) {
    if (c.what != "events that could not be written") continue;
    EXPECT_EQ(c.count, lost);
    EXPECT_THAT(c.reason, HasSubstr("No space left on device"));
    return;
  }
  ADD_FAILURE() << "the trace does not say what is lost";
}

TEST(RecorderDisk, AFullDiskSaysOneTrueNumberAndTheCause) {
  if (kSanitized) GTEST_SKIP() << "nothing can be loaded before a sanitizer";
  Session session("flush_ms=10");
  session.environment["LD_PRELOAD"] = DAYDREAM_BAD_DISK;
  session.environment["BAD_DISK_ROOM"] = "60000";
  ExpectTrueLoss(session.Run({"init", "threads=2x100000", "exit=5"}));
}

TEST(RecorderDisk, AHeaderThatCannotBeWrittenLeavesItsReason) {
  if (kSanitized) GTEST_SKIP() << "nothing can be loaded before a sanitizer";
  Session session("flush_ms=10");
  session.environment["LD_PRELOAD"] = DAYDREAM_BAD_DISK;
  session.environment["BAD_DISK_ROOM"] = "10";
  const Left left = session.Run({"init", "launch=10", "sync", "exit=5"});
  EXPECT_EQ(left.code, 5);
  EXPECT_THAT(Messages(left), ElementsAre(HasSubstr("No space left on device; nothing is")));
  EXPECT_THAT(left.files, IsEmpty());
  std::vector<std::string> endings;
  for (const auto& entry : std::filesystem::directory_iterator(session.folder())) {
    endings.push_back(entry.path().extension());
  }
  EXPECT_THAT(endings, ElementsAre(".errno28"));
}

TEST(RecorderDisk, AProgramThatOutlivesItsSessionRecordsNothingAndSaysNothing) {
  Session session;
  session.environment["DAYDREAM_SESSION_DIR"] = session.scratch("gone");
  const Left left = session.Run({"init", "launch=100", "step=1", "sync", "exit=5"});
  EXPECT_EQ(left.code, 5);
  EXPECT_THAT(Messages(left), IsEmpty());
}

// `daydream trace` takes its folder away while a program that it started goes on.
TEST(RecorderDisk, AProgramThatGoesOnOutlivesItsSessionWithoutItsRecording) {
  Session session("flush_ms=10");
  Child child(session, {"init", "launch=100", "sync", "print=ready", "pause"});
  ASSERT_TRUE(child.WaitForLine("ready"));
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto waits = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return std::chrono::steady_clock::now() < patience;
  };
  while (session.Files().empty() && waits()) {
  }
  ASSERT_EQ(session.Files().size(), 1u);
  const std::string name = std::filesystem::path(session.Files()[0]).filename();
  std::filesystem::rename(session.folder(), session.scratch("kept"));
  const std::string kept = session.scratch("kept") + "/" + name;
  while (!CountRows(kept).has_index && waits()) {
  }
  const Count count = CountRows(kept);
  ASSERT_TRUE(count.has_index) << "the recording goes on";
  EXPECT_EQ(count.index.end(), pb::Index::END_DETACH);
  EXPECT_EQ(count[pb::KIND_KERNEL], 100u);
  child.Kill(SIGKILL);
}

TEST(RecorderDisk, AFileSizeLimitDoesNotKillTheProgram) {
  Session session("flush_ms=10");
  const Left left = session.Run({"limit_file=8192", "init", "launch=200000", "sync", "exit=5"});
  EXPECT_EQ(left.code, 5);
  EXPECT_THAT(left.err, HasSubstr("File too large"));
  EXPECT_TRUE(ImportFile(left.files.at(0)).ok());
}

int64_t MaxResidentKb(const Left& left) {
  size_t at = left.out.find("resident ");
  return at == std::string::npos ? -1 : atoll(left.out.c_str() + at + 9);
}

TEST(RecorderDisk, AStalledDiskNeitherStopsTheProgramNorEatsItsMemory) {
  if (kSanitized) GTEST_SKIP() << "nothing can be loaded before a sanitizer";
  // A full pool is 32 MiB; the records of 800 000 launches are 200 MB.
  Session session("flush_ms=10;pool_mb=32;buffer_mb=1");
  session.environment["LD_PRELOAD"] = DAYDREAM_BAD_DISK;
  session.environment["BAD_DISK_STALL_MS"] = "3000";
  session.environment["FAKE_CUDA_KERNEL_NS"] = "100";
  const Left left = session.Run({"init", "threads=4x200000", "resident", "exit=5"});
  EXPECT_EQ(left.code, 5);
  EXPECT_GT(MaxResidentKb(left), 0);
  EXPECT_LT(MaxResidentKb(left), 200'000) << left.out;
  const Count count = CountRows(left.files.at(0));
  ASSERT_TRUE(count.has_index) << left.err;
  const uint64_t kept = count[pb::KIND_KERNEL] + count[pb::KIND_CALL] + count[pb::KIND_SYNC];
  EXPECT_GT(count.loss.cupti_dropped(), 0u);
  // 800 000 kernels and calls, 4 calls that synchronize and 4 syncs: all are in the file or
  // counted (device, context and streams are records, too).
  EXPECT_NEAR(static_cast<double>(kept + count.loss.cupti_dropped()), 1'600'008.0, 8.0);
  EXPECT_THAT(left.err, HasSubstr("events were lost"));
  EXPECT_THAT(left.err, HasSubstr("found no memory"));
}

TEST(RecorderDisk, AStalledDiskAndAnOldCuptiThatTakesNoRefusal) {
  if (kSanitized) GTEST_SKIP() << "nothing can be loaded before a sanitizer";
  Session session("flush_ms=10;pool_mb=16;buffer_mb=1", "version=26");
  session.environment["LD_PRELOAD"] = DAYDREAM_BAD_DISK;
  session.environment["BAD_DISK_STALL_MS"] = "2000";
  session.environment["FAKE_CUDA_KERNEL_NS"] = "100";
  const Left left = session.Run({"init", "threads=4x100000", "resident", "exit=5"});
  EXPECT_EQ(left.code, 5) << left.err;
  EXPECT_LT(MaxResidentKb(left), 200'000) << left.out;
  EXPECT_GT(CountRows(left.files.at(0)).loss.no_buffer(), 0u);
}

TEST(RecorderDisk, FourThreadsLoseNothing) {
  // A million launches each are two million records each; less under a sanitizer.
  const uint64_t launches = kSanitized ? 20'000 : 1'000'000;
  Session session;
  session.environment["FAKE_CUDA_KERNEL_NS"] = "100";
  const Left left =
      session.Run({"init", "threads=4x" + std::to_string(launches), "sync", "exit=0"});
  EXPECT_THAT(Messages(left), IsEmpty());
  const Count count = CountRows(left.files.at(0));
  EXPECT_EQ(count[pb::KIND_KERNEL], 4 * launches);
  EXPECT_EQ(count[pb::KIND_CALL], 4 * launches + 5);
  ASSERT_TRUE(count.has_index);
  struct stat info {};
  stat(left.files[0].c_str(), &info);
  // 5 bytes an event are promised.
  EXPECT_LT(static_cast<double>(info.st_size), 5.0 * static_cast<double>(count.index.rows()));
}

std::string Output(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), n);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

TEST(InjectedLibrary, ExportsSixNames) {
  std::set<std::string> names;
  std::istringstream lines(Output(std::string("nm -D --defined-only ") + DAYDREAM_INJECT_LIBRARY));
  for (std::string line; std::getline(lines, line);) names.insert(line.substr(line.rfind(' ') + 1));
  EXPECT_EQ(names, (std::set<std::string>{"InitializeInjection", "InitializeInjectionNvtx2",
                                          "InitializeInjectionNvtxExtension", "daydream_finish",
                                          "daydream_mark", "daydream_name"}));
}

// "GLIBC_2.34" -> 34, for all names that a library takes from the C library.
int NewestGlibc(const std::string& library) {
  std::istringstream lines(Output("objdump -T " + library));
  int newest = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find("GLIBC_2.");
    if (at == line.npos || line.find("*UND*") == line.npos) continue;
    const int version = atoi(line.c_str() + at + 8);
    EXPECT_LE(version, 28) << line;
    newest = std::max(newest, version);
  }
  return newest;
}

TEST(InjectedLibrary, NeedsNoGlibcNewerThan228) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer brings its own";
  EXPECT_GT(NewestGlibc(DAYDREAM_INJECT_LIBRARY), 0);
#ifdef DAYDREAM_MARKS_LIBRARY
  EXPECT_GT(NewestGlibc(DAYDREAM_MARKS_LIBRARY), 0);  // what Python calls
#endif
}

TEST(InjectedLibrary, NeedsTheCLibraryAndTheLoaderOnly) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer is a library, too";
  std::istringstream lines(Output(std::string("readelf -d ") + DAYDREAM_INJECT_LIBRARY));
  // Before glibc 2.34 threads and dlopen were libraries of their own.
  const std::set<std::string> allowed = {
      "libc.so.6",       "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
      "libpthread.so.0", "libdl.so.2",           "libm.so.6"};
  for (std::string line; std::getline(lines, line);) {
    if (line.find("(NEEDED)") == std::string::npos) continue;
    const size_t open = line.find('['), close = line.find(']');
    EXPECT_TRUE(allowed.contains(line.substr(open + 1, close - open - 1))) << line;
  }
}

}  // namespace
}  // namespace daydream::tracer
