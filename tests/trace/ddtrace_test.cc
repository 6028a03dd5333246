#include "trace/ddtrace/writer.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trace/trace_equal.h"
#include "trace/ddtrace/format.h"
#include "trace/importer.h"

namespace daydream {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const Trace> Built(TraceBuilder& builder) {
  auto trace = builder.Build();
  EXPECT_TRUE(trace.ok()) << Message(trace.status());
  return *trace;
}

void AddStep(TraceBuilder& b, LaneId thread, LaneId stream, int64_t begin, uint32_t step) {
  StringPool& names = b.names();
  const uint32_t collective = b.AddCollective({.name = names.Intern("allreduce"),
                                               .dtype = names.Intern("Float"),
                                               .process_group = NameId::None(),
                                               .elements_in = 1 << 20,
                                               .elements_out = 1 << 20,
                                               .group_size = 8});
  const auto at = [&](int64_t start, int64_t duration, LaneId lane, std::string_view name,
                      EventKind kind, uint32_t correlation = 0,
                      uint32_t detail = Id<void>::kNoneValue) {
    b.AddEvent({.start = Instant{begin + start},
                .duration = Duration{duration},
                .lane = lane,
                .name = names.Intern(name),
                .kind = kind,
                .correlation = correlation,
                .detail = detail});
  };
  const uint32_t c = step * 10 + 1;
  at(0, 900, thread, fmt::format("ProfilerStep#{}", step), EventKind::kAnnotation);
  at(0, 900, thread, "nn.Module: Net_0", EventKind::kFrame);
  at(10, 300, thread, "aten::conv2d", EventKind::kOp, 0,
     b.AddOp({.sequence = step,
              .shapes = names.Intern("[[32, 3, 224, 224], [64, 3, 7, 7]]"),
              .types = names.Intern("[\"float\", \"float\"]")}));
  at(20, 30, thread, "ConvolutionBackward0", EventKind::kOp, 0,
     b.AddOp({.sequence = step, .forward_thread = 1, .collective = collective}));
  at(20, 30, thread, "aten::empty", EventKind::kOp);
  at(60, 12, thread, "cudaLaunchKernel", EventKind::kCall, c);
  at(80, 12, thread, "cudaMemcpyAsync", EventKind::kCall, c + 1);
  at(100, 250, stream, "conv_kernel<float, 4>", EventKind::kKernel, c,
     b.AddKernel({.grid = {100, 2, 3},
                  .block = {256, 1, 1},
                  .registers_per_thread = 168,
                  .shared_memory_bytes = 49152}));
  at(100, 250, stream, "in_a_graph", EventKind::kKernel, c,
     b.AddKernel(
         {.grid = {1, 1, 1}, .block = {32, 1, 1}, .graph_node = uint64_t{4000000000000} + step}));
  at(360, 0, stream, "no detail", EventKind::kKernel);
  at(370, 40, stream, "ncclKernel", EventKind::kKernel, c + 3,
     b.AddKernel({.grid = {2, 1, 1}, .block = {512, 1, 1}, .collective = collective}));
  at(420, 77, stream, "Memcpy HtoD (Pinned -> Device)", EventKind::kMemcpy, c + 1,
     b.AddCopy({.bytes = 154140672, .from = Memory::kPinned, .to = Memory::kDevice}));
  at(500, 3, stream, "Memset (Device)", EventKind::kMemset, c + 2, b.AddCopy({.bytes = 4096}));
  at(510, 5, stream, "Stream Wait Event", EventKind::kSync, c + 4,
     b.AddSync({.kind = SyncKind::kStreamWaitEvent,
                .stream = 7,
                .wait_on_stream = 20,
                .record_correlation = c + 2,
                .event = 31}));
  at(520, 6, stream, "Context Sync", EventKind::kSync, 0, b.AddSync({.kind = SyncKind::kContext}));
}

// Has every kind of event, detail and absence.
std::shared_ptr<const Trace> SmallTrace(int steps = 3) {
  TraceBuilder b;
  b.SetRank(3, 16);
  b.SetClockBase(1700000000000000000);
  b.AddDevice({.id = 0,
               .name = "NVIDIA A100-SXM4-40GB",
               .memory_bytes = uint64_t{40} << 30,
               .compute_major = 8,
               .multiprocessors = 108,
               .warp_size = 32,
               .max_threads_per_multiprocessor = 2048,
               .registers_per_multiprocessor = 65536,
               .shared_memory_per_multiprocessor = 167936});
  b.AddDevice({.id = 1});
  b.AddSoftware("CUDA runtime", "12.4");
  const LaneId thread = b.AddLane(LaneKind::kThread, 77, 78, -1);
  b.NameLane(thread, "thread 78 (python)");
  b.provenance().cost = {.steps_with = 8,
                         .steps_without = 4,
                         .with = Duration::Us(1001),
                         .without = Duration::Us(1000),
                         .with_spread = Duration::Us(3),
                         .without_spread = Duration::Us(2),
                         .drift = Duration::Us(1),
                         .call = RecordingCost::Each{3000.5, 70},
                         .layer_mark = RecordingCost::Each{800, 30.5},
                         .hidden = Duration::Us(9)};
  const LaneId stream = b.AddLane(LaneKind::kStream, 0, 7, 0);
  b.SetStreamType(stream, StreamType::kNonBlocking);
  b.AddLane(LaneKind::kChannel, 0, 1, -1);
  for (int step = 0; step < steps; ++step) AddStep(b, thread, stream, 5000 + 1000 * step, step);
  b.provenance().importer = "kineto";
  b.provenance().format = "PyTorch profiler JSON";
  b.provenance().source = "run\xff.json";  // not UTF-8
  b.provenance().synthetic = true;
  b.AddAllocation({.at = Instant{20}, .lane = LaneId(0), .device = 1, .bytes = 512});
  b.AddAllocation({.at = Instant{10}, .bytes = -512, .allocated = 0, .reserved = 1 << 20});
  b.provenance().input_events = b.events() + 10;
  b.Count("flow events", "joined by correlation id", false, 7, 1234);
  b.Count("kernels without a stream", "no lane", true, 3);
  b.Count("overlaps", "cut", false, 2, -1, false);
  return Built(b);
}

std::string Bytes(const Trace& trace, size_t rows_per_chunk = 65536) {
  auto bytes = SerializeDdtrace(trace, {.rows_per_chunk = rows_per_chunk});
  EXPECT_TRUE(bytes.ok()) << Message(bytes.status());
  return *bytes;
}

absl::StatusOr<std::shared_ptr<const Trace>> Read(std::string_view bytes, bool strict = false) {
  return ImportBytes(bytes, "test.ddtrace", {.strict = strict, .max_text_bytes = 1 << 28});
}

// Rows and counts together are the input, whatever happened.
void ExpectNothingVanished(const Trace& trace) {
  uint64_t sum = trace.rows();
  for (const ImportCount& c : trace.provenance.counts) sum += c.repair ? 0 : c.count;
  EXPECT_EQ(sum, trace.provenance.input_events);
}

uint64_t CountOf(const Trace& trace, std::string_view what) {
  for (const ImportCount& c : trace.provenance.counts) {
    if (c.what == what) return c.count;
  }
  return 0;
}

// Offsets of the chunk headers in `bytes`.
std::vector<size_t> ChunkOffsets(std::string_view bytes) {
  std::vector<size_t> offsets;
  for (size_t at = kDdtraceMagic.size(); auto h = DecodeChunkHeader(bytes.substr(at));) {
    offsets.push_back(at);
    at += kDdtraceHeaderSize + h->stored_size;
  }
  return offsets;
}

uint32_t Seed() {
  const uint32_t seed = std::random_device()();
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  return seed;
}

TEST(DdtraceFormat, ChecksumIsCrc32c) { EXPECT_EQ(Crc32c("123456789"), 0xE3069283u); }

TEST(DdtraceFormat, ChunkHeaderHasTheDocumentedLayout) {
  const auto bytes = EncodeChunkHeader({.type = 2,
                                        .codec = 1,
                                        .flags = 3,
                                        .sequence = 4,
                                        .raw_size = 5,
                                        .stored_size = 6,
                                        .first_ns = 7,
                                        .last_ns = 8,
                                        .payload_crc = 9});
  const std::string_view view(bytes.data(), bytes.size());
  EXPECT_EQ(view.size(), 44u);
  EXPECT_EQ(view.substr(0, 40),
            std::string_view("DDCK\2\1\3\0\4\0\0\0\5\0\0\0\6\0\0\0\7\0\0\0\0\0\0\0"
                             "\10\0\0\0\0\0\0\0\11\0\0\0",
                             40));
  EXPECT_EQ(DecodeChunkHeader(view)->stored_size, 6u);
}

TEST(Ddtrace, KeepsEveryColumnDetailAndCount) {
  const auto trace = SmallTrace();
  for (size_t rows_per_chunk : {1u, 2u, 5u, 65536u}) {
    const auto again = Read(Bytes(*trace, rows_per_chunk), /*strict=*/true);
    ASSERT_TRUE(again.ok()) << Message(again.status());
    EXPECT_EQ(TraceDifference(*trace, **again), "") << rows_per_chunk;
  }
}

TEST(Ddtrace, KeepsAnEmptyTrace) {
  TraceBuilder b;
  b.AddLane(LaneKind::kThread, 1, 2, -1);
  const auto trace = Built(b);
  const auto again = Read(Bytes(*trace), /*strict=*/true);
  ASSERT_TRUE(again.ok()) << Message(again.status());
  EXPECT_EQ(TraceDifference(*trace, **again), "");
}

TEST(Ddtrace, KeepsSeveralRanks) {
  TraceBuilder b;
  b.AddRank(0, 2);
  b.AddRank(1, 2);
  for (int rank : {0, 1}) {
    const LaneId lane = b.AddLane(LaneKind::kStream, 0, 7, 0, rank);
    b.AddEvent({.start = Instant{rank},
                .duration = Duration{5},
                .lane = lane,
                .name = b.names().Intern("k"),
                .kind = EventKind::kKernel});
  }
  const auto trace = Built(b);
  const auto again = Read(Bytes(*trace), /*strict=*/true);
  ASSERT_TRUE(again.ok()) << Message(again.status());
  EXPECT_EQ(TraceDifference(*trace, **again), "");
}

TEST(Ddtrace, EqualTracesGiveEqualBytes) {
  EXPECT_EQ(Bytes(*SmallTrace()), Bytes(*SmallTrace()));
  const std::string bytes = Bytes(*SmallTrace());
  EXPECT_EQ(Bytes(**Read(bytes)), bytes);
}

TEST(Ddtrace, IndexAndTrailerPointAtTheChunks) {
  const std::string bytes = Bytes(*SmallTrace(), 5);
  const auto index = DecodeTrailer(bytes);
  ASSERT_TRUE(index.has_value());
  const std::vector<size_t> offsets = ChunkOffsets(bytes);
  EXPECT_EQ(offsets.back(), *index);
  EXPECT_EQ(DecodeChunkHeader(std::string_view(bytes).substr(*index))->type, 3);
}

TEST(Ddtrace, AFileCutOffAnywhereLosesItsEndOnly) {
  const auto trace = SmallTrace(40);
  const std::string bytes = Bytes(*trace, 16);
  size_t rows_before = 0;
  // Behind the index only the trailer is missing, which no reader needs.
  for (size_t size = 0; size < bytes.size() - kDdtraceTrailerSize; size += 97) {
    const auto part = Read(std::string_view(bytes).substr(0, size));
    if (!part.ok()) {
      EXPECT_LT(size, 400u) << Message(part.status());
      continue;
    }
    EXPECT_GE((*part)->rows(), rows_before) << size;
    rows_before = (*part)->rows();
    ExpectNothingVanished(**part);
    EXPECT_EQ(CountOf(**part, "missing indexes"), 1u);
    EXPECT_FALSE(Read(std::string_view(bytes).substr(0, size), /*strict=*/true).ok());
  }
  EXPECT_GT(rows_before + 17, trace->rows());
}

TEST(Ddtrace, FlippedBytesAreNoticed) {
  const auto trace = SmallTrace(40);
  const std::string bytes = Bytes(*trace, 16);
  const uint32_t seed = Seed();
  std::mt19937 random(seed);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = bytes;
    const size_t at = random() % bytes.size();
    damaged[at] = static_cast<char>(damaged[at] ^ (1 + random() % 255));
    const auto part = Read(damaged);
    if (!part.ok()) {
      EXPECT_LT(at, kDdtraceMagic.size()) << "seed " << seed << " byte " << at;
      continue;
    }
    ExpectNothingVanished(**part);
    EXPECT_FALSE(Read(damaged, /*strict=*/true).ok()) << "seed " << seed << " byte " << at;
  }
}

