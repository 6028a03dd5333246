// The functions of CUPTI that the recorder calls, found in a library that is loaded at run time.
// This table is the seam for tests: the recorder never calls CUPTI in another way.
#pragma once

#include <cupti.h>

#include <string>

namespace daydream::tracer {

// X(name, needed): without the needed ones there is no recording; the others may be null.
#define DAYDREAM_CUPTI_FUNCTIONS(X)           \
  X(GetVersion, true)                         \
  X(GetResultString, false)                   \
  X(GetTimestamp, false)                      \
  X(GetCallbackName, false)                   \
  X(GetGraphId, false)                        \
  X(GetGraphNodeId, false)                    \
  X(Subscribe, true)                          \
  X(Subscribe_v2, false)                      \
  X(EnableCallback, false)                    \
  X(SetThreadIdType, false)                   \
  X(ActivityRegisterTimestampCallback, false) \
  X(ActivityRegisterCallbacks, true)          \
  X(ActivityGetAttribute, false)              \
  X(ActivitySetAttribute, false)              \
  X(ActivityEnable, true)                     \
  X(ActivityDisable, true)                    \
  X(ActivityEnableDriverApi, false)           \
  X(ActivityEnableRuntimeApi, false)          \
  X(ActivityEnableAllSyncRecords, false)      \
  X(ActivityFlushAll, true)                   \
  X(ActivityGetNextRecord, true)              \
  X(ActivityGetNumDroppedRecords, false)

struct CuptiApi {
#define DAYDREAM_CUPTI_MEMBER(name, needed) decltype(&::cupti##name) name = nullptr;
  DAYDREAM_CUPTI_FUNCTIONS(DAYDREAM_CUPTI_MEMBER)
#undef DAYDREAM_CUPTI_MEMBER
  uint32_t version = 0;  // what GetVersion says
  std::string path;      // of the library
};

// Fills `api` from the CUPTI of the process: `given` if not empty, else the copy that the program
// has already loaded, else the one that belongs to its CUDA runtime or lies among its Python
// packages, else one of the system that the driver allows. Returns "" or why there is none. Which
// CUDA a CUPTI is of is told by its soname: cuptiGetVersion says 18 for 11.8 and for 12.1.
// Loads libraries: not to be called with a lock held.
std::string LoadCupti(const std::string& given, CuptiApi& api);

// "CUPTI_ERROR_NOT_INITIALIZED (15)"
std::string ResultText(const CuptiApi& api, CUptiResult result);

// Path of the library of this process whose file name begins so; "" if there is none.
std::string LoadedLibrary(const char* prefix);

// CUPTI_API_VERSION of CUDA 12.9, the first that takes a null buffer (in older ones it crashes:
// Kineto, CuptiActivityApi.cpp), and of 13.0 GA, whose Disable can deadlock (notes of 13.0 U1).
inline constexpr uint32_t kCuptiTakesNullBuffer = 27;
inline constexpr uint32_t kCupti130 = 130000;
inline constexpr uint32_t kCupti130Update1 = 130001;
inline constexpr uint32_t kCupti121 = 18;
// Of CUDA 12.8: waits and records of events have ids by which they find each other.
inline constexpr uint32_t kHasEventSyncIds = 26;
// Of CUDA 12.4: records of overhead are longer, and hand over data to be freed.
inline constexpr uint32_t kHasOverheadData = 22;

}  // namespace daydream::tracer
