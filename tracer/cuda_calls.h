// Which CUDA calls are recorded. CUPTI from CUDA 12.6 on is told; what an older one records beside
// is left out when its buffers are read.
#pragma once

#include <cupti.h>

#include <span>

namespace daydream::tracer {

// Runtime calls that are not recorded; all others are.
std::span<const CUpti_CallbackId> RuntimeCallsLeftOut();
// Driver calls that are recorded; no others are.
std::span<const CUpti_CallbackId> DriverCalls();

bool IsRecordedCall(CUpti_CallbackDomain domain, CUpti_CallbackId id);

}  // namespace daydream::tracer
