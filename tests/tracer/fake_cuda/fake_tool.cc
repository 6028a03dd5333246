#include "tests/tracer/fake_cuda/fake_tool.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "tests/tracer/fake_cuda/fake_records.h"
#include "tests/tracer/fake_cuda/faults.h"

namespace daydream {
namespace {

constexpr uint32_t kDomains = 7, kMaxId = 1024;

std::atomic<bool> g_kinds[64];
std::atomic<bool> g_api[kDomains][kMaxId], g_callbacks[kDomains][kMaxId];
std::atomic<bool> g_system_thread_ids;
std::atomic<CUpti_CallbackFunc> g_callback;
std::atomic<void*> g_userdata;
std::atomic<int64_t> g_calls;
// graphs_need_kind: executable graphs that were made while kernels were not recorded.
std::atomic<bool> g_unseen_graphs[kMaxId];

bool On(uint32_t kind) { return g_kinds[kind].load(std::memory_order_relaxed); }

void Spin(int64_t us) {
  for (const int64_t end = FakeNow() + us * 1000; FakeNow() < end;) {
  }
}

template <size_t kSize>
int CountOn(const std::atomic<bool> (&flags)[kSize]) {
  int on = 0;
  for (const std::atomic<bool>& flag : flags) on += flag;
  return on;
}

void SayState() {
  int callbacks = 0;
  for (const auto& domain : g_callbacks) callbacks += CountOn(domain);
  fprintf(stderr, "fake CUPTI: %d kinds and %d callbacks are on\n", CountOn(g_kinds), callbacks);
}

uint64_t Time(int64_t monotonic) {
  return static_cast<uint64_t>(monotonic + Client().clock_offset);
}

uint32_t ThreadId() {
  static thread_local uint32_t system = static_cast<uint32_t>(syscall(SYS_gettid));
  return g_system_thread_ids ? system : static_cast<uint32_t>(pthread_self());
}

void CallBack(uint32_t domain, uint32_t cbid, const void* data) {
  if (!g_callbacks[domain][cbid].load(std::memory_order_relaxed)) return;
  g_callback.load()(g_userdata.load(), static_cast<CUpti_CallbackDomain>(domain), cbid, data);
}

void CallBackApi(uint32_t domain, uint32_t cbid, CUpti_ApiCallbackSite site,
                 uint32_t* result = nullptr) {
  if (!g_callbacks[domain][cbid].load(std::memory_order_relaxed)) return;
  CUpti_CallbackData data{};
  data.callbackSite = site;
  data.functionName = CallbackName(domain, cbid);
  data.functionReturnValue = result;
  CallBack(domain, cbid, &data);
}

void OnEnter(uint32_t domain, uint32_t cbid) { CallBackApi(domain, cbid, CUPTI_API_ENTER); }

void ReportFatalError() {
  Finalize();
  CUpti_StateData data{};
  data.notification.result = CUPTI_ERROR_HARDWARE;
  data.notification.message = "made by FAKE_CUPTI";
  CallBack(CUPTI_CB_DOMAIN_STATE, CUPTI_CBID_STATE_FATAL_ERROR, &data);
}

void OnCall(const FakeCall& call) {
  uint32_t result = call.result;
  CallBackApi(call.domain, call.cbid, CUPTI_API_EXIT, &result);
  if (g_api[call.domain][call.cbid].load(std::memory_order_relaxed)) {
    CUpti_ActivityAPI r{};
    r.kind = call.domain == CUPTI_CB_DOMAIN_DRIVER_API ? CUPTI_ACTIVITY_KIND_DRIVER
                                                       : CUPTI_ACTIVITY_KIND_RUNTIME;
    r.cbid = call.cbid;
    r.start = Time(call.start);
    r.end = Time(call.end);
    r.processId = static_cast<uint32_t>(getpid());
    r.threadId = ThreadId();
    r.correlationId = call.correlation;
    r.returnValue = call.result;
    PutRecord(&r, sizeof r);
    static const int64_t cost_us = FaultNumber("call_cost_us");
    if (cost_us > 0) Spin(cost_us);
  }
  static const int64_t fatal_after = FaultNumber("fatal_after");
  if (fatal_after > 0 && ++g_calls == fatal_after) ReportFatalError();
}

template <typename Record>
void PutGpu(Record& r, const FakeWork& work) {
  r.start = Time(work.start);
  r.end = Time(work.end);
  r.contextId = 1;
  r.streamId = work.stream;
  r.correlationId = work.correlation;
  static const int64_t cost_us = FaultNumber("work_cost_us");
  if (cost_us > 0) Spin(cost_us);
  PutWork(&r, sizeof r, offsetof(Record, start), offsetof(Record, end), work.end);
}

void OnKernel(const FakeWork& work) {
  if (!On(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) return;
  if (work.node != 0 && On(CUPTI_ACTIVITY_KIND_GRAPH_TRACE)) return;  // the whole graph hides it
  if (work.node != 0 && work.graph < kMaxId && g_unseen_graphs[work.graph]) return;
  CUpti_ActivityKernel10 r{};
  r.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  r.registersPerThread = 32;
  r.gridX = static_cast<int32_t>(work.shape.grid[0]);
  r.gridY = static_cast<int32_t>(work.shape.grid[1]);
  r.gridZ = static_cast<int32_t>(work.shape.grid[2]);
  r.blockX = static_cast<int32_t>(work.shape.block[0]);
  r.blockY = static_cast<int32_t>(work.shape.block[1]);
  r.blockZ = static_cast<int32_t>(work.shape.block[2]);
  r.dynamicSharedMemory = static_cast<int32_t>(work.shape.shared_bytes);
  r.sharedMemoryExecuted = 16384;
  r.gridId = work.correlation;
  r.name = work.name;
  r.graphNodeId = work.node;
  r.graphId = work.graph;
  PutGpu(r, work);
}

void OnCopy(const FakeWork& work) {
  if (!On(CUPTI_ACTIVITY_KIND_MEMCPY)) return;
  CUpti_ActivityMemcpy6 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  r.copyKind = work.copy_kind;
  r.srcKind = work.from;
  r.dstKind = work.to;
  r.flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
  r.bytes = work.bytes;
  r.copyCount = 1;
  PutGpu(r, work);
}

void OnWork(const FakeWork& work) {
  if (work.kind == FakeWorkKind::kKernel) OnKernel(work);
  if (work.kind == FakeWorkKind::kCopy) OnCopy(work);
  if (work.kind == FakeWorkKind::kSet && On(CUPTI_ACTIVITY_KIND_MEMSET)) {
    CUpti_ActivityMemset4 r{};
    r.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    r.bytes = work.bytes;
    r.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    PutGpu(r, work);
  }
  if (work.kind == FakeWorkKind::kGraph && On(CUPTI_ACTIVITY_KIND_GRAPH_TRACE)) {
    CUpti_ActivityGraphTrace2 r{};
    r.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
    r.graphId = work.graph;
    r.endContextId = 1;
    PutGpu(r, work);
  }
}

void OnSync(const FakeSync& sync) {
  if (!On(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) return;
  CUpti_ActivitySynchronization2 r{};
  r.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  r.type = static_cast<CUpti_ActivitySynchronizationType>(sync.type);
  r.start = Time(sync.start);
  r.end = Time(sync.end);
  r.correlationId = sync.correlation;
  r.contextId = 1;
  r.streamId = sync.stream;
  r.cudaEventId = sync.event;
  r.cudaEventSyncId = sync.event_sync;
  PutRecord(&r, sizeof r);
}

void OnEvent(const FakeEventRecord& event) {
  if (!On(CUPTI_ACTIVITY_KIND_CUDA_EVENT)) return;
  CUpti_ActivityCudaEvent2 r{};
  r.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  r.correlationId = event.correlation;
  r.contextId = 1;
  r.streamId = event.stream;
  r.eventId = event.event;
  r.cudaEventSyncId = event.sync;
  PutRecord(&r, sizeof r);
}

void OnMemory(const FakeMemory& memory) {
  if (!On(CUPTI_ACTIVITY_KIND_MEMORY2)) return;
  CUpti_ActivityMemory4 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  r.memoryOperationType = memory.release ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
                                         : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  r.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  r.correlationId = memory.correlation;
  r.address = memory.address;
  r.bytes = memory.bytes;
  r.timestamp = Time(memory.time);
  r.processId = static_cast<uint32_t>(getpid());
  r.contextId = 1;
  PutRecord(&r, sizeof r);
}

void OnStream(const FakeStreamInfo& stream) {
  if (!On(CUPTI_ACTIVITY_KIND_STREAM)) return;
  CUpti_ActivityStream r{};
  r.kind = CUPTI_ACTIVITY_KIND_STREAM;
  r.contextId = 1;
  r.streamId = stream.id;
  r.priority = static_cast<uint32_t>(stream.priority);
  r.flag = static_cast<CUpti_ActivityStreamFlag>(stream.flag);
  r.correlationId = stream.correlation;
  PutRecord(&r, sizeof r);
}

void PutDevice() {
  CUpti_ActivityDevice5 r{};
  r.kind = CUPTI_ACTIVITY_KIND_DEVICE;
  r.globalMemoryBandwidth = 3'352'320'000;  // as an H100 SXM reports it, KB/s
  r.globalMemorySize = uint64_t{80} << 30;
  r.l2CacheSize = 50 << 20;
  r.numThreadsPerWarp = 32;
  r.coreClockRate = 1'980'000;
  r.numMultiprocessors = 132;
  r.maxWarpsPerMultiprocessor = 64;
  r.maxSharedMemoryPerMultiprocessor = 228 << 10;
  r.maxRegistersPerMultiprocessor = 65536;
  r.computeCapabilityMajor = 9;
  r.name = "Fake GPU";
  r.isCudaVisible = 1;
  PutRecord(&r, sizeof r);
}

void OnContext(CUcontext context) {
  if (On(CUPTI_ACTIVITY_KIND_DEVICE)) PutDevice();
  if (On(CUPTI_ACTIVITY_KIND_CONTEXT)) {
    CUpti_ActivityContext3 r{};
    r.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
    r.contextId = 1;
    r.computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA;
    r.nullStreamId = 7;
    r.numMultiprocessors = 132;
    PutRecord(&r, sizeof r);
  }
  OnStream({7, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL, 0, 0});
  CUpti_ResourceData data{};
  data.context = context;
  CallBack(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED, &data);
}

void OnGraph(const FakeGraphChange& change) {
  if (change.cbid == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED && change.exec_id < kMaxId) {
    static const bool need = FaultNumber("graphs_need_kind") != 0;
    g_unseen_graphs[change.exec_id] = need && !On(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  }
  CUpti_GraphData graph{};
  graph.graph = change.graph;
  graph.originalGraph = change.original;
  graph.node = change.node;
  graph.originalNode = change.original_node;
  graph.nodeType = CU_GRAPH_NODE_TYPE_KERNEL;
  graph.graphExec = change.exec;
  CUpti_ResourceData data{};
  data.context = reinterpret_cast<CUcontext>(1);
  data.resourceDescriptor = &graph;
  CallBack(CUPTI_CB_DOMAIN_RESOURCE, change.cbid, &data);
}

constexpr FakeTool kTool = {OnEnter,  OnCall,    OnWork,   OnSync, OnEvent,
                            OnMemory, OnContext, OnStream, OnGraph};

}  // namespace

const FakeTool& CuptiTool() { return kTool; }

void StartTool(CUpti_CallbackFunc callback, void* userdata) {
  PrepareForks();
  g_callback = callback;
  g_userdata = userdata;
  if (FaultNumber("say_state") != 0) atexit(SayState);
}

void SetKind(uint32_t kind, bool enabled) {
  if (kind < 64) g_kinds[kind] = enabled;
  static const bool lose = FaultNumber("lose_in_flight") != 0;
  if (lose && !enabled) DropRunningWork(kind);
  uint32_t domain = kind == CUPTI_ACTIVITY_KIND_DRIVER    ? CUPTI_CB_DOMAIN_DRIVER_API
                    : kind == CUPTI_ACTIVITY_KIND_RUNTIME ? CUPTI_CB_DOMAIN_RUNTIME_API
                                                          : 0;
  if (domain == 0) return;
  for (auto& api : g_api[domain]) api = enabled;
}

void SetApi(uint32_t domain, uint32_t cbid, bool enabled) {
  if (cbid < kMaxId) g_api[domain][cbid] = enabled;
}

bool SetCallback(uint32_t domain, uint32_t cbid, bool enabled) {
  if (domain >= kDomains || cbid >= kMaxId) return false;
  g_callbacks[domain][cbid] = enabled;
  return true;
}

void UseSystemThreadIds(bool use) { g_system_thread_ids = use; }

const char* CallbackName(uint32_t domain, uint32_t cbid) {
  struct Name {
    uint32_t domain, cbid;
    const char* name;
  };
#define DRIVER(name) \
  { CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_##name, #name }
#define RUNTIME(name) \
  { CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_##name, #name }
  static constexpr Name kNames[] = {DRIVER(cuLaunchKernel),
                                    DRIVER(cuLaunchKernelEx),
                                    DRIVER(cuMemcpyHtoDAsync_v2),
                                    DRIVER(cuMemcpyDtoHAsync_v2),
                                    DRIVER(cuMemcpyDtoDAsync_v2),
                                    DRIVER(cuMemsetD8Async),
                                    DRIVER(cuMemAlloc_v2),
                                    DRIVER(cuMemFree_v2),
                                    DRIVER(cuStreamCreate),
                                    DRIVER(cuStreamSynchronize),
                                    DRIVER(cuCtxSynchronize),
                                    DRIVER(cuEventCreate),
                                    DRIVER(cuEventRecord),
                                    DRIVER(cuStreamWaitEvent),
                                    DRIVER(cuEventSynchronize),
                                    DRIVER(cuEventQuery),
                                    DRIVER(cuProfilerStart),
                                    DRIVER(cuProfilerStop),
                                    DRIVER(cuStreamBeginCapture_v2),
                                    DRIVER(cuStreamEndCapture),
                                    DRIVER(cuGraphCreate),
                                    DRIVER(cuGraphAddKernelNode_v2),
                                    DRIVER(cuGraphInstantiateWithFlags),
                                    DRIVER(cuGraphLaunch),
                                    RUNTIME(cudaLaunchKernel_v7000),
                                    RUNTIME(cudaMemcpyAsync_v3020),
                                    RUNTIME(cudaStreamSynchronize_v3020),
                                    RUNTIME(cudaGetDevice_v3020),
                                    RUNTIME(cudaDeviceSynchronize_v3020),
                                    RUNTIME(cudaDeviceReset_v3020),
                                    RUNTIME(cudaProfilerStart_v4000),
                                    RUNTIME(cudaProfilerStop_v4000)};
#undef DRIVER
#undef RUNTIME
  for (const Name& n : kNames) {
    if (n.domain == domain && n.cbid == cbid) return n.name;
  }
  return nullptr;
}

}  // namespace daydream
