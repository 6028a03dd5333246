// What the fake driver (libcuda.so.1) tells the fake CUPTI (libcupti.so.13). All times are
// CLOCK_MONOTONIC ns; the fake CUPTI converts them to the clock that its client asked for.
#pragma once

#include <time.h>

#include <cstdint>

#include <cuda.h>

namespace daydream {

inline int64_t FakeNow() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec;
}

// One driver or runtime call. A driver call inside a runtime call has its correlation id.
struct FakeCall {
  uint32_t domain = 0;  // CUpti_CallbackDomain: 1 driver, 2 runtime
  uint32_t cbid = 0;
  int64_t start = 0, end = 0;
  uint32_t correlation = 0;
  uint32_t result = 0;
};

enum class FakeWorkKind { kKernel, kCopy, kSet, kGraph };

struct FakeShape {
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;
};

// Something that runs on the GPU.
struct FakeWork {
  FakeWorkKind kind = FakeWorkKind::kKernel;
  int64_t start = 0, end = 0;
  uint32_t stream = 0, correlation = 0;
  const char* name = nullptr;               // kernels
  FakeShape shape;                          // kernels
  uint64_t bytes = 0;                       // copies and sets
  uint8_t copy_kind = 0, from = 0, to = 0;  // CUPTI's numbers
  uint64_t node = 0;                        // of a graph
  uint32_t graph = 0;
};

struct FakeSync {
  uint32_t type = 0;  // CUpti_ActivitySynchronizationType
  int64_t start = 0, end = 0;
  uint32_t stream = 0, event = 0, correlation = 0;
  uint64_t event_sync = 0;
};

struct FakeEventRecord {
  uint32_t stream = 0, event = 0, correlation = 0;
  uint64_t sync = 0;
};

struct FakeMemory {
  bool release = false;
  uint64_t address = 0, bytes = 0;
  int64_t time = 0;
  uint32_t correlation = 0;
};

struct FakeStreamInfo {
  uint32_t id = 0, flag = 0, correlation = 0;
  int32_t priority = 0;
};

// Handles of a graph in the resource callbacks; numbers are what cuptiGetGraph*Id gives.
struct FakeGraphChange {
  uint32_t cbid = 0;  // CUpti_CallbackIdResource
  CUgraph graph = nullptr, original = nullptr;
  CUgraphNode node = nullptr, original_node = nullptr;
  CUgraphExec exec = nullptr;
  uint32_t exec_id = 0;
};

// Null functions are not called.
struct FakeTool {
  void (*enter)(uint32_t domain, uint32_t cbid);
  void (*call)(const FakeCall&);
  void (*work)(const FakeWork&);
  void (*sync)(const FakeSync&);
  void (*event)(const FakeEventRecord&);
  void (*memory)(const FakeMemory&);
  void (*context)(CUcontext context);  // created: one device, one context, id 1
  void (*stream)(const FakeStreamInfo&);
  void (*graph)(const FakeGraphChange&);
};

}  // namespace daydream

// Exported by the fake driver.
extern "C" {
void fake_cuda_set_tool(const daydream::FakeTool* tool);
uint64_t fake_cuda_node_id(CUgraphNode node);
uint32_t fake_cuda_graph_id(CUgraph graph);
uint32_t fake_cuda_exec_id(CUgraphExec exec);
}