TEST(Ddtrace, ALostChunkCostsItsRowsOnly) {
  const auto trace = SmallTrace(40);
  const std::string bytes = Bytes(*trace, 16);
  const std::vector<size_t> offsets = ChunkOffsets(bytes);
  ASSERT_GT(offsets.size(), 10u);
  // A chunk in the middle: its signatures were defined before.
  std::string damaged = bytes;
  damaged[offsets[20] + kDdtraceHeaderSize + 3] ^= 1;
  const auto part = Read(damaged);
  ASSERT_TRUE(part.ok()) << Message(part.status());
  EXPECT_LE(trace->rows() - (*part)->rows(), 32u);
  EXPECT_GE(trace->rows() - (*part)->rows(), 16u);
  EXPECT_EQ(CountOf(**part, "lost chunks"), 1u);
  EXPECT_EQ(CountOf(**part, "events in damaged chunks"), 16u);
  ExpectNothingVanished(**part);
  // The same with the chunk cut out.
  std::string shorter = bytes;
  shorter.erase(offsets[20], offsets[21] - offsets[20]);
  const auto cut = Read(shorter);
  ASSERT_TRUE(cut.ok()) << Message(cut.status());
  EXPECT_EQ((*cut)->rows(), (*part)->rows());
  EXPECT_EQ(CountOf(**cut, "events in damaged chunks"), 16u);
}

