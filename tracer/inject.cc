// The six exported functions of libdaydream_inject.so. No exception leaves them.
#include <cstdint>

#include "tracer/gate.h"
#include "tracer/nvtx.h"
#include "tracer/recorder.h"

#define DAYDREAM_EXPORT extern "C" __attribute__((visibility("default")))

namespace tracer = daydream::tracer;

// Called by the driver in cuInit. 1: we are there, whatever happened.
DAYDREAM_EXPORT int InitializeInjection() {
  try {
    tracer::OpenCudaDoor();
  } catch (...) {
  }
  return 1;
}

// Called once by each module of the program that uses NVTX.
DAYDREAM_EXPORT int InitializeInjectionNvtx2(const void* (*get_export_table)(uint32_t)) {
  try {
    return tracer::OpenNvtxDoor(get_export_table);
  } catch (...) {
    return 0;
  }
}

// The same for NVTX's extensions, right after the first one.
DAYDREAM_EXPORT int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t* module) {
  return tracer::AttachNvtxExtension(module);
}

DAYDREAM_EXPORT uint32_t daydream_name(const char* text) {
  try {
    return tracer::RecorderName(text);
  } catch (...) {
    return 0;
  }
}

DAYDREAM_EXPORT void daydream_mark(uint32_t kind, uint32_t name, int64_t value) {
  try {
    tracer::RecorderMark(kind, name, value);
  } catch (...) {
  }
}

DAYDREAM_EXPORT void daydream_finish() {
  try {
    tracer::RecorderFinish();
  } catch (...) {
  }
}
