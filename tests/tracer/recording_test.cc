// A file that a Recording writes: whole, damaged, on a disk that fails, read by our own importer.
#include "tracer/recording.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracer/activity_buffer.h"
#include "tests/tracer/written_file.h"
#include "trace/importer.h"
#include "tracer/daydream_mark.h"
#include "tracer/graph_nodes.h"
#include "tracer/marks.h"

namespace daydream::tracer {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr int64_t kOrigin = 1'000'000'000;

// One launch, its kernel, and a wait, `number` microseconds after the origin.
void AddLaunch(ActivityBuffer& buffer, uint32_t number, const char* name = "_Z3addPf") {
  const uint64_t t = kOrigin + number * 10'000ull;
  auto& call = buffer.Runtime();
  call.cbid = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
  call.start = t;
  call.end = t + 4000;
  call.threadId = 7;
  call.correlationId = number + 1;
  auto& kernel = buffer.Kernel();
  kernel.start = t + 6000;
  kernel.end = t + 9000;
  kernel.contextId = 1;
  kernel.streamId = 7;
  kernel.gridX = 80;
  kernel.gridY = kernel.gridZ = kernel.blockY = kernel.blockZ = 1;
  kernel.blockX = 256;
  kernel.correlationId = number + 1;
  kernel.name = name;
}

void AddLaunches(Recording& recording, uint32_t first, uint32_t count) {
  ActivityBuffer buffer;
  for (uint32_t i = 0; i < count; ++i) AddLaunch(buffer, first + i);
  recording.AddBuffer(buffer.data(), buffer.size());
}

RecordingFacts SomeFacts() {
  return {.clock_origin_ns = kOrigin,
          .pid = 7,
          .parent_pid = 3,
          .hostname = "node01",
          .boot_id = "boot",
          .session_id = "0123456789abcdef",
          .argv = {"python", "train.py", ""},
          .cupti_version = 130001,
          .cuda_driver_version = 13000,
          .cupti_path = "libcupti.so.13",
          .enabled_kinds = {"CONCURRENT_KERNEL", "RUNTIME"},
          .environment = {{"RANK", "3"}},
          .software = {{"PyTorch", "2.9"}},
          .rank = 3,
          .world_size = 8};
}

class RecordingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    DropMarks();
    TakeGraphNodes();
  }
  std::string Path() const { return folder_ / "a.ddtrace"; }
  void Open(Recording& recording) {
    ASSERT_EQ(recording.Open(Path().c_str(), SomeFacts()), 0);
    recording.SetCupti(HandMadeCupti());
  }
  WrittenFile Read() const { return ReadWritten(FileBytes(Path())); }

  ScratchFolder folder_;
};

TEST_F(RecordingTest, TheHeaderSaysWhatWasRecorded) {
  Recording recording;
  EXPECT_FALSE(recording.is_open());
  Open(recording);
  EXPECT_TRUE(recording.is_open());
  EXPECT_EQ(recording.Close(RecordingEnd::kSignal, 15), 0);
  EXPECT_FALSE(recording.is_open());
  const WrittenFile file = Read();
  EXPECT_EQ(file.header.format_minor(), 1u);
  EXPECT_EQ(file.header.clock(), pb::CLOCK_KIND_MONOTONIC);
  EXPECT_EQ(file.header.clock_origin_ns(), kOrigin);
  ASSERT_EQ(file.header.ranks_size(), 1);
  EXPECT_EQ(file.header.ranks(0).rank(), 3);
  EXPECT_EQ(file.header.ranks(0).world_size(), 8);
  EXPECT_FALSE(file.header.ranks(0).has_local_rank());
  const pb::Recording& process = file.header.recording();
  EXPECT_EQ(process.pid(), 7u);
  EXPECT_EQ(process.parent_pid(), 3u);
  EXPECT_EQ(process.hostname(), "node01");
  EXPECT_THAT(process.argv(), ElementsAre("python", "train.py", ""));
  EXPECT_EQ(process.session_id(), "0123456789abcdef");
  EXPECT_EQ(process.cupti_version(), 130001u);
  EXPECT_EQ(process.cuda_driver_version(), 13000u);
  EXPECT_THAT(process.enabled_kinds(), ElementsAre("CONCURRENT_KERNEL", "RUNTIME"));
  EXPECT_EQ(process.environment(0).key(), "RANK");
  EXPECT_EQ(process.software(0).value(), "2.9");
  EXPECT_TRUE(file.has_trailer);
  EXPECT_EQ(file.index->end(), pb::Index::END_SIGNAL);
  EXPECT_EQ(file.index->end_detail(), 15);
}

