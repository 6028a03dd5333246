// The door that the driver opens in cuInit, and what CUPTI calls. Nothing here calls CUDA.
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>

#include "tracer/gate.h"
#include "tracer/graph_nodes.h"
#include "tracer/marks.h"
#include "tracer/message.h"
#include "tracer/recorder.h"

namespace daydream::tracer {
namespace {

// More than two clocks of one machine that are the same can differ in two readings.
constexpr int64_t kSameClockNs = 1'000'000'000;

void OnRequest(uint8_t** buffer, size_t* size, size_t* max_records) {
  Recorder& r = TheRecorder();
  *max_records = 0;
  *size = r.pool.buffer_bytes();
  *buffer = r.pool.Take();
  r.cupti_asked.store(true, std::memory_order_relaxed);
}

void OnComplete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  Recorder& r = TheRecorder();
  if (buffer != nullptr && r.pool.Fill(buffer, valid)) r.wake.Post();
}

uint64_t Clock() { return static_cast<uint64_t>(MonotonicNs()); }

void OnGraphNode(Recorder& r, CUpti_CallbackId id, const CUpti_GraphData& data) {
  if (r.api.GetGraphId == nullptr || r.api.GetGraphNodeId == nullptr) return;
  GraphNode node;
  node.created_ns = MonotonicNs();
  node.thread = static_cast<uint32_t>(syscall(SYS_gettid));
  node.type = static_cast<uint32_t>(data.nodeType);
  if (r.api.GetGraphId(data.graph, &node.graph) != CUPTI_SUCCESS ||
      r.api.GetGraphNodeId(data.node, &node.node) != CUPTI_SUCCESS) {
    return;
  }
  if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED &&
      r.api.GetGraphNodeId(data.originalNode, &node.origin_node) != CUPTI_SUCCESS) {
    return;
  }
  NoteGraphNode(node);
}

void OnFatalError(Recorder& r, const CUpti_StateData& data) {
  r.cupti_error =
      data.notification.result == CUPTI_SUCCESS ? CUPTI_ERROR_UNKNOWN : data.notification.result;
  r.wake.Post();
}

bool Succeeded(const CUpti_CallbackData& call) {
  const auto* result = static_cast<const CUresult*>(call.functionReturnValue);
  return result == nullptr || *result == CUDA_SUCCESS;
}

void OnDriverCall(Recorder& r, CUpti_CallbackId id, const CUpti_CallbackData& call) {
  const bool enter = call.callbackSite == CUPTI_API_ENTER;
  switch (id) {
    // Recorded is what lies between the return of the first and the call of the second.
    case CUPTI_DRIVER_TRACE_CBID_cuProfilerStart:
      return enter ? void() : WishProfiler(r, true);
    case CUPTI_DRIVER_TRACE_CBID_cuProfilerStop:
      return enter ? WishProfiler(r, false) : void();
    case CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture:
    case CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz:
      return enter ? void() : CaptureEnded();
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz:
      return enter ? RecordGraphs(r) : void();
    default:  // one of those that begin a capture
      if (enter) return RecordGraphs(r);
      if (Succeeded(call)) CaptureBegan();
  }
}

void OnApi(Recorder& r, CUpti_CallbackDomain domain, CUpti_CallbackId id,
           const CUpti_CallbackData& call) {
  if (domain != CUPTI_CB_DOMAIN_RUNTIME_API) return OnDriverCall(r, id, call);
  // cudaDeviceReset destroys the context, and what CUPTI has not handed out with it.
  if (call.callbackSite == CUPTI_API_ENTER) r.api.ActivityFlushAll(0);
}

void OnCallback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  Recorder& r = TheRecorder();
  if (r.state.load() != State::kOn || r.cupti_error != 0) return;
  if (domain == CUPTI_CB_DOMAIN_STATE) {
    return OnFatalError(r, *static_cast<const CUpti_StateData*>(data));
  }
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
    const auto& resource = *static_cast<const CUpti_ResourceData*>(data);
    return OnGraphNode(r, id, *static_cast<CUpti_GraphData*>(resource.resourceDescriptor));
  }
  OnApi(r, domain, id, *static_cast<const CUpti_CallbackData*>(data));
}

