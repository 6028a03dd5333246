#include "tracer/activities.h"

#include <algorithm>

#include "trace/recording/lacks.h"
#include "tracer/cuda_calls.h"

namespace daydream::tracer {
namespace {

struct Callback {
  CUpti_CallbackDomain domain;
  CUpti_CallbackId id;
};
constexpr Callback kFatalError = {CUPTI_CB_DOMAIN_STATE, CUPTI_CBID_STATE_FATAL_ERROR};
constexpr Callback kCallbacks[] = {
    {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED},
    {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED},
    {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020},
};
// Between these, layers of the nodes of a graph are marked; and its kernels are recorded only if
// that was on when it was made, for all we know.
#define DRIVER(name) CUPTI_DRIVER_TRACE_CBID_##name
constexpr CUpti_CallbackId kGraphCalls[] = {
    DRIVER(cuStreamBeginCapture),
    DRIVER(cuStreamBeginCapture_ptsz),
    DRIVER(cuStreamBeginCapture_v2),
    DRIVER(cuStreamBeginCapture_v2_ptsz),
    DRIVER(cuStreamBeginCaptureToGraph),
    DRIVER(cuStreamBeginCaptureToGraph_ptsz),
    DRIVER(cuStreamEndCapture),
    DRIVER(cuStreamEndCapture_ptsz),
    DRIVER(cuGraphInstantiate),
    DRIVER(cuGraphInstantiate_v2),
    DRIVER(cuGraphInstantiateWithFlags),
    DRIVER(cuGraphInstantiateWithParams),
    DRIVER(cuGraphInstantiateWithParams_ptsz),
};
#undef DRIVER
constexpr Callback kProfilerCallbacks[] = {
    {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuProfilerStart},
    {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuProfilerStop},
};

constexpr char kSelectedDriverCalls[] = "DRIVER (selected calls)";

}  // namespace

// By when they are recorded: facts that come once always, calls and GPU work in the window.
struct Activities::Kind {
  CUpti_ActivityKind kind;
  const char* name;
  Group group;
};

#define KIND(name, group) \
  { CUPTI_ACTIVITY_KIND_##name, #name, Group::group }
const Activities::Kind Activities::kKinds[] = {
    KIND(DEVICE, kFacts),
    KIND(CONTEXT, kFacts),
    KIND(STREAM, kFacts),
    // KERNEL would serialise the kernels (cupti_activity.h).
    KIND(CONCURRENT_KERNEL, kWork),
    KIND(MEMCPY, kWork),
    KIND(MEMCPY2, kWork),
    KIND(MEMSET, kWork),
    KIND(GRAPH_TRACE, kWork),
    KIND(RUNTIME, kCalls),
    KIND(SYNCHRONIZATION, kCalls),
    // Since CUDA 12.9 SYNCHRONIZATION does not bring it (pytorch/kineto#1552).
    KIND(CUDA_EVENT, kCalls),
    KIND(OVERHEAD, kCalls),
    KIND(INTERNAL_LAUNCH_API, kCalls),
};
const Activities::Kind Activities::kAllDriverCalls = KIND(DRIVER, kCalls);
#undef KIND

std::vector<Lack> Activities::Lacks() const {
  std::vector<Lack> lacks;
  const auto has = [&](const char* kind) {
    return std::find(kinds_.begin(), kinds_.end(), kind) != kinds_.end();
  };
  if (!has("DRIVER") && !has(kSelectedDriverCalls)) {
    lacks.push_back({std::string(kLackDriverCalls),
                     "launches that go past the CUDA runtime (Triton, NCCL) have no call on a "
                     "thread"});
  }
  if (api_->version < kHasEventSyncIds) {
    lacks.push_back({std::string(kLackEventIds),
                     "CUPTI before CUDA 12.8 does not say which record of a CUDA event a wait is "
                     "for: the last one before it is taken"});
  }
  if (api_->version == kCupti130) {
    lacks.push_back({std::string(kLackDeviceWaits),
                     "CUPTI of CUDA 13.0 before Update 1 has no records of cudaDeviceSynchronize"});
  }
  return lacks;
}

std::string Activities::Explain(CUptiResult result) const {
  switch (result) {
    case CUPTI_ERROR_NOT_INITIALIZED:
    case CUPTI_ERROR_UNKNOWN:
      return "CUPTI cannot work with this driver (" + ResultText(*api_, result) +
             "): CUPTI version " + std::to_string(api_->version) + " at " + api_->path +
             ", driver library " + LoadedLibrary("libcuda.so");
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "this user may not profile (" + ResultText(*api_, result) +
             "), see https://developer.nvidia.com/ERR_NVGPUCTRPERM";
    default:
      return "CUPTI refused to work: " + ResultText(*api_, result);
  }
}

std::string Activities::Subscribe(const CuptiHooks& hooks) {
  char other[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN + 128] = {};
  CUptiResult result = CUPTI_SUCCESS;
  if (api_->Subscribe_v2 != nullptr) {
    CUpti_SubscriberParams params{};
    params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    params.subscriberName = "daydream";
    params.oldSubscriberName = other;
    params.oldSubscriberSize = sizeof other;
    result = api_->Subscribe_v2(&subscriber_, hooks.callback, nullptr, &params);
  } else {
    result = api_->Subscribe(&subscriber_, hooks.callback, nullptr);
  }
  if (result == CUPTI_SUCCESS) return "";
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    return std::string("CUPTI is in use by ") + (other[0] == '\0' ? "another profiler" : other) +
           "; stop it (nsys, ncu, cuda-gdb, torch.profiler) and record again";
  }
  return Explain(result);
}

void Activities::SetAttributes() {
  if (api_->ActivitySetAttribute == nullptr) return;
  // Otherwise CUPTI clears each buffer on the thread of the program.
  uint8_t zeroed = 1;
  size_t size = sizeof zeroed;
  api_->ActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeroed);
  // No records of queries that found the work unfinished.
  if (api_->ActivityEnableAllSyncRecords != nullptr) api_->ActivityEnableAllSyncRecords(0);
}