TEST_F(RecordingTest, AFileThatIsThereIsNotTouched) {
  Recording first, second;
  Open(first);
  EXPECT_EQ(second.Open(Path().c_str(), {}), EEXIST);
  EXPECT_FALSE(second.is_open());
  EXPECT_EQ(second.Open((folder_ / "b").c_str(), {}), 0);
  EXPECT_EQ(second.Open((folder_ / "no/such/folder").c_str(), {}), ENOENT);
}

TEST_F(RecordingTest, EveryFlushIsOnDisk) {
  Recording recording;
  Open(recording);
  AddLaunches(recording, 0, 10);
  EXPECT_THAT(Read().rows, SizeIs(0));
  EXPECT_EQ(recording.Flush(), 0);
  EXPECT_THAT(Read().rows, SizeIs(20));
  const uint64_t size = recording.bytes();
  EXPECT_EQ(size, FileBytes(Path()).size());
  EXPECT_EQ(recording.Flush(), 0);  // nothing new
  EXPECT_EQ(recording.bytes(), size);
  AddLaunches(recording, 10, 1);
  EXPECT_EQ(recording.Flush(), 0);
  EXPECT_THAT(Read().rows, SizeIs(22));
  EXPECT_FALSE(Read().has_trailer);
  EXPECT_EQ(recording.rows(), 22u);
}

