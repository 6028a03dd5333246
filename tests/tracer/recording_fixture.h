// A Recording of made-up launches, for tests.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "tests/tracer/activity_buffer.h"
#include "tests/tracer/written_file.h"
#include "tracer/graph_nodes.h"
#include "tracer/marks.h"
#include "tracer/recording.h"

namespace daydream::tracer {

inline constexpr int64_t kOrigin = 1'000'000'000;

// One launch and its kernel, `number` times ten microseconds after the origin.
inline void AddLaunch(ActivityBuffer& buffer, uint32_t number, const char* name = "_Z3addPf") {
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

inline void AddLaunches(Recording& recording, uint32_t first, uint32_t count) {
  ActivityBuffer buffer;
  for (uint32_t i = 0; i < count; ++i) AddLaunch(buffer, first + i);
  recording.AddBuffer(buffer.data(), buffer.size());
}

inline RecordingFacts SomeFacts() {
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

}  // namespace daydream::tracer
