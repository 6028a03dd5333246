#include "tests/tracer/fake_cuda/fake_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <map>
#include <mutex>

#include <cudaProfiler.h>
#include <cupti.h>

namespace daydream {
namespace {

constexpr int64_t kLaunchLatencyNs = 2000;

std::atomic<const FakeTool*> g_tool;
std::atomic<uint32_t> g_correlation;
std::atomic<uint32_t> g_stream_id{7};  // 7 is the null stream, as with the real driver
thread_local uint32_t t_outer_correlation = 0;

CUstream_st& NullStream() {
  static auto& stream = *new CUstream_st{7};
  return stream;
}

std::vector<CUstream_st*>& Streams() {
  static auto& streams = *new std::vector<CUstream_st*>{&NullStream()};
  return streams;
}

}  // namespace

int64_t FakeKernelNs() {
  static const int64_t ns = [] {
    const char* text = getenv("FAKE_CUDA_KERNEL_NS");
    return text == nullptr ? int64_t{5000} : int64_t{atoll(text)};
  }();
  return ns;
}

const FakeTool* Tool() { return g_tool.load(std::memory_order_acquire); }
uint32_t NextId(std::atomic<uint32_t>& counter) { return ++counter; }
const std::vector<CUstream_st*>& AllStreams() { return Streams(); }

std::mutex& StreamsMutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

CUstream_st& StreamOf(CUstream stream) { return stream == nullptr ? NullStream() : *stream; }

CUstream_st* NewStream(uint32_t flag, int32_t priority, uint32_t correlation) {
  auto* stream = new CUstream_st{NextId(g_stream_id)};
  {
    std::lock_guard lock(StreamsMutex());
    Streams().push_back(stream);
  }
  if (const FakeTool* tool = Tool()) tool->stream({stream->id, flag, correlation, priority});
  return stream;
}

void SleepUntil(int64_t time) {
  // As the real driver, which looks for a while before it sleeps: waking up takes some 50 us.
  constexpr int64_t kLookNs = 20'000;
  while (FakeNow() < time && time - FakeNow() < kLookNs) {
  }
  if (time <= FakeNow()) return;
  timespec t{time / 1'000'000'000, time % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) != 0) {
  }
}

Call::Call(uint32_t domain, uint32_t cbid) {
  outermost_ = t_outer_correlation == 0;
  if (outermost_) t_outer_correlation = NextId(g_correlation);
  call_ = {domain, cbid, 0, 0, t_outer_correlation, 0};
  if (const FakeTool* tool = Tool()) tool->enter(domain, cbid);
  call_.start = FakeNow();
}

Call::~Call() {
  if (outermost_) t_outer_correlation = 0;
  call_.end = FakeNow();
  if (const FakeTool* tool = Tool()) tool->call(call_);
}

int64_t Enqueue(CUstream_st& stream, FakeWork work, int64_t duration) {
  {
    std::lock_guard lock(stream.mutex);
    work.start = std::max(stream.busy_until, FakeNow() + kLaunchLatencyNs);
    work.end = stream.busy_until = work.start + duration;
  }
  work.stream = stream.id;
  if (const FakeTool* tool = Tool()) tool->work(work);
  return work.start;
}

namespace {

// As the real driver does it in cuInit.
void Inject() {
  const char* path = getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr) return;
  void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    fprintf(stderr, "fake driver: %s\n", dlerror());
    return;
  }
  auto initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (initialize != nullptr) initialize();
}

void CreateContext() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (const FakeTool* tool = Tool()) tool->context(reinterpret_cast<CUcontext>(1));
  });
}

// Sleeps until everything on `stream` is done and tells the tool.
CUresult WaitForStream(CUstream stream, Call& call) {
  CUstream_st& s = StreamOf(stream);
  int64_t busy_until = 0;
  {
    std::lock_guard lock(s.mutex);
    busy_until = s.busy_until;
  }
  SleepUntil(busy_until);
  if (const FakeTool* tool = Tool()) {
    tool->sync({CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, call.start(), FakeNow(),
                s.id, ~0u, call.correlation(), 0});
  }
  return CUDA_SUCCESS;
}

CUresult WaitForAll(Call& call) {
  int64_t busy_until = 0;
  {
    std::lock_guard lock(StreamsMutex());
    for (CUstream_st* s : AllStreams()) {
      std::lock_guard stream_lock(s->mutex);
      busy_until = std::max(busy_until, s->busy_until);
    }
  }
  SleepUntil(busy_until);
  if (const FakeTool* tool = Tool()) {
    tool->sync({CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE, call.start(), FakeNow(),
                ~0u, ~0u, call.correlation(), 0});
  }
  return CUDA_SUCCESS;
}

CUresult Launch(CUfunction function, const FakeShape& shape, CUstream stream, Call& call) {
  if (CUgraph graph = StreamOf(stream).capture) {
    AddNode(graph, function, shape);
    return CUDA_SUCCESS;
  }
  FakeWork work;
  work.correlation = call.correlation();
  work.name = function->name.c_str();
  work.shape = shape;
  Enqueue(StreamOf(stream), work, FakeKernelNs());
  return CUDA_SUCCESS;
}

