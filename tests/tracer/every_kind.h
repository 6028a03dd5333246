// A buffer with one record of every kind of CUPTI that the recorder decodes.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "tests/tracer/activity_buffer.h"

namespace daydream::tracer {

inline constexpr uint64_t kT = 5'000'000;  // some time of CUPTI

inline void FillKernel(CUpti_ActivityKernel10& k) {
  k.start = kT + 100;
  k.end = kT + 350;
  k.deviceId = 1;
  k.contextId = 2;
  k.streamId = 7;
  k.gridX = 10;
  k.gridY = 11;
  k.gridZ = 12;
  k.blockX = 32;
  k.blockY = 4;
  k.blockZ = 2;
  k.registersPerThread = 64;
  k.staticSharedMemory = 1000;
  k.dynamicSharedMemory = 24;
  k.sharedMemoryExecuted = 2048;
  k.localMemoryPerThread = 8;
  k.clusterX = 2;
  k.clusterY = k.clusterZ = 1;
  k.launchType = 1;
  k.cacheConfig.both = 3;
  k.maxActiveClusters = 5;
  k.correlationId = 99;
  k.graphNodeId = 0x100000002;
  k.graphId = 4;
  k.name = "_Z3addPf";
}

inline void AddGpuWork(ActivityBuffer& b) {
  FillKernel(b.Kernel());
  auto& c = b.Memcpy();
  c.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  c.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
  c.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  c.bytes = 1ull << 33;
  c.start = kT + 400;
  c.end = kT + 500;
  c.deviceId = 1;
  c.contextId = 2;
  c.streamId = 8;
  c.correlationId = 100;
  auto& p = b.AddTo<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2);
  p.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  p.srcKind = p.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  p.bytes = 77;
  p.start = kT + 510;
  p.end = kT + 520;
  p.deviceId = p.srcDeviceId = 1;
  p.dstDeviceId = 3;
  p.contextId = 2;
  p.streamId = 8;
  p.correlationId = 101;
  auto& m = b.Memset();
  m.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  m.bytes = 4096;
  m.start = kT + 530;
  m.end = kT + 540;
  m.deviceId = 1;
  m.contextId = 2;
  m.streamId = 7;
  m.correlationId = 102;
}

inline void AddCalls(ActivityBuffer& b) {
  auto& call = b.Runtime();
  call.cbid = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
  call.start = kT + 1;
  call.end = kT + 6;
  call.threadId = 7;
  call.correlationId = 99;
  auto& driver = b.AddTo<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER);
  driver.cbid = CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2;
  driver.start = kT + 7;
  driver.end = kT + 9;
  driver.threadId = 8;
  driver.correlationId = 100;
  driver.returnValue = 700;
  auto& internal = b.AddTo<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API);
  internal.start = kT + 10;
  internal.end = kT + 11;
  internal.threadId = 8;
  internal.correlationId = 103;
}

inline void AddWaitsAndOverhead(ActivityBuffer& b) {
  auto& s = b.Sync();
  s.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
  s.start = kT + 600;
  s.end = kT + 610;
  s.correlationId = 104;
  s.contextId = 2;
  s.streamId = 8;
  s.cudaEventId = 5;
  s.cudaEventSyncId = 1ull << 40;
  auto& e = b.Event();
  e.correlationId = 105;
  e.contextId = 2;
  e.deviceId = 1;
  e.streamId = 7;
  e.eventId = 5;
  e.cudaEventSyncId = 1ull << 40;
  e.deviceTimestamp = 123456;
  auto& g = b.AddTo<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  g.start = kT + 700;
  g.end = kT + 800;
  g.deviceId = 1;
  g.contextId = 2;
  g.streamId = 7;
  g.graphId = 4;
  g.correlationId = 106;
  auto& o = b.AddTo<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD);
  o.overheadKind = CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL;
  o.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  o.objectId.pt.threadId = 7;
  o.start = kT + 810;
  o.end = kT + 820;
  o.overheadData = std::malloc(12);
}

inline void AddProperties(ActivityBuffer& b) {
  auto& d = b.AddTo<CUpti_ActivityDevice5>(CUPTI_ACTIVITY_KIND_DEVICE);
  d.id = 1;
  d.name = "NVIDIA H100";
  d.computeCapabilityMajor = 9;
  d.numMultiprocessors = 132;
  d.numThreadsPerWarp = 32;
  d.maxWarpsPerMultiprocessor = 64;
  d.globalMemorySize = 85ull << 30;
  auto& context = b.AddTo<CUpti_ActivityContext3>(CUPTI_ACTIVITY_KIND_CONTEXT);
  context.contextId = 2;
  context.deviceId = 1;
  context.nullStreamId = 7;
  auto& stream = b.AddTo<CUpti_ActivityStream>(CUPTI_ACTIVITY_KIND_STREAM);
  stream.contextId = 2;
  stream.streamId = 8;
  stream.priority = static_cast<uint32_t>(-3);
  stream.flag = CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING;
}

// One record of every kind that is decoded; two that are not.
inline ActivityBuffer EveryKind() {
  ActivityBuffer b;
  AddGpuWork(b);
  AddCalls(b);
  AddWaitsAndOverhead(b);
  AddProperties(b);
  b.AddTo<CUpti_ActivityName>(CUPTI_ACTIVITY_KIND_NAME);
  b.AddTo<CUpti_ActivityExternalCorrelation>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  return b;
}

}  // namespace daydream::tracer
