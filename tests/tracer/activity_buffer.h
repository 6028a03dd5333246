// Buffers of CUPTI activity records filled by hand, and a walker over them that needs no CUPTI.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tracer/recording.h"

namespace daydream::tracer {

class ActivityBuffer {
 public:
  // A record of zeros of the newest struct, but for its kind. It stays where it is until the next
  // call of AddTo().
  template <class Record>
  Record& AddTo(CUpti_ActivityKind kind) {
    const size_t at = used_;
    used_ += sizeof(Record);
    words_.resize((used_ + 7) / 8);
    auto* record = reinterpret_cast<Record*>(data() + at);
    record->kind = kind;
    return *record;
  }
  CUpti_ActivityKernel10& Kernel() {
    return AddTo<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  }
  CUpti_ActivityAPI& Runtime() { return AddTo<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME); }
  CUpti_ActivityMemcpy6& Memcpy() {
    return AddTo<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
  }
  CUpti_ActivityMemset4& Memset() {
    return AddTo<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
  }
  CUpti_ActivitySynchronization2& Sync() {
    auto& sync = AddTo<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    sync.cudaEventId = sync.streamId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    sync.cudaEventSyncId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    return sync;
  }
  CUpti_ActivityCudaEvent2& Event() {
    return AddTo<CUpti_ActivityCudaEvent2>(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
  }

  uint8_t* data() { return reinterpret_cast<uint8_t*>(words_.data()); }
  size_t size() const { return used_; }
  void AddZeros(size_t bytes) {
    used_ += bytes;
    words_.resize((used_ + 7) / 8);
  }

 private:
  std::vector<uint64_t> words_;  // records are aligned to 8 bytes
  size_t used_ = 0;
};

// Bytes of the newest record of a kind; 0: the walker does not know it.
inline size_t RecordSize(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return sizeof(CUpti_ActivityCudaEvent2);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return sizeof(CUpti_ActivityGraphTrace2);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return sizeof(CUpti_ActivityDevice5);
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return sizeof(CUpti_ActivityContext3);
    case CUPTI_ACTIVITY_KIND_STREAM:
      return sizeof(CUpti_ActivityStream);
    case CUPTI_ACTIVITY_KIND_NAME:
      return sizeof(CUpti_ActivityName);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    default:
      return 0;
  }
}

// As cuptiActivityGetNextRecord of CUPTI 13.0 does it.
inline CUptiResult NextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  uint8_t* at = reinterpret_cast<uint8_t*>(*record);
  at = at == nullptr ? buffer : at + RecordSize((*record)->kind);
  const auto left = static_cast<size_t>(buffer + valid - at);
  if (left < sizeof(CUpti_Activity)) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  auto* next = reinterpret_cast<CUpti_Activity*>(at);
  const size_t size = RecordSize(next->kind);
  if (size == 0) return CUPTI_ERROR_INVALID_KIND;
  if (size > left) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = next;
  return CUPTI_SUCCESS;
}

inline CUptiResult CallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char** name) {
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API &&
      cbid == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000) {
    *name = "cudaLaunchKernel_v7000";
  } else if (domain == CUPTI_CB_DOMAIN_RUNTIME_API &&
             cbid == CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020) {
    *name = "cudaMemcpyAsync_v3020";
  } else if (domain == CUPTI_CB_DOMAIN_DRIVER_API &&
             cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel) {
    *name = "cuLaunchKernel";
  } else if (domain == CUPTI_CB_DOMAIN_DRIVER_API &&
             cbid == CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2) {
    *name = "cuMemcpyHtoDAsync_v2";
  } else {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  return CUPTI_SUCCESS;
}

inline CuptiDecoding HandMadeCupti(uint32_t version = 130001) {
  return {.version = version, .next_record = NextRecord, .callback_name = CallbackName};
}

}  // namespace daydream::tracer
