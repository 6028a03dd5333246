// A file that a Recording writes, whole.
#include "tracer/recording.h"

#include <unistd.h>

#include <cerrno>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracer/recording_fixture.h"
#include "tracer/daydream_mark.h"

namespace daydream::tracer {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

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
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const auto with_it = open_files();
  recording.AbandonInChild();
  EXPECT_EQ(open_files(), with_it - 1);
  EXPECT_FALSE(recording.is_open());
  EXPECT_EQ(FileBytes(Path()), before);
  // It can record a file of its own.
  EXPECT_EQ(recording.Open((folder_ / "child").c_str(), SomeFacts()), 0);
  EXPECT_EQ(recording.Close(RecordingEnd::kExit, 0), 0);
  EXPECT_TRUE(ReadWritten(FileBytes(folder_ / "child")).has_trailer);
}

}  // namespace
}  // namespace daydream::tracer
