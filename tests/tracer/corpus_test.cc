// Records of each CUPTI as the real library lays them out (tests/tracer/corpus/make.py) become the
// same rows, but for what an older one does not tell.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracer/activity_buffer.h"
#include "tests/tracer/fake_cuda/fake_version.h"
#include "tests/tracer/written_file.h"
#include "tracer/raw_dump.h"

namespace daydream::tracer {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// The fake whose records are as long as those of a version.
const FakeCuptiVersion* sizes = nullptr;

const FakeCuptiVersion& SizesOf(uint32_t version) {
  const FakeCuptiVersion* found = &kFakeCuptiVersions[0];
  for (const FakeCuptiVersion& fake : kFakeCuptiVersions) {
    // 13.0 before Update 1 has the records of 13.0.
    if (fake.cupti <= version + 1) found = &fake;
  }
  return *found;
}

size_t SizeOf(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizes->kernel;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizes->copy;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizes->set;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizes->sync;
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return sizes->event;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return sizes->graph;
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizes->overhead;
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return sizes->device;
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return sizes->context;
    default:
      return RecordSize(kind);
  }
}

CUptiResult Walk(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  uint8_t* at = reinterpret_cast<uint8_t*>(*record);
  at = at == nullptr ? buffer : at + SizeOf((*record)->kind);
  if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  auto* next = reinterpret_cast<CUpti_Activity*>(at);
  if (SizeOf(next->kind) == 0) return CUPTI_ERROR_INVALID_KIND;
  *record = next;
  return CUPTI_SUCCESS;
}

WrittenFile Decode(uint32_t version) {
  const std::string dump =
      FileBytes(std::string(DAYDREAM_CORPUS) + "/" + std::to_string(version) + ".cuptibuf");
  sizes = &SizesOf(version);
  ScratchFolder folder;
  Recording recording;
  EXPECT_EQ(recording.Open((folder / "a").c_str(), {.clock_origin_ns = 1, .pid = 7}), 0);
  const CuptiDecoding cupti = {.next_record = Walk, .callback_name = CallbackName};
  EXPECT_TRUE(ReplayRaw(dump, cupti, [&](const CuptiDecoding& with, uint8_t* buffer, size_t valid) {
    EXPECT_EQ(with.version, version);
    recording.SetCupti(with);
    recording.AddBuffer(buffer, valid);
  }));
  EXPECT_EQ(recording.Close(RecordingEnd::kExit, 0), 0);
  return ReadWritten(FileBytes(folder / "a"));
}

class Corpus : public testing::TestWithParam<uint32_t> {};
// CUDA 12.1, 12.4, 12.6, 12.8, 12.9, 13.0, 13.1 and the first updates of both.
INSTANTIATE_TEST_SUITE_P(Cupti, Corpus,
                         testing::Values(18, 22, 24, 26, 28, 130000, 130001, 130100, 130101));

TEST_P(Corpus, GpuWorkIsTheSameInEachVersion) {
  const WrittenFile file = Decode(GetParam());
  EXPECT_THAT(file.rows, SizeIs(10));
  EXPECT_EQ(file.loss.unknown_kind(), 0u);
  EXPECT_EQ(file.loss.lost_bytes(), 0u);
  const WrittenRow kernel = file.OfKind(pb::KIND_KERNEL).at(0);
  EXPECT_EQ(kernel.name, "_Z3addPf");
  EXPECT_EQ(kernel.duration, 250u);
  EXPECT_EQ(kernel.graph_node, 0x100000002);
  const pb::Launch& launch = kernel.signature.launch();
  EXPECT_THAT((std::vector{launch.grid_x(), launch.grid_z(), launch.block_x(), launch.block_z(),
                           launch.registers_per_thread(), launch.cluster_x()}),
              ElementsAre(10, 12, 32, 2, 64, 2));
  const auto copies = file.OfKind(pb::KIND_MEMCPY);
  ASSERT_THAT(copies, SizeIs(2));
  EXPECT_EQ(copies[0].bytes, 1ull << 33);
  EXPECT_EQ(copies[1].signature.copy().peer_device(), 3);
  EXPECT_EQ(file.OfKind(pb::KIND_MEMSET).at(0).bytes, 4096u);
  EXPECT_EQ(file.OfKind(pb::KIND_GRAPH_LAUNCH).at(0).duration, 100u);
  ASSERT_THAT(file.devices, SizeIs(1));
  EXPECT_EQ(file.devices[0].name(), "NVIDIA H100");
  EXPECT_EQ(file.devices[0].memory_bytes(), 85ull << 30);
  ASSERT_THAT(file.contexts, SizeIs(1));
  EXPECT_EQ(file.contexts[0].null_stream(), 7u);
}

TEST_P(Corpus, WhatTheHostDoesIsTheSameButForWhatAnOlderOneDoesNotTell) {
  const WrittenFile file = Decode(GetParam());
  const auto calls = file.OfKind(pb::KIND_CALL);
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_EQ(calls[0].name, "cudaLaunchKernel");
  EXPECT_EQ(calls[0].lane.number(), 7);
  EXPECT_EQ(calls[1].name, "cuMemcpyHtoDAsync_v2");
  EXPECT_EQ(calls[1].return_code, 700);
  const bool has_ids = GetParam() >= 26;
  const WrittenRow wait = file.OfKind(pb::KIND_SYNC).at(0);
  EXPECT_EQ(wait.event, 5);
  EXPECT_EQ(wait.has(pb::COLUMN_EVENT_SYNC), has_ids);
  EXPECT_FALSE(wait.has(pb::COLUMN_RETURN_CODE));
  const WrittenRow record = file.OfKind(pb::KIND_EVENT_RECORD).at(0);
  EXPECT_EQ(record.event, 5);
  EXPECT_EQ(record.has(pb::COLUMN_EVENT_SYNC), has_ids);
  if (has_ids) {
    EXPECT_EQ(wait.event_sync, 1ll << 40);
    EXPECT_EQ(record.event_sync, 1ll << 40);
  }
  EXPECT_EQ(record.has(pb::COLUMN_DEVICE_TIME), GetParam() >= 130000);
  EXPECT_EQ(file.OfKind(pb::KIND_OVERHEAD).at(0).name, "Command Buffer Full");
}

}  // namespace
}  // namespace daydream::tracer