TEST_F(RecordingTest, LargeBuffersBecomeChunksThatTheIndexLists) {
  Recording recording;
  Open(recording);
  AddLaunches(recording, 0, 10'000);
  EXPECT_EQ(recording.Close(RecordingEnd::kExit, 0), 0);
  const WrittenFile file = Read();
  EXPECT_THAT(file.rows, SizeIs(20'000));
  ASSERT_GE(file.chunks.size(), 5u);
  ASSERT_EQ(file.index->chunks_size(), static_cast<int>(file.chunks.size()));
  EXPECT_EQ(file.index->rows(), 20'000u);
  const std::string bytes = FileBytes(Path());
  uint64_t rows = 0;
  for (const pb::ChunkRef& ref : file.index->chunks()) {
    const auto header = DecodeChunkHeader(std::string_view(bytes).substr(ref.offset()));
    ASSERT_TRUE(header);
    EXPECT_EQ(ref.stored(), header->stored_size);
    EXPECT_EQ(ref.raw(), header->raw_size);
    EXPECT_EQ(ref.first_ns(), header->first_ns);
    EXPECT_EQ(ref.last_ns(), header->last_ns);
    EXPECT_EQ(ref.has_definitions(), (header->flags & kDdtraceHasDefinitions) != 0);
    rows += ref.rows();
  }
  EXPECT_EQ(rows, 20'000u);
  EXPECT_EQ(file.index->end_ns(), file.chunks.empty() ? 0 : (10'000 - 1) * 10'000 + 9000);
}

TEST_F(RecordingTest, MarksNotesAndNodesAreWritten) {
  Mark(DAYDREAM_STEP, 0, 0);
  Mark(DAYDREAM_LAYER_BEGIN, MarkName("net.conv1\tConv2d\t4096"), 0);
  Mark(DAYDREAM_RANGE_BEGIN | kMarkBytes, MarkName("nccl:AllReduce"), 4096);
  Mark(DAYDREAM_RANK, 0, int64_t{3} << 32 | 8);
  Mark(DAYDREAM_STEP, 0, -1);
  NoteGraphNode({.graph = 2, .node = 5, .created_ns = kOrigin + 4, .thread = 9});
  Recording recording;
  Open(recording);
  recording.AddMarks();
  recording.AddNote("cupti=absent", kOrigin + 3);
  recording.AddClock({.monotonic_ns = kOrigin + 5, .realtime_ns = 6, .uncertainty_ns = 7});
  EXPECT_EQ(recording.Close(RecordingEnd::kExit, 0), 0);
  const WrittenFile file = Read();
  ASSERT_THAT(file.rows, SizeIs(6));
  EXPECT_EQ(file.rows[0].signature.mark().kind(), pb::MARK_KIND_STEP);
  EXPECT_TRUE(file.rows[0].has(pb::COLUMN_VALUE));
  EXPECT_EQ(file.rows[0].lane.number(), gettid());
  EXPECT_EQ(file.rows[1].name, "net.conv1\tConv2d\t4096");
  EXPECT_EQ(file.rows[1].columns, 0u);
  EXPECT_EQ(file.rows[2].signature.mark().kind(), pb::MARK_KIND_RANGE_BEGIN);
  EXPECT_EQ(file.rows[2].bytes, 4096u);
  EXPECT_FALSE(file.rows[2].has(pb::COLUMN_VALUE));
  EXPECT_EQ(file.rows[3].value, uint64_t{3} << 32 | 8);
  EXPECT_EQ(static_cast<int64_t>(file.rows[4].value), -1);
  EXPECT_EQ(file.rows[5].name, "cupti=absent");
  EXPECT_EQ(file.rows[5].start, 3);
  ASSERT_THAT(file.graph_nodes, SizeIs(1));
  EXPECT_EQ(file.graph_nodes[0].created_ns(), 4);
  ASSERT_THAT(file.clocks, SizeIs(1));
  EXPECT_EQ(file.clocks[0].trace_ns(), 5);
  EXPECT_EQ(file.clocks[0].realtime_ns(), 6);
  // The name of this thread, as the kernel knows it.
  EXPECT_NE(file.strings.at(file.rows[0].lane.name()), "");
}

TEST_F(RecordingTest, MarksThatWereDroppedAreALossOfTheirFileOnly) {
  const auto overflow = [] {
    for (size_t i = 0; i < kMaxWaitingMarks + 1000; ++i) Mark(DAYDREAM_POINT, 0, 0);
  };
  overflow();
  DropMarks();
  Recording recording;
  Open(recording);
  recording.AddMarks();
  EXPECT_EQ(recording.losses(), Losses());
  overflow();
  recording.AddMarks();
  EXPECT_GE(recording.losses().writer_backpressure, 1000u);
  EXPECT_EQ(recording.Close(RecordingEnd::kExit, 0), 0);
  EXPECT_EQ(Read().loss.writer_backpressure(), recording.losses().writer_backpressure);
}

TEST_F(RecordingTest, NamesForManyChunksComeBeforeTheirRows) {
  // 64 KiB each, so that one chunk cannot hold them all.
  constexpr int kNames = 40;
  const std::string tail(60'000, 'x');
  for (int i = 0; i < kNames; ++i) {
    Mark(DAYDREAM_POINT, MarkName("many" + std::to_string(i) + tail), 0);
  }
  Recording recording;
  Open(recording);
  recording.AddMarks();
  EXPECT_EQ(recording.Close(RecordingEnd::kExit, 0), 0);
  const WrittenFile file = Read();
  ASSERT_THAT(file.rows, SizeIs(kNames));
  for (int i = 0; i < kNames; ++i) {
    EXPECT_TRUE(file.rows[i].name.starts_with("many" + std::to_string(i) + "x"));
  }
  EXPECT_GT(file.chunks.size(), 1u);
}

TEST_F(RecordingTest, AChildThatAbandonsItLeavesTheFileAsItIs) {
  Recording recording;
  Open(recording);
  AddLaunches(recording, 0, 3);
  const std::string before = FileBytes(Path());
  recording.AbandonInChild();
  EXPECT_FALSE(recording.is_open());
  EXPECT_EQ(FileBytes(Path()), before);
  // It can record a file of its own.
  EXPECT_EQ(recording.Open((folder_ / "child").c_str(), SomeFacts()), 0);
  EXPECT_EQ(recording.Close(RecordingEnd::kExit, 0), 0);
  EXPECT_TRUE(ReadWritten(FileBytes(folder_ / "child")).has_trailer);
}

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
    EXPECT_EQ(recording.losses().writer_backpressure, 20u);
    // Room again.
    AddLaunches(recording, 15, 5);
    EXPECT_EQ(recording.Flush(), 0);
    EXPECT_EQ(recording.Close(RecordingEnd::kExit, 0), 0);
    const WrittenFile file = Read();
    EXPECT_THAT(file.rows, SizeIs(20));
    EXPECT_EQ(file.loss.writer_backpressure(), 20u);
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
