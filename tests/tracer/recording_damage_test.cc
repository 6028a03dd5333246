// Recordings on a disk that fails, and files that are damaged, read by our own importer.
#include "tracer/recording.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracer/recording_fixture.h"
#include "trace/importer.h"

namespace daydream::tracer {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// ---- A disk that fails ----

// What the next calls do; -1 = as the system does.
struct Disk {
  int writes_until_error = -1;  // so many succeed, then errors
  int error = 0;
  int errors = -1;               // so many, then success again; -1 = for ever
  size_t most_bytes = SIZE_MAX;  // of one write
  int interrupts = 0;            // EINTR before the next writes
  int truncate_error = 0, sync_error = 0;
  int writes = 0;
};
Disk disk;

ssize_t FlakyWrite(int file, const void* bytes, size_t size) {
  ++disk.writes;
  if (disk.interrupts > 0) {
    --disk.interrupts;
    errno = EINTR;
    return -1;
  }
  if (disk.writes_until_error == 0 && disk.errors != 0) {
    if (disk.errors > 0) --disk.errors;
    errno = disk.error;
    return -1;
  }
  if (disk.writes_until_error > 0) --disk.writes_until_error;
  return write(file, bytes, std::min(size, disk.most_bytes));
}

const FileCalls kFlakyCalls = {.open = SystemFileCalls().open,
                               .write = FlakyWrite,
                               .truncate =
                                   [](int file, off_t size) {
                                     errno = disk.truncate_error;
                                     return disk.truncate_error != 0 ? -1 : ftruncate(file, size);
                                   },
                               .reserve = [](int, off_t, off_t) { return EOPNOTSUPP; },
                               .sync =
                                   [](int file) {
                                     errno = disk.sync_error;
                                     return disk.sync_error != 0 ? -1 : fsync(file);
                                   },
                               .close = close};

class FlakyDiskTest : public RecordingTest {
 protected:
  void SetUp() override {
    RecordingTest::SetUp();
    disk = {};
  }
};

TEST_F(FlakyDiskTest, OneChunkIsOneWrite) {
  Recording recording(kFlakyCalls);
  Open(recording);
  AddLaunches(recording, 0, 100);
  recording.Flush();  // the names of other tests, too
  disk.writes = 0;
  AddLaunches(recording, 0, 100);
  EXPECT_EQ(disk.writes, 0);
  recording.Flush();
  EXPECT_EQ(disk.writes, 1);
}

TEST_F(FlakyDiskTest, InterruptedAndShortWritesAreContinued) {
  Recording recording(kFlakyCalls);
  disk.interrupts = 3;
  disk.most_bytes = 7;
  Open(recording);
  AddLaunches(recording, 0, 50);
  EXPECT_EQ(recording.Close(RecordingEnd::kExit, 0), 0);
  EXPECT_THAT(Read().rows, SizeIs(100));
  EXPECT_TRUE(Read().has_trailer);
}

TEST_F(FlakyDiskTest, AFullDiskLosesRowsButNotTheFile) {
  for (const int error : {ENOSPC, EIO, EDQUOT, EPIPE}) {
    disk = {};
    Recording recording(kFlakyCalls);
    unlink(Path().c_str());
    Open(recording);
    AddLaunches(recording, 0, 5);
    ASSERT_EQ(recording.Flush(), 0);
    disk = {.writes_until_error = 0, .error = error, .errors = 2};
    AddLaunches(recording, 5, 5);
    EXPECT_EQ(recording.Flush(), error);
    AddLaunches(recording, 10, 5);
    EXPECT_EQ(recording.Flush(), error);
    EXPECT_EQ(recording.first_error(), error);
    EXPECT_EQ(recording.losses().not_written, 20u);
    // Room again.
    AddLaunches(recording, 15, 5);
    EXPECT_EQ(recording.Flush(), 0);
    EXPECT_EQ(recording.Close(RecordingEnd::kExit, 0), 0);
    const WrittenFile file = Read();
    EXPECT_THAT(file.rows, SizeIs(20));
    EXPECT_EQ(file.loss.not_written(), 20u);
    EXPECT_EQ(file.index->rows(), 20u);
    EXPECT_EQ(recording.rows(), 40u);
  }
}

TEST_F(FlakyDiskTest, NamesOfALostChunkAreNotLost) {
  Recording recording(kFlakyCalls);
  Open(recording);
  ActivityBuffer buffer;
  AddLaunch(buffer, 0, "kernel_of_a_lost_chunk");
  recording.AddBuffer(buffer.data(), buffer.size());
  disk = {.writes_until_error = 0, .error = ENOSPC, .errors = 1};
  EXPECT_EQ(recording.Flush(), ENOSPC);
  recording.AddBuffer(buffer.data(), buffer.size());
  EXPECT_EQ(recording.Close(RecordingEnd::kExit, 0), 0);
  EXPECT_EQ(Read().OfKind(pb::KIND_KERNEL).at(0).name, "kernel_of_a_lost_chunk");
}

// Half of a chunk is written, then the disk is full.
TEST_F(FlakyDiskTest, HalfAChunkIsTakenBack) {
  for (const bool can_truncate : {true, false}) {
    disk = {};
    unlink(Path().c_str());
    Recording recording(kFlakyCalls);
    Open(recording);
    AddLaunches(recording, 0, 50);
    ASSERT_EQ(recording.Flush(), 0);
    const size_t whole = FileBytes(Path()).size();
    disk = {.writes_until_error = 1, .error = ENOSPC, .errors = 1, .most_bytes = 100};
    disk.truncate_error = can_truncate ? 0 : EIO;
    AddLaunches(recording, 50, 50);
    EXPECT_EQ(recording.Flush(), ENOSPC);
    EXPECT_EQ(FileBytes(Path()).size(), can_truncate ? whole : whole + 100);
    disk = {};
    AddLaunches(recording, 100, 50);
    EXPECT_EQ(recording.Close(RecordingEnd::kExit, 0), 0);
    // Our importer finds what is whole behind the damage.
    const auto trace = ImportFile(Path());
    ASSERT_TRUE(trace.ok()) << Message(trace.status());
    EXPECT_EQ((*trace)->rows(), 200u);
  }
}

TEST_F(FlakyDiskTest, AFileThatCannotBeBegunIsNotLeftBehind) {
  disk = {.writes_until_error = 1, .error = ENOSPC};
  Recording recording(kFlakyCalls);
  EXPECT_EQ(recording.Open(Path().c_str(), SomeFacts()), ENOSPC);
  EXPECT_FALSE(recording.is_open());
  EXPECT_FALSE(std::filesystem::exists(Path()));
  disk = {};
  EXPECT_EQ(recording.Open(Path().c_str(), SomeFacts()), 0);
}

TEST_F(FlakyDiskTest, AFailedSyncIsReported) {
  Recording recording(kFlakyCalls);
  Open(recording);
  disk.sync_error = EIO;
  EXPECT_EQ(recording.Close(RecordingEnd::kExit, 0), EIO);
  EXPECT_TRUE(Read().has_trailer);
}

// ---- Read by our own importer ----

class ImportTest : public RecordingTest {
 protected:
  // A file with three chunks of ten rows; the kernels of each have a name of their own.
  std::string MakeFile() {
    Recording recording;
    Open(recording);
    const char* const kNames[] = {"kernel_a", "kernel_b", "kernel_c"};
    for (uint32_t chunk = 0; chunk < 3; ++chunk) {
      ActivityBuffer buffer;
      for (uint32_t i = 0; i < 5; ++i) AddLaunch(buffer, chunk * 5 + i, kNames[chunk]);
      recording.AddBuffer(buffer.data(), buffer.size());
      EXPECT_EQ(recording.Flush(), 0);
    }
    EXPECT_EQ(recording.Close(RecordingEnd::kExit, 0), 0);
    return FileBytes(Path());
  }
  absl::StatusOr<std::shared_ptr<const Trace>> Import(std::string_view bytes) {
    return ImportBytes(bytes, "damaged.ddtrace");
  }
};

TEST_F(ImportTest, TheWholeFileBecomesATrace) {
  const auto trace = Import(MakeFile());
  ASSERT_TRUE(trace.ok()) << Message(trace.status());
  EXPECT_EQ((*trace)->rows(), 30u);
  std::set<std::string_view> names;
  size_t kernels = 0;
  for (size_t row = 0; row < (*trace)->rows(); ++row) {
    names.insert((*trace)->EventName(row));
    if ((*trace)->kind[row] != EventKind::kKernel) continue;
    ++kernels;
    EXPECT_EQ((*trace)->duration[row].ns, 3000);
    EXPECT_NE((*trace)->correlation[row], 0u);
    EXPECT_EQ((*trace)->kernels[(*trace)->detail[row]].block[0], 256u);
  }
  EXPECT_EQ(kernels, 15u);
  EXPECT_THAT(names, ElementsAre("cudaLaunchKernel", "kernel_a", "kernel_b", "kernel_c"));
  EXPECT_EQ((*trace)->lanes.size(), 2u);
}

TEST_F(ImportTest, CutAnywhereEveryWholeChunkIsRead) {
  const std::string bytes = MakeFile();
  // Where the chunks with rows end. Names of other tests may fill chunks without any.
  std::vector<size_t> ends;
  const WrittenFile file = ReadWritten(bytes);
  for (const pb::ChunkRef& ref : file.index->chunks()) {
    if (ref.rows() > 0) ends.push_back(ref.offset() + kDdtraceHeaderSize + ref.stored());
  }
  ASSERT_THAT(ends, SizeIs(3));
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    size_t whole = 0;
    for (const size_t end : ends) whole += end <= cut;
    const auto trace = Import(std::string_view(bytes).substr(0, cut));
    if (whole > 0) {
      ASSERT_TRUE(trace.ok()) << cut << ": " << Message(trace.status());
      ASSERT_EQ((*trace)->rows(), whole * 10) << cut;
    }
  }
}

TEST_F(ImportTest, OneFlippedByteCostsAtMostItsChunk) {
  std::string bytes = MakeFile();
  size_t read = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= 0x20;
    const auto trace = Import(bytes);
    bytes[i] ^= 0x20;
    if (i < kDdtraceMagic.size()) continue;  // then it is another kind of file
    ASSERT_TRUE(trace.ok()) << i << ": " << Message(trace.status());
    ++read;
    // Rows of the chunk itself, and, when it was the first, of the definitions it had.
    size_t lost = 0;
    for (const ImportCount& count : (*trace)->provenance.counts) {
      if (!count.repair && count.what != "damaged bytes" && count.what != "lost chunks") {
        lost += count.count;
      }
    }
    ASSERT_GE((*trace)->rows() + lost, 30u) << i;
  }
  EXPECT_EQ(read, bytes.size() - kDdtraceMagic.size());
}

}  // namespace
}  // namespace daydream::tracer
