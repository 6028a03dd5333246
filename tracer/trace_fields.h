// Field numbers and values of proto/daydream_trace.proto that a recorder writes. The recorder
// cannot use the generated code (it would bring libprotobuf into the recorded program);
// tests/tracer/encoder_test.cc reads what is written with these numbers by the generated code.
#pragma once

#include <cstdint>

namespace daydream::tracer {

namespace header {
enum : uint32_t { kFormatMinor = 1, kWriter = 2, kClock = 3, kClockOrigin = 4, kRanks = 5 };
enum : uint32_t { kRecording = 7 };
enum : uint32_t { kRankRank = 1, kRankWorldSize = 2, kRankLocalRank = 3 };
inline constexpr int32_t kClockMonotonic = 1;
}  // namespace header

namespace recording {
enum : uint32_t { kPid = 1, kParentPid = 2, kHostname = 3, kArgv = 4, kBootId = 5 };
enum : uint32_t { kSessionId = 6, kCuptiVersion = 7, kDriverVersion = 8, kRuntimeVersion = 9 };
enum : uint32_t { kCuptiPath = 10, kEnabledKinds = 11, kEnvironment = 12, kSoftware = 13 };
enum : uint32_t { kLacks = 14 };
enum : uint32_t { kKey = 1, kValue = 2 };
}  // namespace recording

namespace device {
enum : uint32_t { kId = 1, kName = 2, kUuid = 3, kComputeMajor = 4, kComputeMinor = 5 };
enum : uint32_t { kMultiprocessors = 6, kMemoryBytes = 7, kWarpSize = 8, kMaxThreads = 9 };
enum : uint32_t { kRegisters = 10, kSharedMemory = 11, kSmClock = 12, kMemoryBandwidth = 14 };
enum : uint32_t { kL2Bytes = 15, kMig = 16 };
}  // namespace device

namespace lane {
enum : uint32_t { kKind = 1, kName = 2, kDevice = 4, kProcess = 5, kNumber = 6, kContext = 7 };
enum : uint32_t { kPriority = 8, kFlags = 9 };
inline constexpr int32_t kThread = 1, kStream = 2;
}  // namespace lane

namespace context {
enum : uint32_t { kId = 1, kDevice = 2, kNullStream = 3 };
}

enum Kind : uint32_t {
  kCall = 4,
  kKernel = 5,
  kMemcpy = 6,
  kMemset = 7,
  kSync = 8,
  kEventRecord = 9,
  kGraphLaunch = 10,
  kOverhead = 11,
  kMark = 12,
};

// Column n is the bit 1 << n of a row's columns.
enum Column : uint32_t {
  kCorrelation = 1,
  kBytes = 2,
  kGraphNode = 4,
  kGraph = 5,
  kEvent = 6,
  kEventSync = 7,
  kReturnCode = 9,
  kDeviceTime = 10,
  kValue = 11,
  kFlags = 12,
};
// In the column flags: start and duration were not collected.
inline constexpr uint32_t kNoTime = 1;

namespace signature {
enum : uint32_t { kKind = 1, kName = 2, kLaunch = 3, kCopy = 4, kSync = 6, kApi = 7, kMark = 8 };
enum : uint32_t { kCopyFrom = 1, kCopyTo = 2, kCopyPeer = 3, kCopyFlags = 4 };
enum : uint32_t { kSyncKind = 1, kSyncStream = 2, kSyncContext = 4 };
enum : uint32_t { kApiDomain = 1, kApiCbid = 2 };
enum : uint32_t { kMarkKind = 1 };
}  // namespace signature

namespace definitions {
enum : uint32_t { kFirstString = 1, kStrings = 2, kFirstLane = 3, kLanes = 4 };
enum : uint32_t { kFirstSignature = 5, kSignatures = 6, kDevices = 11, kContexts = 12 };
}  // namespace definitions

namespace rows {
enum : uint32_t { kUsedSignature = 1, kUsedColumns = 2, kStart = 3, kDuration = 4, kLane = 5 };
enum : uint32_t { kSignature = 6, kCorrelation = 7, kBytes = 8, kGraphNode = 10, kGraph = 11 };
enum : uint32_t { kEvent = 12, kEventSync = 13, kReturnCode = 15, kDeviceTime = 16 };
enum : uint32_t { kValue = 17, kFlags = 18 };
}  // namespace rows

namespace graph_node {
enum : uint32_t { kGraph = 1, kNode = 2, kType = 3, kOrigin = 5, kCreated = 7, kLane = 8 };
}

namespace clock_snapshot {
enum : uint32_t { kTrace = 1, kRealtime = 2, kMonotonic = 3, kCupti = 4, kUncertainty = 5 };
}

namespace loss {
enum : uint32_t { kCuptiDropped = 1, kNoBuffer = 2, kUnknownKind = 3, kBackpressure = 4 };
enum : uint32_t { kInvalidTime = 5, kLostBytes = 6, kNotWritten = 7, kWriteError = 8 };
enum : uint32_t { kUnnamed = 9 };
}  // namespace loss

namespace event_chunk {
enum : uint32_t { kBase = 1, kDefinitions = 2, kRows = 3, kGraphNodes = 4, kClocks = 5, kLoss = 6 };
}

namespace chunk_ref {
enum : uint32_t { kOffset = 1, kStored = 2, kRaw = 3, kFirst = 4, kLast = 5, kType = 6 };
enum : uint32_t { kHasDefinitions = 7, kRows = 8 };
}  // namespace chunk_ref

namespace index {
enum : uint32_t { kChunks = 1, kLoss = 2, kEnd = 3, kEndDetail = 4, kEndNs = 5, kRows = 6 };
}

}  // namespace daydream::tracer
