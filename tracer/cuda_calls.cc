#include "tracer/cuda_calls.h"

#include <bitset>

namespace daydream::tracer {
namespace {

// Runtime calls that come often and do nothing: getters (those of properties and entry points
// while libraries start), and queries as the NCCL watchdog makes them.
#define RUNTIME(name) CUPTI_RUNTIME_TRACE_CBID_##name
constexpr CUpti_CallbackId kLeftOut[] = {
    RUNTIME(cudaGetDevice_v3020),
    RUNTIME(cudaGetLastError_v3020),
    RUNTIME(cudaPeekAtLastError_v3020),
    RUNTIME(cudaStreamIsCapturing_v10000),
    RUNTIME(cudaStreamIsCapturing_ptsz_v10000),
    RUNTIME(cudaStreamGetCaptureInfo_v10010),
    RUNTIME(cudaStreamGetCaptureInfo_ptsz_v10010),
    RUNTIME(cudaStreamGetCaptureInfo_v2_v11030),
    RUNTIME(cudaStreamGetCaptureInfo_v2_ptsz_v11030),
    RUNTIME(cudaStreamGetCaptureInfo_v12030),
    RUNTIME(cudaStreamGetCaptureInfo_ptsz_v12030),
    RUNTIME(cudaEventQuery_v3020),
    RUNTIME(cudaStreamQuery_v3020),
    RUNTIME(cudaStreamQuery_ptsz_v7000),
    RUNTIME(cudaFuncGetAttributes_v3020),
    RUNTIME(cudaDeviceGetAttribute_v5000),
    RUNTIME(cudaPointerGetAttributes_v4000),
    RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessor_v6000),
    RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessor_v6050),
    RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_v7000),
    RUNTIME(cudaOccupancyAvailableDynamicSMemPerBlock_v10200),
    RUNTIME(cudaOccupancyMaxPotentialClusterSize_v11070),
    RUNTIME(cudaOccupancyMaxActiveClusters_v11070),
    RUNTIME(cudaGetDeviceCount_v3020),
    RUNTIME(cudaGetDeviceProperties_v3020),
    RUNTIME(cudaGetDeviceProperties_v12000),
    RUNTIME(cudaGetDriverEntryPoint_v11030),
    RUNTIME(cudaGetDriverEntryPoint_ptsz_v11030),
    RUNTIME(cudaGetDriverEntryPointByVersion_v12050),
    RUNTIME(cudaGetDriverEntryPointByVersion_ptsz_v12050),
    RUNTIME(cudaMemGetInfo_v3020),
    RUNTIME(cudaStreamGetPriority_v5050),
    RUNTIME(cudaStreamGetPriority_ptsz_v7000),
    RUNTIME(cudaThreadExchangeStreamCaptureMode_v10010),
};
#undef RUNTIME

// Driver calls that launch, copy or wait, for programs that do without the runtime (Triton,
// pytorch/pytorch#99571). All driver calls would double the number of records.
#define DRIVER(name) CUPTI_DRIVER_TRACE_CBID_##name
#define DRIVER2(name) DRIVER(name), DRIVER(name##_ptsz)
#define BLOCKING2(name) DRIVER(name), DRIVER(name##_ptds)
constexpr CUpti_CallbackId kDriverCalls[] = {
    DRIVER2(cuLaunchKernel),
    DRIVER2(cuLaunchKernelEx),
    DRIVER2(cuLaunchCooperativeKernel),
    DRIVER(cuLaunchCooperativeKernelMultiDevice),
    DRIVER2(cuGraphLaunch),
    DRIVER2(cuStreamWaitEvent),
    DRIVER2(cuEventRecord),
    DRIVER2(cuEventRecordWithFlags),
    DRIVER2(cuStreamSynchronize),
    DRIVER(cuEventSynchronize),
    DRIVER(cuCtxSynchronize),
    DRIVER(cuCtxSynchronize_v2),
    DRIVER2(cuMemcpyHtoDAsync_v2),
    DRIVER2(cuMemcpyDtoHAsync_v2),
    DRIVER2(cuMemcpyDtoDAsync_v2),
    DRIVER2(cuMemcpyAsync),
    DRIVER2(cuMemcpyPeerAsync),
    DRIVER2(cuMemcpy2DAsync_v2),
    DRIVER2(cuMemcpy3DAsync_v2),
    DRIVER2(cuMemcpy3DPeerAsync),
    DRIVER2(cuMemcpyBatchAsync),
    DRIVER2(cuMemcpyBatchAsync_v2),
    DRIVER2(cuMemcpy3DBatchAsync),
    DRIVER2(cuMemcpy3DBatchAsync_v2),
    BLOCKING2(cuMemcpyPeer),
    BLOCKING2(cuMemcpy2D_v2),
    BLOCKING2(cuMemcpy2DUnaligned_v2),
    BLOCKING2(cuMemcpy3D_v2),
    BLOCKING2(cuMemcpy3DPeer),
    BLOCKING2(cuMemcpyHtoD_v2),
    BLOCKING2(cuMemcpyDtoH_v2),
    BLOCKING2(cuMemcpyDtoD_v2),
    BLOCKING2(cuMemcpy),
    DRIVER2(cuMemsetD8Async),
    DRIVER2(cuMemsetD16Async),
    DRIVER2(cuMemsetD32Async),
    BLOCKING2(cuMemsetD8_v2),
    BLOCKING2(cuMemsetD16_v2),
    BLOCKING2(cuMemsetD32_v2),
    DRIVER2(cuMemsetD2D8Async),
    DRIVER2(cuMemsetD2D16Async),
    DRIVER2(cuMemsetD2D32Async),
    BLOCKING2(cuMemsetD2D8_v2),
    BLOCKING2(cuMemsetD2D16_v2),
    BLOCKING2(cuMemsetD2D32_v2),
};
#undef DRIVER
#undef DRIVER2
#undef BLOCKING2

constexpr size_t kMaxCalls = 4096;  // ids beyond are of a CUDA that is newer than these lists

std::bitset<kMaxCalls> Set(std::span<const CUpti_CallbackId> ids) {
  std::bitset<kMaxCalls> set;
  for (CUpti_CallbackId id : ids) set.set(id);
  return set;
}

}  // namespace

std::span<const CUpti_CallbackId> RuntimeCallsLeftOut() { return kLeftOut; }

std::span<const CUpti_CallbackId> DriverCalls() { return kDriverCalls; }

bool IsRecordedCall(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  static const std::bitset<kMaxCalls> left_out = Set(kLeftOut), driver = Set(kDriverCalls);
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) return id >= kMaxCalls || !left_out[id];
  return id < kMaxCalls && driver[id];
}

}  // namespace daydream::tracer