TEST(Ddtrace, RowsOfLostDefinitionsAreCountedAndOthersKeepTheirValues) {
  const auto trace = SmallTrace(40);
  const std::string bytes = Bytes(*trace, 16);
  const std::vector<size_t> offsets = ChunkOffsets(bytes);
  std::string damaged = bytes;
  damaged[offsets[1] + kDdtraceHeaderSize + 3] ^= 1;  // lanes and most signatures
  const auto part = Read(damaged);
  ASSERT_TRUE(part.ok()) << Message(part.status());
  EXPECT_GT(CountOf(**part, "events of a lost definition"), 0u);
  ExpectNothingVanished(**part);
}

TEST(Ddtrace, ChunksOfAnUnknownTypeAreSkippedAndCounted) {
  const auto trace = SmallTrace();
  std::string bytes = Bytes(*trace);
  ASSERT_EQ(ChunkOffsets(bytes).size(), 4u);  // header, events, allocations, index
  ChunkPacker packer;
  const auto chunk = packer.Pack({.type = 200, .flags = kDdtraceMayIgnore, .sequence = 4}, "hello");
  ASSERT_TRUE(chunk.ok());
  bytes.insert(bytes.size() - kDdtraceTrailerSize, *chunk);
  const auto again = Read(bytes, /*strict=*/true);
  ASSERT_TRUE(again.ok()) << Message(again.status());
  EXPECT_EQ((*again)->rows(), trace->rows());
  EXPECT_EQ(CountOf(**again, "chunks of an unknown type"), 1u);
}

