// NVTX ranges become marks. Each module of the program that uses NVTX has a table of functions of
// its own, which it hands to InitializeInjectionNvtx2(); AttachNvtx() fills the slots we need, the
// others stay what they are: no-ops.
//
// Taken: push and pop ranges and marks of the default domain and of the domains "daydream", "TSL"
// (XLA's) and "NCCL"; registered, wide and plain texts; the size of NCCL's collectives. Not taken:
// ranges that may end on another thread (nvtxRangeStart), categories, colours, resources.
#pragma once

#include <cstdint>

typedef struct nvtxExtModuleInfo_t nvtxExtModuleInfo_t;

namespace daydream::tracer {

struct NvtxOptions {
  bool ranges = true;  // the default domain, "daydream", "TSL"
  bool nccl = true;    // "NCCL"
  // Where marks go, on the thread that made them; nullptr: Mark(). Kinds are RANGE_BEGIN (with
  // kMarkBytes: value is the size of a collective), COLLECTIVE behind it where NCCL names the
  // communicator, RANGE_END, POINT, and STEP (called
  // "nvtx") right before the begin of a range that is called "step 12" or "iteration 12", unless it
  // lies in another such range of its thread. NCCL's
  // ranges are renamed from "ncclAllReduce" to "nccl:AllReduce".
  void (*mark)(uint32_t kind, uint32_t name, int64_t value) = nullptr;
  // Whether mark() would take a mark of this kind now; nullptr: always. Asked first, so that a
  // range that is not recorded costs no name.
  bool (*takes)(uint32_t kind) = nullptr;
};

// To be called from InitializeInjectionNvtx2 with its argument, for each module once or more
// often. `get_export_table` is the NvtxGetExportTableFunc_t of the module. The options of the
// first call hold for all. Returns 1 (what NVTX wants to hear), 0 when the table is unusable.
int AttachNvtx(const void* (*get_export_table)(uint32_t table), const NvtxOptions& options);

// The same for the functions of NVTX's extensions, from InitializeInjectionNvtxExtension: ranges
// that end with a payload, as those in which NCCL makes communicators.
int AttachNvtxExtension(nvtxExtModuleInfo_t* module);

}  // namespace daydream::tracer
