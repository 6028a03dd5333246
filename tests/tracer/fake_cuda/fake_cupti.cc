// Entry points of the fake libcupti.so.13: those that the recorder uses, with the behaviour that
// the headers of CUDA 13.0 describe. faults.h says how to make it misbehave.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include <cupti.h>

#include "tests/tracer/fake_cuda/fake_cuda.h"
#include "tests/tracer/fake_cuda/fake_records.h"
#include "tests/tracer/fake_cuda/fake_tool.h"
#include "tests/tracer/fake_cuda/fake_version.h"
#include "tests/tracer/fake_cuda/faults.h"

namespace daydream {
namespace {

std::atomic<bool> g_finalized;

void ForkIfTold(const char* function) {
  if (FaultText("fork_in") != function) return;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
}

CUptiResult Result(const char* function, int64_t number = -1) {
  ForkIfTold(function);
  if (int code = FaultCode(function, number)) return static_cast<CUptiResult>(code);
  return g_finalized ? CUPTI_ERROR_NOT_INITIALIZED : CUPTI_SUCCESS;
}

void* DriverSymbol(const char* name) {
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver == nullptr ? nullptr : dlsym(driver, name);
}

// Calls a function of the fake driver that turns a handle into a number.
template <typename Number, typename Handle>
CUptiResult IdFromDriver(const char* entry, const char* name, Handle handle, Number* id) {
  if (CUptiResult result = Result(entry); result != CUPTI_SUCCESS) return result;
  auto get = reinterpret_cast<Number (*)(Handle)>(DriverSymbol(name));
  if (get == nullptr) return CUPTI_ERROR_NOT_INITIALIZED;
  *id = get(handle);
  return CUPTI_SUCCESS;
}

}  // namespace

void Finalize() {
  StopRecords();
  g_finalized = true;
}

}  // namespace daydream

using daydream::Result;

// Returns from the entry point when FAKE_CUPTI or an earlier fatal error says so.
#define FAIL_IF_TOLD(...)                                              \
  if (CUptiResult told = Result(__VA_ARGS__); told != CUPTI_SUCCESS) { \
    return told;                                                       \
  }

