// Asks CUPTI on a real GPU what the documentation leaves open (docs/recorder.md, open questions).
// Prints one JSON object a line.
//
//   probe facts      one small run with everything enabled, and what its records say
//   probe cost       nanoseconds per launch with growing sets of kinds; graphs by node and by launch
//   probe exit       which exit handler runs first, the driver's or one registered in cuInit's wake
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>

namespace {

uint64_t Now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000ull + t.tv_nsec;
}
uint64_t CUPTIAPI Clock() { return Now(); }

void Check(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = "?";
  cuptiGetResultString(result, &text);
  std::printf("{\"probe\":\"error\",\"call\":\"%s\",\"result\":\"%s\"}\n", what, text);
}
#define CUPTI(call) Check(call, #call)
#define CUDA(call)                                                                            \
  do {                                                                                        \
    cudaError_t error_ = (call);                                                              \
    if (error_ != cudaSuccess) {                                                              \
      std::printf("{\"probe\":\"error\",\"call\":\"%s\",\"result\":\"%s\"}\n", #call,         \
                  cudaGetErrorString(error_));                                                \
      std::exit(1);                                                                           \
    }                                                                                         \
  } while (0)

// ---- records, copied out of the buffers
std::mutex g_mutex;
std::vector<std::vector<uint8_t>> g_buffers;
std::set<long> g_completion_threads;
size_t g_requests = 0;
bool g_keep = true;

void CUPTIAPI OnRequest(uint8_t** buffer, size_t* size, size_t* most) {
  *size = 4 << 20;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  *most = 0;
  std::lock_guard<std::mutex> lock(g_mutex);
  ++g_requests;
}
void CUPTIAPI OnComplete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  std::lock_guard<std::mutex> lock(g_mutex);
  g_completion_threads.insert(syscall(SYS_gettid));
  if (g_keep) g_buffers.emplace_back(buffer, buffer + valid);
  std::free(buffer);
}

template <class T>
void ForEach(CUpti_ActivityKind kind, const std::function<void(const T&)>& take) {
  for (std::vector<uint8_t>& b : g_buffers) {
    CUpti_Activity* record = nullptr;
    while (cuptiActivityGetNextRecord(b.data(), b.size(), &record) == CUPTI_SUCCESS) {
      if (record->kind == kind) take(*reinterpret_cast<const T*>(record));
    }
  }
}

__global__ void Empty() {}
__global__ void Spin(int cycles) {
  long long begin = clock64();
  while (clock64() - begin < cycles) continue;
}

using Kinds = std::vector<CUpti_ActivityKind>;
const Kinds kGpuWork = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                        CUPTI_ACTIVITY_KIND_MEMSET};
const Kinds kRuntime = {CUPTI_ACTIVITY_KIND_RUNTIME}, kDriver = {CUPTI_ACTIVITY_KIND_DRIVER};
const Kinds kSyncs = {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_CUDA_EVENT};
const Kinds kOverhead = {CUPTI_ACTIVITY_KIND_OVERHEAD};
const Kinds kGraphs = {CUPTI_ACTIVITY_KIND_GRAPH_TRACE};

void Enable(const Kinds& kinds, bool on) {
  for (CUpti_ActivityKind kind : kinds) {
    Check(on ? cuptiActivityEnable(kind) : cuptiActivityDisable(kind),
          ("kind " + std::to_string(kind)).c_str());
  }
}

void Start() {
  CUpti_SubscriberHandle subscriber;
  CUPTI(cuptiSubscribe(
      &subscriber, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}, nullptr));
  CUPTI(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM));
  CUptiResult clock = cuptiActivityRegisterTimestampCallback(Clock);
  uint64_t before = Now(), time = 0;
  CUPTI(cuptiGetTimestamp(&time));
  uint64_t after = Now();
  uint32_t version = 0;
  cuptiGetVersion(&version);
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  uint8_t per_thread = 255;
  size_t size = sizeof per_thread;
  CUPTI(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size,
                                  &per_thread));
  CUPTI(cuptiActivityRegisterCallbacks(OnRequest, OnComplete));
  std::printf("{\"probe\":\"env\",\"cupti\":%u,\"driver\":%d,\"runtime\":%d,"
              "\"clock_callback\":%d,\"clock_is_ours\":%s,\"per_thread_buffer\":%d}\n",
              version, driver, runtime, clock, time >= before && time <= after ? "true" : "false",
              per_thread);
}

