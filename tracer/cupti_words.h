// Numbers of CUPTI in words: those that the PyTorch profiler uses, so that both kinds of trace read
// the same.
#pragma once

#include <cstdint>
#include <string_view>

namespace daydream::tracer {

std::string_view DirectionWord(uint8_t copy_kind);      // "HtoD"
std::string_view MemoryWord(uint32_t memory_kind);      // "Pageable"
std::string_view SyncWord(uint32_t sync_type);          // "Stream Wait Event"
std::string_view OverheadWord(uint32_t overhead_kind);  // "Buffer Flush"

// CUpti_ActivityMemoryKind as the enum Memory of proto/daydream_trace.proto.
uint32_t MemoryNumber(uint32_t memory_kind);

// "cudaLaunchKernel_v7000" -> "cudaLaunchKernel"; "cuMemcpyHtoDAsync_v2" stays: there the suffix
// is part of the function's name, and has fewer digits.
std::string_view WithoutVersion(std::string_view name);

}  // namespace daydream::tracer
