// What a CUDA or HIP API call does, told from its name.
#pragma once

#include <string_view>

#include "graph/graph.h"

namespace daydream {

enum class CallKind : unsigned char {
  kOther,
  kLaunch,       // kernel launches
  kGraphLaunch,  // cudaGraphLaunch, hipGraphLaunch
  kCopyAsync,    // cudaMemcpyAsync and kin
  kCopy,         // cudaMemcpy, hipMemcpyWithStream: return after the copy
  kMemset,
  kDeviceSync,
  kStreamSync,
  kEventSync,
  kEventRecord,
  kStreamWait,  // cudaStreamWaitEvent
  kFree,        // waits for the device as a side effect
  kQuery,       // never waits
};

CallKind ClassifyCall(std::string_view name);
// "cudaLaunchKernel" and "hipLaunchKernel" are runtime calls, "cuLaunchKernel" a driver call.
bool IsDriverCall(std::string_view name);

// The waiting part of a call that was split in two (docs/how-it-works.md), or None.
TaskId OwnWait(const Graph& graph, TaskId call);

}  // namespace daydream