// ---- facts
struct Facts {
  std::map<uint32_t, std::vector<CUpti_ActivityAPI>> calls;  // by correlation
  std::map<uint64_t, CUpti_ActivityCudaEvent2> events;       // by sync id
};

Facts ReadCalls() {
  Facts facts;
  for (CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER}) {
    ForEach<CUpti_ActivityAPI>(kind, [&](const CUpti_ActivityAPI& call) {
      facts.calls[call.correlationId].push_back(call);
    });
  }
  ForEach<CUpti_ActivityCudaEvent2>(
      CUPTI_ACTIVITY_KIND_CUDA_EVENT,
      [&](const CUpti_ActivityCudaEvent2& event) { facts.events[event.cudaEventSyncId] = event; });
  return facts;
}

void PrintCalls(const Facts& facts) {
  int shared = 0, driver_only = 0;
  std::set<uint32_t> threads;
  for (const auto& [correlation, calls] : facts.calls) {
    bool runtime = false, driver = false;
    for (const CUpti_ActivityAPI& call : calls) {
      runtime = runtime || call.kind == CUPTI_ACTIVITY_KIND_RUNTIME;
      driver = driver || call.kind == CUPTI_ACTIVITY_KIND_DRIVER;
      threads.insert(call.threadId);
    }
    shared += runtime && driver;
    driver_only += driver && !runtime;
  }
  bool own = threads.count(static_cast<uint32_t>(syscall(SYS_gettid))) > 0;
  bool on_app_thread = g_completion_threads.count(syscall(SYS_gettid)) > 0;
  std::printf("{\"probe\":\"calls\",\"correlations\":%zu,\"runtime_and_driver_share_one\":%d,"
              "\"driver_only\":%d,\"threads\":%zu,\"gettid_is_used\":%s,"
              "\"completed_on_the_application_thread\":%s,\"completion_threads\":%zu}\n",
              facts.calls.size(), shared, driver_only, threads.size(), own ? "true" : "false",
              on_app_thread ? "true" : "false", g_completion_threads.size());
}

void PrintKernels(const Facts& facts) {
  int kernels = 0, without_call = 0, without_time = 0, in_graph = 0, before_call = 0;
  int64_t least = INT64_MAX;
  std::set<uint32_t> graph_correlations;
  ForEach<CUpti_ActivityKernel10>(
      CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, [&](const CUpti_ActivityKernel10& kernel) {
        ++kernels;
        without_time += kernel.start == 0;
        if (kernel.graphNodeId != 0) {
          ++in_graph;
          graph_correlations.insert(kernel.correlationId);
        }
        auto call = facts.calls.find(kernel.correlationId);
        if (call == facts.calls.end()) {
          ++without_call;
          return;
        }
        int64_t delay = static_cast<int64_t>(kernel.start - call->second[0].start);
        least = std::min(least, delay);
        before_call += delay < 0;
      });
  std::printf("{\"probe\":\"kernels\",\"n\":%d,\"kernel_without_api\":%d,\"without_time\":%d,"
              "\"start_before_call\":%d,\"least_start_after_call_ns\":%lld,\"in_graphs\":%d,"
              "\"graph_correlations\":%zu}\n",
              kernels, without_call, without_time, before_call, static_cast<long long>(least),
              in_graph, graph_correlations.size());
}