extern "C" {

CUptiResult cuptiGetVersion(uint32_t* version) {
  FAIL_IF_TOLD("GetVersion");
  *version =
      static_cast<uint32_t>(daydream::FaultNumber("version", daydream::TheFakeCupti().cupti));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  static thread_local char buffer[32];
  snprintf(buffer, sizeof buffer, "CUPTI_ERROR_%d", result);
  *text = buffer;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetErrorMessage(CUptiResult result, const char** text) {
  return cuptiGetResultString(result, text);
}
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char** name) {
  FAIL_IF_TOLD("GetCallbackName", cbid);
  *name = daydream::CallbackName(domain, cbid);
  return *name == nullptr ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                           void* userdata) {
  FAIL_IF_TOLD("Subscribe");
  if (daydream::FaultNumber("hang_subscribe") != 0) {
    puts("hangs");
    fflush(stdout);
    for (;;) pause();
  }
  if (!daydream::FaultText("subscriber").empty()) {
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  static int handle;
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&handle);
  daydream::StartTool(callback, userdata);
  auto set =
      reinterpret_cast<decltype(&fake_cuda_set_tool)>(daydream::DriverSymbol("fake_cuda_set_tool"));
  if (set != nullptr) set(&daydream::CuptiTool());
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                              void* userdata, CUpti_SubscriberParams* params) {
  FAIL_IF_TOLD("Subscribe_v2");
  if (params == nullptr || params->structSize != CUpti_SubscriberParams_STRUCT_SIZE) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  CUptiResult result = cuptiSubscribe(subscriber, callback, userdata);
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && params->oldSubscriberName) {
    snprintf(params->oldSubscriberName, params->oldSubscriberSize, "%s",
             daydream::FaultText("subscriber").c_str());
  }
  return result;
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
  FAIL_IF_TOLD("Unsubscribe");
  return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle,
                                CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  FAIL_IF_TOLD("EnableCallback", cbid);
  return daydream::SetCallback(domain, cbid, enable != 0) ? CUPTI_SUCCESS
                                                          : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  FAIL_IF_TOLD("ActivityRegisterCallbacks");
  daydream::Client().request = request;
  daydream::Client().complete = complete;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock) {
  FAIL_IF_TOLD("ActivityRegisterTimestampCallback");
  static int times = 0;
  if (++times > 1) fprintf(stderr, "fake CUPTI: timestamp callback registered %d times\n", times);
  daydream::Client().clock_offset = static_cast<int64_t>(clock()) - daydream::FakeNow();
  // Two readings of one clock are at most a scheduling delay apart.
  if (daydream::Client().clock_offset > -1'000'000'000 &&
      daydream::Client().clock_offset < 1'000'000'000) {
    daydream::Client().clock_offset = 0;
  }
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetTimestamp(uint64_t* now) {
  FAIL_IF_TOLD("GetTimestamp");
  *now = static_cast<uint64_t>(daydream::FakeNow() + daydream::Client().clock_offset);
  if (daydream::FaultText("timestamp") == "realtime") {
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    *now = static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
  }
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  FAIL_IF_TOLD("SetThreadIdType");
  daydream::UseSystemThreadIds(type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t* size,
                                      void* value) {
  FAIL_IF_TOLD("ActivitySetAttribute", attribute);
  if (attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER) {
    if (*size != 1) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
    daydream::Client().zeroed_buffers = *static_cast<uint8_t*>(value) != 0;
  }
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attribute, size_t* size,
                                      void* value) {
  FAIL_IF_TOLD("ActivityGetAttribute", attribute);
  memset(value, 0, *size);
  size_t device_buffer = 3'200'000;  // default of the real one
  if (attribute == CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE && *size == sizeof device_buffer) {
    memcpy(value, &device_buffer, sizeof device_buffer);
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  FAIL_IF_TOLD("ActivityEnable", kind);
  if (int64_t ms = daydream::FaultNumber("slow_enable_ms")) {
    usleep(static_cast<useconds_t>(ms) * 1000);
  }
  daydream::SetKind(kind, true);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind) {
  FAIL_IF_TOLD("ActivityEnableAndDump", kind);
  daydream::SetKind(kind, true);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  while (daydream::FaultNumber("hang_disable") != 0) pause();
  FAIL_IF_TOLD("ActivityDisable", kind);
  daydream::SetKind(kind, false);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable) {
  FAIL_IF_TOLD("ActivityEnableDriverApi", cbid);
  daydream::SetApi(CUPTI_CB_DOMAIN_DRIVER_API, cbid, enable != 0);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable) {
  FAIL_IF_TOLD("ActivityEnableRuntimeApi", cbid);
  daydream::SetApi(CUPTI_CB_DOMAIN_RUNTIME_API, cbid, enable != 0);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t) {
  FAIL_IF_TOLD("ActivityEnableAllSyncRecords");
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t) {
  FAIL_IF_TOLD("ActivityEnableCudaEventDeviceTimestamps");
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  FAIL_IF_TOLD("ActivityFlushAll", flag);
  bool forced = (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0;
  if (int64_t ms = daydream::FaultNumber("slow_flush_ms")) {
    usleep(static_cast<useconds_t>(ms) * 1000);
  }
  while (forced && daydream::FaultNumber("hang_forced") != 0) pause();
  daydream::FlushBuffers(forced);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  FAIL_IF_TOLD("ActivityGetNextRecord");
  auto* begin = reinterpret_cast<uint8_t*>(*record);
  uint8_t* next = begin == nullptr ? buffer : begin + daydream::RecordSize((*record)->kind);
  size_t left = static_cast<size_t>(buffer + valid - next);
  uint32_t kind = 0;
  if (left < sizeof kind) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  memcpy(&kind, next, sizeof kind);
  size_t size = daydream::RecordSize(kind);
  if (size == 0) return CUPTI_ERROR_INVALID_KIND;
  if (size > left) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  FAIL_IF_TOLD("ActivityGetNumDroppedRecords");
  *dropped = daydream::TakeDropped();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t* id) {
  return daydream::IdFromDriver("GetGraphNodeId", "fake_cuda_node_id", node, id);
}
CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t* id) {
  return daydream::IdFromDriver("GetGraphId", "fake_cuda_graph_id", graph, id);
}
CUptiResult cuptiGetGraphExecId(CUgraphExec exec, uint32_t* id) {
  return daydream::IdFromDriver("GetGraphExecId", "fake_cuda_exec_id", exec, id);
}
CUptiResult cuptiGetContextId(CUcontext, uint32_t* id) {
  FAIL_IF_TOLD("GetContextId");
  *id = 1;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetDeviceId(CUcontext, uint32_t* id) {
  FAIL_IF_TOLD("GetDeviceId");
  *id = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiFinalize() {
  fprintf(stderr, "fake CUPTI: cuptiFinalize races with other threads\n");
  return CUPTI_SUCCESS;
}

}  // extern "C"
