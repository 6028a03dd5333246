// Names in Nsight Systems files, as the PyTorch profiler writes them: the other parts of the
// program know those.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/trace.h"

namespace daydream {

// "cudaMemcpyAsync" for "cudaMemcpyAsync_ptsz_v7000".
std::string_view NsysCallName(std::string_view name);

// What a call of this name waits for; kUnknown: it does not wait.
SyncKind NsysWaitOf(std::string_view call);
// Calls that ask whether something is done. They have synchronization rows, too, and wait for
// nothing.
bool IsNsysQuery(std::string_view call);

// NVIDIA's own demangler writes "f<(int)4, <unnamed>::g>(float *)" where everybody else writes
// "f<4, (anonymous namespace)::g>(float*)".
std::string PlainKernelName(std::string_view nvidia);

// "Memcpy HtoD (Pinned -> Device)" and "Memset (Device)". Kinds as in the file: copyKind of CUPTI,
// memory kinds of Nsight Systems' own (ENUM_CUDA_MEM_KIND).
std::string NsysCopyName(int64_t copy_kind, int64_t from, int64_t to);
std::string NsysSetName(int64_t memory_kind);
Memory NsysMemory(int64_t memory_kind);

}  // namespace daydream