void PrintWaits(const Facts& facts) {
  std::map<int, int> types;
  int waits = 0, matched = 0;
  ForEach<CUpti_ActivitySynchronization2>(
      CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, [&](const CUpti_ActivitySynchronization2& sync) {
        ++types[sync.type];
        if (sync.type != CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT) return;
        ++waits;
        matched += facts.events.count(sync.cudaEventSyncId) > 0;
      });
  std::printf("{\"probe\":\"waits\",\"wait_event\":%d,\"wait_event_matched_by_syncId\":%d,"
              "\"event_records\":%zu,\"types\":{",
              waits, matched, facts.events.size());
  const char* comma = "";
  for (const auto& [type, n] : types) {
    std::printf("%s\"%d\":%d", comma, type, n);
    comma = ",";
  }
  std::printf("}}\n");
}

void RunFacts() {
  Start();
  for (const Kinds& kinds : {kGpuWork, kRuntime, kDriver, kSyncs, kOverhead}) Enable(kinds, true);
  cudaStream_t a, b;
  cudaEvent_t event;
  void *host, *device;
  CUDA(cudaStreamCreate(&a));
  CUDA(cudaStreamCreate(&b));
  CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CUDA(cudaMallocHost(&host, 1 << 20));
  CUDA(cudaMalloc(&device, 1 << 20));
  CUDA(cudaMemcpyAsync(device, host, 1 << 20, cudaMemcpyHostToDevice, a));
  CUDA(cudaMemsetAsync(device, 0, 1 << 20, a));
  for (int i = 0; i < 4; ++i) {  // one event, recorded again and again
    Spin<<<1, 32, 0, a>>>(50000);
    CUDA(cudaEventRecord(event, a));
    CUDA(cudaStreamWaitEvent(b, event, 0));
    Empty<<<1, 32, 0, b>>>();
  }
  CUDA(cudaEventSynchronize(event));
  CUDA(cudaStreamSynchronize(b));
  cudaFunction_t function;
  CUDA(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(Empty)));
  cuLaunchKernel(reinterpret_cast<CUfunction>(function), 1, 1, 1, 32, 1, 1, 0,
                 reinterpret_cast<CUstream>(a), nullptr, nullptr);
  std::thread([&] {
    for (int i = 0; i < 5; ++i) Empty<<<2, 64, 0, b>>>();
    cudaStreamSynchronize(b);
  }).join();
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CUDA(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  Empty<<<1, 32, 0, a>>>();
  CUDA(cudaEventRecord(event, a));  // inside of a capture: an edge, or also a record?
  CUDA(cudaStreamWaitEvent(b, event, 0));
  Empty<<<1, 32, 0, b>>>();
  CUDA(cudaEventRecord(event, b));
  CUDA(cudaStreamWaitEvent(a, event, 0));
  CUDA(cudaStreamEndCapture(a, &graph));
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) CUDA(cudaGraphLaunch(exec, a));
  CUDA(cudaDeviceSynchronize());
  CUPTI(cuptiActivityFlushAll(1));
  std::lock_guard<std::mutex> lock(g_mutex);
  Facts facts = ReadCalls();
  PrintCalls(facts);
  PrintKernels(facts);
  PrintWaits(facts);
  ForEach<CUpti_ActivityOverhead3>(
      CUPTI_ACTIVITY_KIND_OVERHEAD, [](const CUpti_ActivityOverhead3& overhead) {
        std::printf("{\"probe\":\"overhead\",\"kind\":%d,\"us\":%.1f}\n", overhead.overheadKind,
                    (overhead.end - overhead.start) * 1e-3);
      });
}

// ---- cost
constexpr int kLaunches = 1000, kRepeats = 7, kNodes = 200;

double LaunchNs() {
  std::vector<double> times;
  for (int r = 0; r < kRepeats; ++r) {
    CUDA(cudaDeviceSynchronize());
    uint64_t begin = Now();
    for (int i = 0; i < kLaunches; ++i) Empty<<<1, 32>>>();
    times.push_back(static_cast<double>(Now() - begin) / kLaunches);
    CUDA(cudaDeviceSynchronize());
    cuptiActivityFlushAll(0);
  }
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  return times[kRepeats / 2];
}

void PrintLaunch(const char* mode, double off) {
  double ns = LaunchNs();
  std::printf("{\"probe\":\"launch\",\"mode\":\"%s\",\"ns\":%.0f,\"extra_ns\":%.0f,"
              "\"buffers\":%zu}\n",
              mode, ns, ns - off, g_requests);
}