TEST(Ddtrace, ANewerMajorVersionIsRefusedByName) {
  std::string bytes = Bytes(*SmallTrace());
  bytes[7] = '2';
  const auto status = Read(bytes).status();
  EXPECT_THAT(std::string(Message(status)), HasSubstr("cannot read"));
  EXPECT_THAT(DiagnosticOf(status).fix, HasSubstr("update"));
}

TEST(Ddtrace, AHugeClaimTakesNoMemory) {
  std::string bytes(kDdtraceMagic);
  for (uint32_t i = 0; i < 1000; ++i) {
    // A payload of RLE blocks would have to be larger for this size.
    const auto header = EncodeChunkHeader({.type = 2,
                                           .codec = 1,
                                           .sequence = i,
                                           .raw_size = kDdtraceMaxRaw,
                                           .stored_size = 4,
                                           .payload_crc = Crc32c("bomb")});
    bytes.append(header.data(), header.size());
    bytes += "bomb";
  }
  EXPECT_FALSE(Read(bytes).ok());
}

TEST(Ddtrace, ABombStopsAtTheLimit) {
  std::string bytes(kDdtraceMagic);
  const std::string zeros(kDdtraceMaxRaw, '\0');
  ChunkPacker packer;
  for (uint32_t i = 0; i < 64; ++i) bytes += *packer.Pack({.type = 99, .sequence = i}, zeros);
  const auto status = Read(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << Message(status);
}

class DdtraceFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("ddtrace_test.{}", static_cast<int>(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(std::string_view name) const { return folder_ / name; }
  std::filesystem::path folder_;
};

TEST_F(DdtraceFile, IsNotReplacedUnlessAsked) {
  const auto trace = SmallTrace();
  ASSERT_TRUE(WriteDdtrace(*trace, Path("a.ddtrace")).ok());
  EXPECT_EQ(WriteDdtrace(*trace, Path("a.ddtrace")).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(WriteDdtrace(*trace, Path("a.ddtrace"), {.overwrite = true}).ok());
  const auto again = ImportFile(Path("a.ddtrace"));
  ASSERT_TRUE(again.ok()) << Message(again.status());
  EXPECT_EQ(TraceDifference(*trace, **again), "");
  // Nothing but the file is left.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(DdtraceFile, SaysWhyItCannotBeWritten) {
  const auto status = WriteDdtrace(*SmallTrace(), Path("no/such/folder.ddtrace"));
  EXPECT_THAT(DiagnosticOf(status).why, HasSubstr("No such file"));
}

TEST_F(DdtraceFile, ReadsFromAStreamAsFromMemory) {
  const auto trace = SmallTrace(200);
  ASSERT_TRUE(WriteDdtrace(*trace, Path("a.ddtrace"), {.rows_per_chunk = 50}).ok());
  ASSERT_EQ(std::system(fmt::format("gzip -k {}", Path("a.ddtrace")).c_str()), 0);
  const auto again = ImportFile(Path("a.ddtrace.gz"));
  ASSERT_TRUE(again.ok()) << Message(again.status());
  EXPECT_EQ(TraceDifference(*trace, **again), "");
}

std::vector<std::string> RealTraces() {
  std::vector<std::string> files;
  const std::filesystem::path root = DAYDREAM_DATA_DIR "/traces";
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root, error)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".json.gz") || name.ends_with(".json")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(DdtraceRealTraces, ComeBackEqualInTenBytesAnEvent) {
  const std::vector<std::string> files = RealTraces();
  if (files.empty() || FindImporter("kineto") == nullptr) {
    GTEST_SKIP() << "no real traces beside the repository";
  }
  size_t all_bytes = 0, all_rows = 0;
  for (const std::string& file : files) {
    // Reading JSON is what takes long here; the largest files say nothing new.
    if (std::filesystem::file_size(file) > (4 << 20)) continue;
    const auto trace = ImportFile(file);
    if (!trace.ok()) continue;
    const std::string bytes = Bytes(**trace);
    const auto again = ImportBytes(bytes, "again", {.strict = true});
    ASSERT_TRUE(again.ok()) << file << Message(again.status());
    EXPECT_EQ(TraceDifference(**trace, **again), "") << file;
    all_bytes += bytes.size();
    all_rows += (*trace)->rows();
    if ((*trace)->rows() > 0) {
      fmt::print("{:6.2f} bytes/event, {:8} events, {}\n",
                 static_cast<double>(bytes.size()) / static_cast<double>((*trace)->rows()),
                 (*trace)->rows(), std::filesystem::path(file).filename().string());
    }
  }
  ASSERT_GT(all_rows, 0u);
  EXPECT_LE(static_cast<double>(all_bytes) / static_cast<double>(all_rows), 10.0);
}

}  // namespace
}  // namespace daydream
