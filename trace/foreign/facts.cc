#include "trace/foreign/facts.h"

namespace daydream {
namespace {

constexpr FormatFacts kFacts[] = {
    {"ddtrace", "daydream trace, daydream import", "daydream trace -- PROGRAM", "everything"},
    {"nsys", "Nsight Systems 2020 to 2026, nsys export --type sqlite",
     "nsys profile --trace=cuda,nvtx --cuda-event-trace=true --cuda-graph-trace=node PROGRAM",
     "everything; layers and shapes with NVTX ranges (emit_nvtx)"},
    {"rocpd", "rocprofv3 of ROCm 7, SQLite",
     "rocprofv3 --hip-trace --kernel-trace --memory-copy-trace --marker-trace --output-format "
     "rocpd -- PROGRAM",
     "everything; without --hip-trace the GPU side only"},
    {"rocprof", "rocprofv3, JSON",
     "rocprofv3 --hip-trace --kernel-trace --memory-copy-trace --marker-trace --output-format json "
     "-- PROGRAM",
     "everything; without --hip-trace the GPU side only"},
    {"xplane", "JAX and TensorFlow, .xplane.pb", "jax.profiler.trace(FOLDER)",
     "CPU-bound questions and the GPU side: waits are not recorded"},
    {"kineto", "PyTorch profiler, JSON",
     "profile(activities=[CPU, CUDA], record_shapes=True, profile_memory=True)", "everything"},
};

}  // namespace

std::span<const FormatFacts> AllFormatFacts() { return kFacts; }

const FormatFacts* FindFormatFacts(std::string_view name) {
  for (const FormatFacts& facts : kFacts) {
    if (facts.name == name) return &facts;
  }
  return nullptr;
}

}  // namespace daydream