void PrintGraph(const char* mode) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < kNodes; ++i) Empty<<<1, 32, 0, stream>>>();
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) CUDA(cudaGraphLaunch(exec, stream));
  CUDA(cudaStreamSynchronize(stream));
  constexpr int kTimes = 50;
  uint64_t begin = Now();
  for (int i = 0; i < kTimes; ++i) CUDA(cudaGraphLaunch(exec, stream));
  uint64_t launched = Now();
  CUDA(cudaStreamSynchronize(stream));
  uint64_t end = Now();
  std::printf("{\"probe\":\"graph\",\"mode\":\"%s\",\"nodes\":%d,\"launch_us\":%.2f,"
              "\"total_us\":%.2f}\n",
              mode, kNodes, (launched - begin) * 1e-3 / kTimes, (end - begin) * 1e-3 / kTimes);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  cuptiActivityFlushAll(0);
}

void PrintFlush() {
  for (bool busy : {false, true}) {
    if (busy) Spin<<<1, 32>>>(200'000'000);
    uint64_t begin = Now();
    for (int i = 0; i < 20; ++i) cuptiActivityFlushAll(0);
    std::printf("{\"probe\":\"flush\",\"busy\":%s,\"us\":%.1f}\n", busy ? "true" : "false",
                (Now() - begin) * 1e-3 / 20);
    CUDA(cudaDeviceSynchronize());
  }
}

void RunCost() {
  Start();
  g_keep = false;
  CUDA(cudaFree(nullptr));
  double off = LaunchNs();
  PrintLaunch("off", off);
  PrintGraph("off");
  uint64_t begin = Now();
  Enable(kGpuWork, true);
  Empty<<<1, 1>>>();
  CUDA(cudaDeviceSynchronize());
  std::printf("{\"probe\":\"first_enable\",\"ms\":%.2f}\n", (Now() - begin) * 1e-6);
  PrintLaunch("gpu work", off);
  Enable(kRuntime, true);
  PrintLaunch("+ runtime", off);
  for (CUpti_CallbackId id : {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                              CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx}) {
    CUPTI(cuptiActivityEnableDriverApi(id, 1));
  }
  PrintLaunch("+ driver launches", off);
  Enable(kSyncs, true);
  PrintLaunch("+ syncs and events", off);
  Enable(kOverhead, true);
  PrintLaunch("+ overhead, all that the recorder uses", off);
  PrintFlush();
  PrintGraph("node");
  Enable(kGraphs, true);
  PrintGraph("graph");
  Enable(kGraphs, false);
  Enable(kDriver, true);
  PrintLaunch("+ all of the driver", off);
  for (const Kinds& kinds : {kGpuWork, kRuntime, kDriver, kSyncs, kOverhead}) Enable(kinds, false);
  PrintLaunch("off again", off);
  size_t dropped = 0;
  cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped);
  std::printf("{\"probe\":\"dropped\",\"n\":%zu}\n", dropped);
}

// ---- exit: does CUPTI still work in a handler that was registered after cuInit?
void OnExit() {
  size_t before = g_buffers.size();
  CUptiResult result = cuptiActivityFlushAll(1);
  std::printf("{\"probe\":\"exit\",\"flush\":%d,\"buffers_then\":%zu,\"buffers_now\":%zu}\n",
              result, before, g_buffers.size());
  std::fflush(stdout);
}

void RunExit() {
  Start();
  Enable(kGpuWork, true);
  CUDA(cudaFree(nullptr));
  std::atexit(OnExit);
  for (int i = 0; i < 10; ++i) Empty<<<1, 32>>>();
}

}  // namespace

int main(int argc, char** argv) {
  std::string what = argc > 1 ? argv[1] : "";
  if (what == "facts") {
    RunFacts();
  } else if (what == "cost") {
    RunCost();
  } else if (what == "exit") {
    RunExit();
  } else {
    std::fprintf(stderr, "usage: probe facts|cost|exit\n");
    return 2;
  }
  return 0;
}
