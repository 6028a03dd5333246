#include "trace/foreign/facts.h"

namespace daydream {
namespace {

constexpr std::string_view kProfileBoth =
    "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], ...)";
constexpr std::string_view kProfileLater =
    "record after warm-up: profile(schedule=torch.profiler.schedule(wait=5, warmup=3, active=5))";
constexpr std::string_view kOfNsys =
    "nsys profile --trace=cuda,nvtx --cuda-event-trace=true --cuda-graph-trace=node PROGRAM";
constexpr std::string_view kOfRocpd =
    "rocprofv3 --hip-trace --kernel-trace --memory-copy-trace --marker-trace --output-format rocpd "
    "-- PROGRAM";
constexpr std::string_view kRocprof =
    "rocprofv3 --hip-trace --kernel-trace --memory-copy-trace --marker-trace --output-format json "
    "-- PROGRAM";
constexpr std::string_view kRocprofLater =
    "record more steps, or after warm-up: rocprofv3 --collection-period 30:10:1 (seconds)";

constexpr FormatFacts kFacts[] = {
    {"ddtrace", "daydream trace, daydream import", "daydream trace -- PROGRAM", "everything",
     kProfileBoth, kProfileLater, kProfileBoth},
    {"nsys", "Nsight Systems 2020 to 2026, nsys export --type sqlite", kOfNsys,
     "everything; layers and shapes with NVTX ranges (emit_nvtx)", kOfNsys,
     "record after warm-up: nsys profile --delay 30 --duration 10 (seconds), or "
     "--capture-range=cudaProfilerApi",
     kOfNsys},
    {"rocpd", "rocprofv3 of ROCm 7, SQLite", kOfRocpd,
     "everything; without --hip-trace the GPU side only", kOfRocpd, kRocprofLater, kOfRocpd},
    {"rocprof", "rocprofv3, JSON", kRocprof, "everything; without --hip-trace the GPU side only",
     kRocprof, kRocprofLater, kRocprof},
    {"rpd", "rocmProfileData (ROCm 6 and older), SQLite", "runTracer.sh -o trace.rpd PROGRAM",
     "everything; waits by the names of calls", "runTracer.sh -o trace.rpd PROGRAM",
     "record more steps, or begin later with rpdTracerControl", kOfRocpd},
    {"chakra", "Chakra (MLCommons), ASTRA-sim, .et", "chakra_converter (of chakra)",
     "what would take how long: durations and dependencies, no times to check against",
     "chakra_converter PyTorch, with the profile linked in (chakra_trace_link)",
     "record the program again for times of steps", "chakra_trace_link joins a profile"},
    {"xplane", "JAX and TensorFlow, .xplane.pb", "jax.profiler.trace(FOLDER)",
     "CPU-bound questions and the GPU side: waits are not recorded",
     "jax.profiler.trace(FOLDER) around steps on a GPU",
     "record after warm-up: jax.profiler.start_trace(FOLDER) after some steps",
     "on NVIDIA GPUs record the program with Nsight Systems: nsys profile --trace=cuda,nvtx"},
    {"kineto", "PyTorch profiler, JSON",
     "profile(activities=[CPU, CUDA], record_shapes=True, profile_memory=True)", "everything",
     kProfileBoth, kProfileLater, kProfileBoth},
};

}  // namespace

std::span<const FormatFacts> AllFormatFacts() { return kFacts; }

const FormatFacts* FindFormatFacts(std::string_view name) {
  for (const FormatFacts& facts : kFacts) {
    if (facts.name == name) return &facts;
  }
  return nullptr;
}

const FormatFacts& AdviceFor(std::string_view importer) {
  const FormatFacts* facts = FindFormatFacts(importer);
  return facts != nullptr ? *facts : *FindFormatFacts("kineto");
}

}  // namespace daydream