CUresult Copy(uint8_t kind, uint8_t from, uint8_t to, size_t bytes, CUstream stream, Call& call) {
  FakeWork work;
  work.kind = FakeWorkKind::kCopy;
  work.correlation = call.correlation();
  work.bytes = bytes;
  work.copy_kind = kind;
  work.from = from;
  work.to = to;
  Enqueue(StreamOf(stream), work, 1000 + static_cast<int64_t>(bytes) / 10);  // 10 GB/s
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace daydream

using daydream::Call;
using daydream::FakeShape;
using daydream::FakeWork;
using daydream::StreamOf;
using daydream::Tool;

extern "C" {

void fake_cuda_set_tool(const daydream::FakeTool* tool) {
  daydream::g_tool.store(tool, std::memory_order_release);
}

CUresult cuInit(unsigned) {
  static std::once_flag once;
  if (const char* code = getenv("FAKE_CUDA_INIT")) return static_cast<CUresult>(atoi(code));
  std::call_once(once, daydream::Inject);
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int) {
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  snprintf(name, static_cast<size_t>(size), "Fake GPU");
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  *bytes = size_t{80} << 30;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  daydream::CreateContext();
  *context = reinterpret_cast<CUcontext>(1);
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(1);
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  static auto& mutex = *new std::mutex;
  static auto& functions = *new std::map<std::string, CUfunc_st>;
  std::lock_guard lock(mutex);
  *function = &functions.try_emplace(name, CUfunc_st{name}).first->second;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream, void**,
                        void**) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  if (f == nullptr) return call.Return(CUDA_ERROR_INVALID_HANDLE);
  return daydream::Launch(f, FakeShape{{gx, gy, gz}, {bx, by, bz}, shared}, stream, call);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void**, void**) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx);
  const FakeShape shape{{c->gridDimX, c->gridDimY, c->gridDimZ},
                        {c->blockDimX, c->blockDimY, c->blockDimZ},
                        c->sharedMemBytes};
  return daydream::Launch(f, shape, c->hStream, call);
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr, const void*, size_t bytes, CUstream stream) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2);
  return daydream::Copy(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE,
                        CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, bytes, stream, call);
}
CUresult cuMemcpyDtoHAsync(void*, CUdeviceptr, size_t bytes, CUstream stream) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2);
  return daydream::Copy(CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                        CUPTI_ACTIVITY_MEMORY_KIND_PINNED, bytes, stream, call);
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr, CUdeviceptr, size_t bytes, CUstream stream) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2);
  return daydream::Copy(CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                        CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, bytes, stream, call);
}
CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, size_t bytes, CUstream stream) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async);
  FakeWork work;
  work.kind = daydream::FakeWorkKind::kSet;
  work.correlation = call.correlation();
  work.bytes = bytes;
  daydream::Enqueue(StreamOf(stream), work, 1000);
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2);
  static std::atomic<uint64_t> next{0x7000000000};
  *address = next.fetch_add((bytes + 511) & ~size_t{511});
  if (auto* tool = Tool()) {
    tool->memory({false, *address, bytes, daydream::FakeNow(), call.correlation()});
  }
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr address) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2);
  if (auto* tool = Tool()) {
    tool->memory({true, address, 0, daydream::FakeNow(), call.correlation()});
  }
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuStreamCreate);
  uint32_t flag = flags == CU_STREAM_NON_BLOCKING ? CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING
                                                  : CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT;
  *stream = daydream::NewStream(flag, 0, call.correlation());
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize);
  return daydream::WaitForStream(stream, call);
}
CUresult cuCtxSynchronize() {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize);
  return daydream::WaitForAll(call);
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuEventCreate);
  static std::atomic<uint32_t> id;
  *event = new CUevent_st{daydream::NextId(id)};
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuEventRecord);
  static std::atomic<uint64_t> sync;
  CUstream_st& s = StreamOf(stream);
  std::scoped_lock lock(s.mutex, event->mutex);
  event->done_at = s.busy_until;
  event->sync = ++sync;
  if (auto* tool = Tool()) tool->event({s.id, event->id, call.correlation(), event->sync});
  return CUDA_SUCCESS;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent);
  CUstream_st& s = StreamOf(stream);
  std::scoped_lock lock(s.mutex, event->mutex);
  s.busy_until = std::max(s.busy_until, event->done_at);
  if (auto* tool = Tool()) {
    tool->sync({CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT, call.start(),
                daydream::FakeNow(), s.id, event->id, call.correlation(), event->sync});
  }
  return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent event) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize);
  int64_t done_at = 0;
  uint64_t sync = 0;
  {
    std::lock_guard lock(event->mutex);
    done_at = event->done_at;
    sync = event->sync;
  }
  daydream::SleepUntil(done_at);
  if (auto* tool = Tool()) {
    tool->sync({CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE, call.start(),
                daydream::FakeNow(), ~0u, event->id, call.correlation(), sync});
  }
  return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent event) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuEventQuery);
  std::lock_guard lock(event->mutex);
  bool done = event->done_at <= daydream::FakeNow();
  return call.Return(done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuProfilerStart() {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuProfilerStart);
  return CUDA_SUCCESS;
}
CUresult cuProfilerStop() {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuProfilerStop);
  return CUDA_SUCCESS;
}

}  // extern "C"