std::string Activities::Start(const CuptiApi& api, const Options& options, const CuptiHooks& hooks,
                              bool on) {
  api_ = &api;
  options_ = &options;
  if (std::string why = Subscribe(hooks); !why.empty()) return why;
  uses_our_threads_ = api.SetThreadIdType != nullptr &&
                      api.SetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) == CUPTI_SUCCESS;
  uses_our_clock_ = api.ActivityRegisterTimestampCallback != nullptr &&
                    api.ActivityRegisterTimestampCallback(hooks.clock) == CUPTI_SUCCESS;
  SetAttributes();
  CUptiResult result = api.ActivityRegisterCallbacks(hooks.request, hooks.complete);
  if (result != CUPTI_SUCCESS) return Explain(result);
  EnableKinds();
  work_on_ = true;
  if (!records_work_) return Explain(refusal_);
  if (api.EnableCallback != nullptr) {
    api.EnableCallback(1, subscriber_, kFatalError.domain, kFatalError.id);
  }
  EnableCallbacks(true);
  first_time_ = false;
  if (!on) {
    Switch(false);
    SwitchWorkOff();
  }
  return "";
}

CUptiResult Activities::EnableOrShrink(CUpti_ActivityKind kind) {
  CUptiResult result = api_->ActivityEnable(kind);
  if (result != CUPTI_ERROR_OUT_OF_MEMORY || api_->ActivityGetAttribute == nullptr ||
      api_->ActivitySetAttribute == nullptr) {
    return result;
  }
  size_t bytes = 0, size = sizeof bytes;
  if (api_->ActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &bytes) !=
          CUPTI_SUCCESS ||
      bytes < 2) {
    return result;
  }
  bytes /= 2;
  api_->ActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &bytes);
  return api_->ActivityEnable(kind);
}

void Activities::SetKind(const Kind& kind, bool on) {
  if (kind.kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE && !options_->whole_graphs) return;
  if (first_time_) {
    const CUptiResult result = EnableOrShrink(kind.kind);
    if (result == CUPTI_SUCCESS) {
      kinds_.push_back(kind.name);
      records_work_ |= kind.group != Group::kFacts;
    } else {
      refused_.push_back(kind.name);
      if (refusal_ == CUPTI_SUCCESS) refusal_ = result;
    }
    return;
  }
  if (std::find(kinds_.begin(), kinds_.end(), kind.name) == kinds_.end()) return;
  const CUptiResult result = on ? EnableOrShrink(kind.kind) : api_->ActivityDisable(kind.kind);
  if (on && result != CUPTI_SUCCESS) refused_again_ = result;
}

void Activities::EnableKinds() {
  for (const Kind& kind : kKinds) SetKind(kind, true);
  EnableCalls(true);
}

void Activities::EnableCalls(bool on) {
  // After the kinds: enabling a kind overrides what was said about single calls.
  if (on && api_->ActivityEnableRuntimeApi != nullptr) {
    for (CUpti_CallbackId id : RuntimeCallsLeftOut()) api_->ActivityEnableRuntimeApi(id, 0);
  }
  // Without it (before CUDA 12.6) all driver calls are recorded, and the decoder leaves out the
  // rest.
  if (api_->ActivityEnableDriverApi == nullptr) return SetKind(kAllDriverCalls, on);
  CUptiResult last = CUPTI_SUCCESS;
  for (CUpti_CallbackId id : DriverCalls()) {
    // An older CUPTI does not know the newest calls.
    CUptiResult result = api_->ActivityEnableDriverApi(id, on);
    if (id == DriverCalls()[0]) last = result;
  }
  if (first_time_ && last == CUPTI_SUCCESS) kinds_.push_back(kSelectedDriverCalls);
}

void Activities::EnableCallbacks(bool on) {
  if (api_->EnableCallback == nullptr) return;
  for (const Callback& c : kCallbacks) api_->EnableCallback(on, subscriber_, c.domain, c.id);
  for (CUpti_CallbackId id : kGraphCalls) {
    api_->EnableCallback(on, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, id);
  }
  if (options_->capture != Capture::kProfiler) return;
  for (const Callback& c : kProfilerCallbacks) {
    api_->EnableCallback(on, subscriber_, c.domain, c.id);
  }
}

void Activities::Detach() {
  if (api_->version == kCupti130) return;
  EnableCallbacks(false);
  for (const Kind& kind : kKinds) {
    if (kind.group == Group::kFacts) SetKind(kind, false);
  }
}

void Activities::Switch(bool on) {
  // 13.0 GA can deadlock in Disable (notes of 13.0 Update 1): there the window stays open.
  if (!on && api_->version == kCupti130) return;
  refused_again_ = CUPTI_SUCCESS;
  for (const Kind& kind : kKinds) {
    if (kind.group == Group::kCalls || (on && kind.group == Group::kWork)) SetKind(kind, on);
  }
  EnableCalls(on);
  work_on_ |= on;
}

void Activities::SwitchWorkOff() {
  if (api_->version == kCupti130) return;
  SwitchWork(false);
}

void Activities::SwitchWorkOn() {
  refused_again_ = CUPTI_SUCCESS;
  SwitchWork(true);
}

void Activities::SwitchWork(bool on) {
  work_on_ = on;
  for (const Kind& kind : kKinds) {
    if (kind.group == Group::kWork) SetKind(kind, on);
  }
}

}  // namespace daydream::tracer
