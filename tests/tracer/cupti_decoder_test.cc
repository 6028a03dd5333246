// CUPTI's records through a Recording, read back by the generated code. Where a libcupti is found,
// it is the judge of the layouts; it walks buffers without a GPU and without a driver.
#include <dlfcn.h>

#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracer/every_kind.h"
#include "tests/tracer/written_file.h"
#include "tracer/recording.h"

namespace daydream::tracer {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr int64_t kOrigin = 1'000'000;

// Everything that a Recording makes of one buffer.
WrittenFile Record(ActivityBuffer& buffer, const CuptiDecoding& cupti, Losses* losses = nullptr) {
  ScratchFolder folder;
  Recording recording;
  EXPECT_EQ(recording.Open((folder / "a.ddtrace").c_str(), {.clock_origin_ns = kOrigin, .pid = 7}),
            0);
  recording.SetCupti(cupti);
  recording.AddBuffer(buffer.data(), buffer.size());
  if (losses != nullptr) *losses = recording.losses();
  EXPECT_EQ(recording.Close(RecordingEnd::kExit, 0), 0);
  return ReadWritten(FileBytes(folder / "a.ddtrace"));
}

constexpr int64_t kFileT = static_cast<int64_t>(kT) - kOrigin;

void ExpectKernel(const WrittenFile& file) {
  const WrittenRow k = file.OfKind(pb::KIND_KERNEL).at(0);
  EXPECT_EQ(k.name, "_Z3addPf");
  EXPECT_EQ(k.start, kFileT + 100);
  EXPECT_EQ(k.duration, 250u);
  EXPECT_EQ(k.lane.kind(), pb::LANE_KIND_STREAM);
  EXPECT_EQ(k.lane.device(), 1);
  EXPECT_EQ(k.lane.context(), 2u);
  EXPECT_EQ(k.lane.number(), 7);
  EXPECT_EQ(k.correlation, 99);
  EXPECT_EQ(k.graph_node, 0x100000002);
  EXPECT_EQ(k.graph, 4);
  const pb::Launch& launch = k.signature.launch();
  EXPECT_THAT(
      (std::vector{launch.grid_x(), launch.grid_y(), launch.grid_z(), launch.block_x(),
                   launch.block_y(), launch.block_z(), launch.registers_per_thread(),
                   launch.shared_memory_bytes(), launch.dynamic_shared_memory_bytes(),
                   launch.shared_memory_executed(), launch.local_memory_per_thread(),
                   launch.cluster_x(), launch.cluster_y(), launch.cluster_z(), launch.launch_type(),
                   launch.cache_config(), launch.max_active_clusters()}),
      ElementsAre(10, 11, 12, 32, 4, 2, 64, 1024, 24, 2048, 8, 2, 1, 1, 1, 3, 5));
}

void ExpectCopies(const WrittenFile& file) {
  const auto copies = file.OfKind(pb::KIND_MEMCPY);
  ASSERT_THAT(copies, SizeIs(2));
  EXPECT_EQ(copies[0].name, "Memcpy HtoD (Pageable -> Device)");
  EXPECT_EQ(copies[0].bytes, 1ull << 33);
  EXPECT_EQ(copies[0].signature.copy().from(), pb::MEMORY_PAGEABLE);
  EXPECT_EQ(copies[0].signature.copy().to(), pb::MEMORY_DEVICE);
  EXPECT_EQ(copies[0].lane.priority(), -3);
  EXPECT_EQ(copies[0].lane.flags(), 2u);
  EXPECT_FALSE(copies[0].has(pb::COLUMN_GRAPH_NODE));
  EXPECT_EQ(copies[1].name, "Memcpy PtoP (Device -> Device)");
  EXPECT_EQ(copies[1].signature.copy().peer_device(), 3);
  const WrittenRow memset = file.OfKind(pb::KIND_MEMSET).at(0);
  EXPECT_EQ(memset.name, "Memset (Device)");
  EXPECT_EQ(memset.bytes, 4096u);
  EXPECT_EQ(memset.start, kFileT + 530);
}

void ExpectCalls(const WrittenFile& file) {
  const auto calls = file.OfKind(pb::KIND_CALL);
  ASSERT_THAT(calls, SizeIs(3));
  EXPECT_EQ(calls[0].name, "cudaLaunchKernel");
  EXPECT_EQ(calls[0].signature.api().domain(), 2u);
  EXPECT_EQ(calls[0].signature.api().cbid(), 211u);
  EXPECT_EQ(calls[0].lane.process(), 7);
  EXPECT_EQ(calls[0].lane.number(), 7);
  EXPECT_EQ(calls[0].duration, 5u);
  EXPECT_FALSE(calls[0].has(pb::COLUMN_RETURN_CODE));
  EXPECT_EQ(calls[1].name, "cuMemcpyHtoDAsync_v2");
  EXPECT_EQ(calls[1].signature.api().domain(), 1u);
  EXPECT_EQ(calls[1].return_code, 700);
  EXPECT_EQ(calls[2].name, "cuLaunchKernel (internal)");
}

void ExpectWaitsAndOverhead(const WrittenFile& file) {
  const WrittenRow sync = file.OfKind(pb::KIND_SYNC).at(0);
  EXPECT_EQ(sync.name, "Stream Wait Event");
  EXPECT_EQ(sync.signature.sync().kind(), pb::SYNC_KIND_STREAM_WAIT_EVENT);
  EXPECT_EQ(sync.signature.sync().stream(), 8);
  EXPECT_EQ(sync.lane.number(), 8);
  EXPECT_EQ(sync.lane.device(), 1);
  EXPECT_EQ(sync.event, 5);
  EXPECT_EQ(sync.event_sync, 1ll << 40);
  const WrittenRow event = file.OfKind(pb::KIND_EVENT_RECORD).at(0);
  EXPECT_EQ(event.event, 5);
  EXPECT_EQ(event.event_sync, 1ll << 40);
  EXPECT_EQ(event.device_time, 123456);
  EXPECT_EQ(event.correlation, 105);
  EXPECT_EQ(event.start, sync.start);  // that of the row before
  EXPECT_FALSE(event.has(pb::COLUMN_FLAGS));
  const WrittenRow graph = file.OfKind(pb::KIND_GRAPH_LAUNCH).at(0);
  EXPECT_EQ(graph.graph, 4);
  EXPECT_EQ(graph.correlation, 106);
  EXPECT_EQ(graph.duration, 100u);
  EXPECT_EQ(file.OfKind(pb::KIND_OVERHEAD).at(0).name, "Command Buffer Full");
}

// What must come of EveryKind().
void ExpectEveryKind(const WrittenFile& file) {
  ASSERT_THAT(file.rows, SizeIs(11));
  ExpectKernel(file);
  ExpectCopies(file);
  ExpectCalls(file);
  ExpectWaitsAndOverhead(file);
  ASSERT_THAT(file.devices, SizeIs(1));
  EXPECT_EQ(file.devices[0].name(), "NVIDIA H100");
  EXPECT_EQ(file.devices[0].max_threads_per_multiprocessor(), 2048);
  EXPECT_EQ(file.devices[0].memory_bytes(), 85ull << 30);
  ASSERT_THAT(file.contexts, SizeIs(1));
  EXPECT_EQ(file.contexts[0].null_stream(), 7u);
  EXPECT_EQ(file.loss.unknown_kind(), 2u);
  EXPECT_EQ(file.loss.lost_bytes(), 0u);
}

TEST(CuptiDecoder, EveryKindBecomesItsRow) {
  ActivityBuffer buffer = EveryKind();
  ExpectEveryKind(Record(buffer, HandMadeCupti()));
}

// The real cuptiActivityGetNextRecord, if there is one.
CuptiDecoding RealCupti() {
  void* library = dlopen(DAYDREAM_LIBCUPTI, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  CuptiDecoding cupti;
  const auto version =
      reinterpret_cast<CUptiResult (*)(uint32_t*)>(dlsym(library, "cuptiGetVersion"));
  if (version == nullptr || version(&cupti.version) != CUPTI_SUCCESS) return {};
  cupti.next_record =
      reinterpret_cast<decltype(cupti.next_record)>(dlsym(library, "cuptiActivityGetNextRecord"));
  cupti.callback_name =
      reinterpret_cast<decltype(cupti.callback_name)>(dlsym(library, "cuptiGetCallbackName"));
  return cupti;
}

TEST(CuptiDecoder, TheRealWalkerFindsTheSameRecords) {
  const CuptiDecoding cupti = RealCupti();
  if (cupti.next_record == nullptr) GTEST_SKIP() << "no libcupti.so.13 here";
  if (cupti.version < 130000) GTEST_SKIP() << "libcupti is older than the structs of this test";
  ActivityBuffer buffer = EveryKind();
  std::vector<CUpti_Activity*> ours, theirs;
  const auto walk = [&](const CuptiDecoding& with, std::vector<CUpti_Activity*>& found) {
    CUpti_Activity* record = nullptr;
    while (with.next_record(buffer.data(), buffer.size(), &record) == CUPTI_SUCCESS) {
      found.push_back(record);
    }
  };
  walk(HandMadeCupti(), ours);
  walk(cupti, theirs);
  EXPECT_EQ(ours, theirs);
  ExpectEveryKind(Record(buffer, cupti));
}

// ---- Older versions of CUPTI: what they did not write is not read ----

TEST(CuptiDecoder, LateFieldsNeedTheVersionThatHasThem) {
  ActivityBuffer buffer;
  FillKernel(buffer.Kernel());
  auto& sync = buffer.Sync();
  sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
  sync.start = sync.end = kT;
  sync.cudaEventId = 3;
  sync.cudaEventSyncId = 4;
  sync.returnValue = 5;
  auto& event = buffer.Event();
  event.eventId = 3;
  event.cudaEventSyncId = 4;
  event.deviceTimestamp = 6;
  const WrittenFile file = Record(buffer, HandMadeCupti(17));
  ASSERT_THAT(file.rows, SizeIs(3));
  const pb::Launch launch = file.OfKind(pb::KIND_KERNEL).at(0).signature.launch();
  EXPECT_EQ(launch.cluster_x(), 0u);
  EXPECT_EQ(launch.max_active_clusters(), 0u);
  EXPECT_EQ(launch.registers_per_thread(), 64u);
  const WrittenRow s = file.OfKind(pb::KIND_SYNC).at(0);
  EXPECT_EQ(s.event, 3);
  EXPECT_FALSE(s.has(pb::COLUMN_EVENT_SYNC));
  EXPECT_FALSE(s.has(pb::COLUMN_RETURN_CODE));
  const WrittenRow e = file.OfKind(pb::KIND_EVENT_RECORD).at(0);
  EXPECT_FALSE(e.has(pb::COLUMN_EVENT_SYNC));
  EXPECT_FALSE(e.has(pb::COLUMN_DEVICE_TIME));
  EXPECT_TRUE(
      Record(buffer, HandMadeCupti(26)).OfKind(pb::KIND_SYNC)[0].has(pb::COLUMN_EVENT_SYNC));
}

TEST(CuptiDecoder, AContextWaitHasNoStreamAndTheDeviceOfItsContext) {
  ActivityBuffer buffer;
  auto& context = buffer.AddTo<CUpti_ActivityContext3>(CUPTI_ACTIVITY_KIND_CONTEXT);
  context.contextId = 4;
  context.deviceId = 6;
  auto& sync = buffer.Sync();
  sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
  sync.start = kT;
  sync.end = kT + 10;
  sync.contextId = 4;
  const WrittenFile file = Record(buffer, HandMadeCupti());
  ASSERT_THAT(file.rows, SizeIs(1));
  EXPECT_EQ(file.rows[0].name, "Context Sync");
  EXPECT_FALSE(file.rows[0].signature.sync().has_stream());
  EXPECT_EQ(file.rows[0].lane.device(), 6);
  EXPECT_EQ(file.rows[0].lane.number(), -1);
  EXPECT_EQ(file.rows[0].columns, 0u);
}

// ---- Damaged buffers ----

TEST(CuptiDecoder, ACutLastRecordEndsTheBuffer) {
  ActivityBuffer buffer;
  for (int i = 0; i < 3; ++i) FillKernel(buffer.Kernel());
  for (size_t cut = 1; cut <= sizeof(CUpti_ActivityKernel10); ++cut) {
    ScratchFolder folder;
    Recording recording;
    ASSERT_EQ(recording.Open((folder / "a").c_str(), {}), 0);
    recording.SetCupti(HandMadeCupti());
    recording.AddBuffer(buffer.data(), buffer.size() - cut);
    EXPECT_EQ(recording.rows(), 2u);
    EXPECT_EQ(recording.losses(), Losses());
  }
}

TEST(CuptiDecoder, BytesBehindAnUnknownRecordAreCounted) {
  ActivityBuffer buffer;
  FillKernel(buffer.Kernel());
  buffer.AddZeros(64);
  FillKernel(buffer.Kernel());
  Losses losses;
  const WrittenFile file = Record(buffer, HandMadeCupti(), &losses);
  EXPECT_THAT(file.rows, SizeIs(1));
  EXPECT_EQ(losses.unknown_kind, 1u);
  // All but where the last good record begins: its length is CUPTI's knowledge.
  EXPECT_EQ(losses.lost_bytes, buffer.size());
  EXPECT_EQ(file.loss.lost_bytes(), buffer.size());
}

TEST(CuptiDecoder, AnEmptyBufferIsNothing) {
  ActivityBuffer buffer;
  Losses losses;
  buffer.AddZeros(8);
  Record(buffer, HandMadeCupti(), &losses);
  EXPECT_EQ(losses.unknown_kind, 1u);
  ScratchFolder folder;
  Recording recording;
  ASSERT_EQ(recording.Open((folder / "a").c_str(), {}), 0);
  recording.SetCupti(HandMadeCupti());
  recording.AddBuffer(buffer.data(), 0);
  EXPECT_EQ(recording.losses(), Losses());
}

TEST(CuptiDecoder, RowsWithoutATimeAreKeptFlaggedAndCounted) {
  ActivityBuffer buffer;
  auto& good = buffer.Kernel();
  FillKernel(good);
  auto& none = buffer.Kernel();
  FillKernel(none);
  none.start = none.end = 0;
  auto& unfinished = buffer.Kernel();
  FillKernel(unfinished);
  unfinished.end = 0;
  auto& call = buffer.Runtime();
  call.cbid = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
  Losses losses;
  const WrittenFile file = Record(buffer, HandMadeCupti(), &losses);
  EXPECT_EQ(losses.invalid_time, 3u);
  EXPECT_EQ(file.loss.invalid_time(), 3u);
  const auto kernels = file.OfKind(pb::KIND_KERNEL);
  ASSERT_THAT(kernels, SizeIs(3));
  EXPECT_EQ(kernels[0].flags, 0u);
  for (size_t i = 1; i < 3; ++i) {
    EXPECT_EQ(kernels[i].flags, 1u);
    EXPECT_EQ(kernels[i].start, kernels[0].start);
    EXPECT_EQ(kernels[i].duration, 0u);
  }
  EXPECT_EQ(file.OfKind(pb::KIND_CALL).at(0).flags, 1u);
}

TEST(CuptiDecoder, ExtremeValuesSurvive) {
  ActivityBuffer buffer;
  auto& kernel = buffer.Kernel();
  kernel.start = 1;
  kernel.end = 1ull << 62;
  kernel.correlationId = 0xffffffff;
  kernel.streamId = kernel.contextId = kernel.deviceId = 0xfffffffe;
  kernel.gridX = 0x7fffffff;
  kernel.graphNodeId = ~0ull;
  auto& wrapped = buffer.Kernel();
  FillKernel(wrapped);
  wrapped.correlationId = 1;
  const auto kernels = Record(buffer, HandMadeCupti()).OfKind(pb::KIND_KERNEL);
  ASSERT_THAT(kernels, SizeIs(2));
  EXPECT_EQ(kernels[0].start, 1 - kOrigin);
  EXPECT_EQ(kernels[0].duration, (1ull << 62) - 1);
  EXPECT_EQ(kernels[0].correlation, 0xffffffff);
  EXPECT_EQ(kernels[0].lane.number(), 0xfffffffe);
  EXPECT_EQ(kernels[0].signature.launch().grid_x(), 0x7fffffffu);
  EXPECT_EQ(static_cast<uint64_t>(kernels[0].graph_node), ~0ull);
  EXPECT_EQ(kernels[0].name, "");
  EXPECT_EQ(kernels[1].correlation, 1);
}

TEST(CuptiDecoder, TimesOfAnotherClockAreMoved) {
  ActivityBuffer buffer;
  FillKernel(buffer.Kernel());
  ScratchFolder folder;
  Recording recording;
  ASSERT_EQ(recording.Open((folder / "a").c_str(), {.clock_origin_ns = kOrigin}), 0);
  recording.SetCupti(HandMadeCupti());
  recording.SetCuptiOffset(-4'000'000);
  recording.AddBuffer(buffer.data(), buffer.size());
  ASSERT_EQ(recording.Close(RecordingEnd::kExit, 0), 0);
  EXPECT_EQ(ReadWritten(FileBytes(folder / "a")).rows.at(0).start, 100);
}

// A module may be unloaded and another name may stand at its address in the next buffer.
TEST(CuptiDecoder, NamesAreReadAnewInEveryBuffer) {
  char name[] = "first_kernel";
  ActivityBuffer buffer;
  auto& kernel = buffer.Kernel();
  FillKernel(kernel);
  kernel.name = name;
  ScratchFolder folder;
  Recording recording;
  ASSERT_EQ(recording.Open((folder / "a").c_str(), {}), 0);
  recording.SetCupti(HandMadeCupti());
  recording.AddBuffer(buffer.data(), buffer.size());
  std::strcpy(name, "other_kernel");
  recording.AddBuffer(buffer.data(), buffer.size());
  ASSERT_EQ(recording.Close(RecordingEnd::kExit, 0), 0);
  const WrittenFile file = ReadWritten(FileBytes(folder / "a"));
  ASSERT_THAT(file.rows, SizeIs(2));
  EXPECT_EQ(file.rows[0].name, "first_kernel");
  EXPECT_EQ(file.rows[1].name, "other_kernel");
}

}  // namespace
}  // namespace daydream::tracer