// What to add to CUPTI's times when it did not take our clock, or took it and uses another.
int64_t CuptiOffset(const Recorder& r) {
  uint64_t cupti = 0;
  const int64_t before = MonotonicNs();
  if (r.api.GetTimestamp == nullptr || r.api.GetTimestamp(&cupti) != CUPTI_SUCCESS) return 0;
  const int64_t middle = before + (MonotonicNs() - before) / 2;
  const int64_t offset = middle - static_cast<int64_t>(cupti);
  const bool same = offset > -kSameClockNs && offset < kSameClockNs;
  return same && r.activities.uses_our_clock() ? 0 : offset;
}

void WarnAboutStart(const Recorder& r) {
  if (r.environment.library_path.find("/stubs") != std::string::npos ||
      LoadedLibrary("libcuda.so").find("/stubs/") != std::string::npos) {
    Warn("LD_LIBRARY_PATH has a folder of CUDA stubs, with which CUPTI does not work");
  }
  if (r.api.version == kCupti130) {
    Warn(
        "CUPTI of CUDA 13.0 (before Update 1) has no records of cudaDeviceSynchronize, and cannot "
        "be switched off again; update it");
  }
  if (!r.activities.uses_our_clock()) {
    Warn("CUPTI refused our clock; its own is used, which may step");
  }
  std::string refused;
  for (const std::string& kind : r.activities.refused()) {
    refused += (refused.empty() ? "" : ", ") + kind;
  }
  if (!refused.empty()) {
    Warn("CUPTI refused to record " + refused + ": " + ResultText(r.api, r.activities.refusal()) +
         "; the rest is recorded");
  }
}

// Returns "" or why there is no CUPTI. Without a lock: it loads a library, and CUPTI loads others.
std::string StartCupti(Recorder& r) {
  std::string why = LoadCupti(r.environment.cupti_path, r.api);
  if (!why.empty()) return "cannot load CUPTI (" + why + ")";
  const Options& o = r.environment.options;
  r.pool.Configure(static_cast<size_t>(o.buffer_bytes), static_cast<size_t>(o.pool_bytes),
                   r.api.version >= kCuptiTakesNullBuffer);
  const bool open = r.window_open;
  why = r.activities.Start(r.api, o, {OnRequest, OnComplete, Clock, OnCallback}, open);
  if (!why.empty()) return why;
  r.cupti_offset_ns = CuptiOffset(r);
  WarnAboutStart(r);
  // From here on marks switch it; they may have switched the window meanwhile.
  std::lock_guard lock(r.window_mutex);
  r.cupti_ready = true;
  if (r.window_open != open) r.activities.Switch(r.window_open);
  return "";
}

// False: somebody opened it before, or nothing is recorded.
bool BeginToOpen(Recorder& r) {
  std::lock_guard lock(r.mutex);
  if (r.cuda_door || !ReadEnvironmentOnce(r)) return false;
  r.cuda_door = true;
  OpenGate();
  if (!StartRecorder(r)) return false;
  r.opening = true;
  return true;
}

}  // namespace

void OpenCudaDoor() {
  Recorder& r = TheRecorder();
  TouchThreadLocals();
  if (!BeginToOpen(r)) return;
  std::string why = StartCupti(r);
  // After CUPTI has registered what it does at exit, so that ours comes before.
  WatchExits(r);
  if (!why.empty()) {
    Warn(why + "; GPU work will be missing from the trace");
    std::lock_guard lock(r.mutex);
    r.notes.push_back("cupti=absent: " + why);
    r.worth_a_file = true;
  }
  r.opening = false;
  r.wake.Post();
}

}  // namespace daydream::tracer
