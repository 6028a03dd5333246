#include "tracer/cupti_decoder.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "tracer/cuda_calls.h"
#include "tracer/cupti_api.h"
#include "tracer/cupti_words.h"
#include "tracer/name_table.h"

namespace daydream::tracer {
namespace {

// Versions of CUPTI (cupti_version.h) that brought fields which are read here. Everything else is
// in the structs of CUDA 11.6 (version 17) and newer.
constexpr uint32_t kHasClusters = 18;             // CUDA 11.8: CUpti_ActivityKernel8
constexpr uint32_t kHasOverheadCorrelation = 20;  // CUDA 12.2: CUpti_ActivityOverhead2
// (kHasOverheadData, CUDA 12.4: CUpti_ActivityOverhead3)
// (kHasEventSyncIds, CUDA 12.8: Synchronization2 and CudaEvent2)
// The following may have come earlier; fields that exist and are not read do no harm.
constexpr uint32_t kHasActiveClusters = 26;  // CUpti_ActivityKernel9
constexpr uint32_t kHasDeviceTimestamps = 130000;

// The number in the enum at `offset` of a record. It may be one that the enum does not have (a
// newer library, a damaged buffer): to read it as the enum, or to refer to it (records are packed),
// would be undefined.
template <class Record>
uint32_t NumberAt(const Record& record, size_t offset) {
  uint32_t number;
  std::memcpy(&number, reinterpret_cast<const char*>(&record) + offset, sizeof number);
  return number;
}

// Where the compiler sees the fields that are read. CUPTI's layout never changes, so a failure
// here means other packing rules, not another version.
static_assert(offsetof(CUpti_ActivityKernel10, start) == 16);
static_assert(offsetof(CUpti_ActivityKernel10, end) == 24);
static_assert(offsetof(CUpti_ActivityKernel10, deviceId) == 40);
static_assert(offsetof(CUpti_ActivityKernel10, streamId) == 48);
static_assert(offsetof(CUpti_ActivityKernel10, gridX) == 52);
static_assert(offsetof(CUpti_ActivityKernel10, blockX) == 64);
static_assert(offsetof(CUpti_ActivityKernel10, staticSharedMemory) == 76);
static_assert(offsetof(CUpti_ActivityKernel10, correlationId) == 92);
static_assert(offsetof(CUpti_ActivityKernel10, name) == 104);
static_assert(offsetof(CUpti_ActivityKernel10, graphNodeId) == 144);
static_assert(offsetof(CUpti_ActivityKernel10, graphId) == 156);
static_assert(offsetof(CUpti_ActivityKernel10, clusterX) == 176);
static_assert(offsetof(CUpti_ActivitySynchronization2, type) == 4);
static_assert(offsetof(CUpti_ActivitySynchronization2, start) == 8);
static_assert(offsetof(CUpti_ActivitySynchronization2, correlationId) == 24);
static_assert(offsetof(CUpti_ActivitySynchronization2, streamId) == 32);
static_assert(offsetof(CUpti_ActivitySynchronization2, cudaEventId) == 36);
static_assert(offsetof(CUpti_ActivitySynchronization2, cudaEventSyncId) == 40);
static_assert(offsetof(CUpti_ActivitySynchronization2, returnValue) == 48);
static_assert(offsetof(CUpti_ActivityCudaEvent2, correlationId) == 4);
static_assert(offsetof(CUpti_ActivityCudaEvent2, streamId) == 12);
static_assert(offsetof(CUpti_ActivityCudaEvent2, eventId) == 16);
static_assert(offsetof(CUpti_ActivityCudaEvent2, deviceTimestamp) == 40);
static_assert(offsetof(CUpti_ActivityCudaEvent2, cudaEventSyncId) == 48);
static_assert(offsetof(CUpti_ActivityMemcpy6, bytes) == 8);
static_assert(offsetof(CUpti_ActivityMemcpy6, correlationId) == 44);
static_assert(offsetof(CUpti_ActivityMemcpy6, graphNodeId) == 64);
static_assert(offsetof(CUpti_ActivityMemcpyPtoP4, correlationId) == 60);
static_assert(offsetof(CUpti_ActivityMemcpyPtoP4, graphNodeId) == 72);
static_assert(offsetof(CUpti_ActivityMemset4, correlationId) == 44);
static_assert(offsetof(CUpti_ActivityMemset4, memoryKind) == 50);
static_assert(offsetof(CUpti_ActivityMemset4, graphNodeId) == 64);
static_assert(offsetof(CUpti_ActivityAPI, correlationId) == 32);
static_assert(offsetof(CUpti_ActivityGraphTrace2, streamId) == 36);
static_assert(offsetof(CUpti_ActivityOverhead3, start) == 24);
static_assert(offsetof(CUpti_ActivityOverhead3, overheadData) == 48);
static_assert(offsetof(CUpti_ActivityStream, flag) == 16);
static_assert(offsetof(CUpti_ActivityContext3, nullStreamId) == 14);
static_assert(offsetof(CUpti_ActivityDevice5, id) == 112);
static_assert(offsetof(CUpti_ActivityDevice5, name) == 136);

constexpr uint32_t kInvalid32 = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
constexpr uint32_t kDriverDomain = CUPTI_CB_DOMAIN_DRIVER_API;
constexpr uint32_t kRuntimeDomain = CUPTI_CB_DOMAIN_RUNTIME_API;
constexpr uint32_t kNumberOfCalls = 4096;  // cbids beyond are not cached

constexpr uint32_t Bit(Column column) { return 1u << column; }

uint32_t CopyName(uint8_t direction, uint8_t from, uint8_t to) {
  std::string text = "Memcpy ";
  text.append(DirectionWord(direction)).append(" (").append(MemoryWord(from));
  text.append(" -> ").append(MemoryWord(to)).append(")");
  return names.Intern(text);
}

// The columns that say which graph launched the work; the values go into `row`.
uint32_t GraphColumns(uint64_t node, uint32_t graph, Row& row) {
  row.wide = node;
  row.small = graph;
  return (node != 0 ? Bit(kGraphNode) : 0) | (graph != 0 ? Bit(kGraph) : 0);
}

template <class T>
const T& As(const CUpti_Activity& record) {
  return reinterpret_cast<const T&>(record);
}

}  // namespace

CuptiDecoder::CuptiDecoder(Encoder& encoder, Losses& losses, int64_t clock_origin_ns,
                           void (*full)(void* user), void* user)
    : encoder_(encoder), losses_(losses), origin_(clock_origin_ns), full_(full), user_(user) {
  for (std::vector<uint32_t>& calls : calls_) calls.resize(kNumberOfCalls);
}

void CuptiDecoder::Decode(uint8_t* buffer, size_t valid) {
  kernel_names_.fill({});
  CUpti_Activity* record = nullptr;
  while (true) {
    const CUptiResult result = cupti_.next_record(buffer, valid, &record);
    if (result == CUPTI_SUCCESS) {
      DecodeRecord(*record);
      continue;
    }
    if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) {
      // From here on nothing can be found, because only CUPTI knows how long a record is. The
      // record read last is counted as well: its length is not known either.
      const size_t good =
          record == nullptr ? 0 : static_cast<size_t>(reinterpret_cast<uint8_t*>(record) - buffer);
      losses_.lost_bytes += valid - good;
      ++losses_.unknown_kind;
    }
    return;
  }
}

void CuptiDecoder::DecodeRecord(const CUpti_Activity& record) {
  switch (NumberAt(record, offsetof(CUpti_Activity, kind))) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return DecodeKernel(As<CUpti_ActivityKernel10>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return DecodeMemcpy(As<CUpti_ActivityMemcpy6>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return DecodePeerMemcpy(As<CUpti_ActivityMemcpyPtoP4>(record));
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return DecodeMemset(As<CUpti_ActivityMemset4>(record));
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API:
      return DecodeCall(As<CUpti_ActivityAPI>(record));
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return DecodeSync(As<CUpti_ActivitySynchronization2>(record));
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return DecodeEvent(As<CUpti_ActivityCudaEvent2>(record));
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return DecodeGraph(As<CUpti_ActivityGraphTrace2>(record));
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return DecodeOverhead(As<CUpti_ActivityOverhead3>(record));
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return DecodeDevice(As<CUpti_ActivityDevice5>(record));
    case CUPTI_ACTIVITY_KIND_CONTEXT: {
      const auto& context = As<CUpti_ActivityContext3>(record);
      return encoder_.SetContext(context.contextId, context.deviceId, context.nullStreamId);
    }
    case CUPTI_ACTIVITY_KIND_STREAM: {
      const auto& stream = As<CUpti_ActivityStream>(record);
      return encoder_.SetStream(stream.contextId, stream.streamId,
                                static_cast<int32_t>(stream.priority),
                                NumberAt(stream, offsetof(CUpti_ActivityStream, flag)));
    }
    default:
      ++losses_.unknown_kind;
  }
}

// ---- GPU work ----

void CuptiDecoder::DecodeKernel(const CUpti_ActivityKernel10& k) {
  const Times times = TimesOf(k.start, k.end);
  Signature signature{.kind = kKernel, .name = KernelName(k.name)};
  const auto u = [](int32_t value) { return static_cast<uint32_t>(value); };
  signature.detail = {u(k.gridX),
                      u(k.gridY),
                      u(k.gridZ),
                      u(k.blockX),
                      u(k.blockY),
                      u(k.blockZ),
                      k.registersPerThread,
                      u(k.staticSharedMemory) + u(k.dynamicSharedMemory),
                      u(k.dynamicSharedMemory),
                      k.sharedMemoryExecuted,
                      k.localMemoryPerThread};
  if (cupti_.version >= kHasClusters) {
    signature.detail[11] = k.clusterX;
    signature.detail[12] = k.clusterY;
    signature.detail[13] = k.clusterZ;
  }
  signature.detail[14] = k.launchType;
  signature.detail[15] = k.cacheConfig.both;
  if (cupti_.version >= kHasActiveClusters) signature.detail[16] = k.maxActiveClusters;
  Row row{.lane = encoder_.StreamLane(k.deviceId, k.contextId, k.streamId),
          .correlation = k.correlationId};
  signature.columns = GraphColumns(k.graphNodeId, k.graphId, row);
  Add(RowGroup::kDevice, signature, row, times);
}

void CuptiDecoder::DecodeMemcpy(const CUpti_ActivityMemcpy6& c) {
  Signature signature{.kind = kMemcpy, .name = CopyName(c.copyKind, c.srcKind, c.dstKind)};
  signature.detail = {MemoryNumber(c.srcKind), MemoryNumber(c.dstKind), 0, c.flags};
  Row row{.lane = encoder_.StreamLane(c.deviceId, c.contextId, c.streamId),
          .correlation = c.correlationId,
          .word = c.bytes};
  signature.columns = Bit(kBytes) | GraphColumns(c.graphNodeId, c.graphId, row);
  Add(RowGroup::kDevice, signature, row, TimesOf(c.start, c.end));
}

void CuptiDecoder::DecodePeerMemcpy(const CUpti_ActivityMemcpyPtoP4& c) {
  const uint32_t peer = c.dstDeviceId == c.deviceId ? c.srcDeviceId : c.dstDeviceId;
  Signature signature{.kind = kMemcpy, .name = CopyName(c.copyKind, c.srcKind, c.dstKind)};
  signature.detail = {MemoryNumber(c.srcKind), MemoryNumber(c.dstKind), peer + 1, c.flags};
  Row row{.lane = encoder_.StreamLane(c.deviceId, c.contextId, c.streamId),
          .correlation = c.correlationId,
          .word = c.bytes};
  signature.columns = Bit(kBytes) | GraphColumns(c.graphNodeId, c.graphId, row);
  Add(RowGroup::kDevice, signature, row, TimesOf(c.start, c.end));
}

void CuptiDecoder::DecodeMemset(const CUpti_ActivityMemset4& m) {
  std::string text = "Memset (";
  text.append(MemoryWord(m.memoryKind)).append(")");
  Signature signature{.kind = kMemset, .name = names.Intern(text)};
  signature.detail = {0, MemoryNumber(m.memoryKind), 0, m.flags};
  Row row{.lane = encoder_.StreamLane(m.deviceId, m.contextId, m.streamId),
          .correlation = m.correlationId,
          .word = m.bytes};
  signature.columns = Bit(kBytes) | GraphColumns(m.graphNodeId, m.graphId, row);
  Add(RowGroup::kDevice, signature, row, TimesOf(m.start, m.end));
}

void CuptiDecoder::DecodeGraph(const CUpti_ActivityGraphTrace2& g) {
  Signature signature{.kind = kGraphLaunch, .name = names.Intern("CUDA graph")};
  Row row{.lane = encoder_.StreamLane(g.deviceId, g.contextId, g.streamId),
          .correlation = g.correlationId};
  signature.columns = GraphColumns(0, g.graphId, row);
  Add(RowGroup::kDevice, signature, row, TimesOf(g.start, g.end));
}

// ---- What the CPU does ----

void CuptiDecoder::DecodeCall(const CUpti_ActivityAPI& c) {
  const bool internal = c.kind == CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API;
  const uint32_t domain = c.kind == CUPTI_ACTIVITY_KIND_RUNTIME ? kRuntimeDomain : kDriverDomain;
  if (!internal && !IsRecordedCall(static_cast<CUpti_CallbackDomain>(domain), c.cbid)) return;
  const Times times = TimesOf(c.start, c.end);
  Row row{.lane = encoder_.ThreadLane(c.threadId), .correlation = c.correlationId};
  const bool plain = !internal && c.returnValue == 0 && c.correlationId != 0 && times.known &&
                     c.cbid < kNumberOfCalls;
  uint32_t* known = plain ? &calls_[domain == kRuntimeDomain][c.cbid] : nullptr;
  if (known != nullptr && *known != 0) {
    row.start = last_start_ = times.start;
    row.duration = times.duration;
    row.signature = *known - 1;
    encoder_.Add(RowGroup::kHost, row);
    if (encoder_.IsFull()) full_(user_);
    return;
  }
  Signature signature{.kind = kCall};
  if (internal) {  // its cbid has no meaning
    signature.name = names.Intern("cuLaunchKernel (internal)");
    signature.detail = {domain, 0};
  } else {
    signature.name = CallName(domain, c.cbid);
    signature.detail = {domain, c.cbid};
  }
  if (c.returnValue != 0) {
    signature.columns = Bit(kReturnCode);
    row.word = c.returnValue;
  }
  Add(RowGroup::kHost, signature, row, times);
  if (known != nullptr) *known = row.signature + 1;
}

void CuptiDecoder::DecodeSync(const CUpti_ActivitySynchronization2& s) {
  const uint32_t type = NumberAt(s, offsetof(CUpti_ActivitySynchronization2, type));
  Signature signature{.kind = kSync, .name = names.Intern(SyncWord(type))};
  const bool has_stream = s.streamId != kInvalid32;
  // The numbers of CUPTI and of the file are the same.
  signature.detail = {type, has_stream ? s.streamId + 1 : 0, s.contextId};
  Row row{.lane = encoder_.StreamLane(Encoder::kUnknownDevice, s.contextId,
                                      has_stream ? s.streamId : Encoder::kNoStream),
          .correlation = s.correlationId};
  if (s.cudaEventId != kInvalid32) {
    signature.columns |= Bit(kEvent);
    row.small = s.cudaEventId;
  }
  if (cupti_.version >= kHasEventSyncIds) {
    const bool has_id = s.cudaEventSyncId != kInvalid32 && s.cudaEventSyncId != ~uint64_t{0};
    if (has_id && s.cudaEventId != kInvalid32) {
      signature.columns |= Bit(kEventSync);
      row.wide = s.cudaEventSyncId;
    }
    if (s.returnValue != 0) {
      signature.columns |= Bit(kReturnCode);
      row.word = s.returnValue;
    }
  }
  Add(RowGroup::kHost, signature, row, TimesOf(s.start, s.end));
}

void CuptiDecoder::DecodeEvent(const CUpti_ActivityCudaEvent2& e) {
  Signature signature{.kind = kEventRecord, .name = names.Intern("Event Record")};
  signature.columns = Bit(kEvent);
  signature.detail = {0, e.streamId + 1, e.contextId};
  const bool has_device = cupti_.version >= kHasEventSyncIds;
  Row row{.lane = encoder_.StreamLane(has_device ? e.deviceId : Encoder::kUnknownDevice,
                                      e.contextId, e.streamId),
          .correlation = e.correlationId,
          .small = e.eventId};
  if (cupti_.version >= kHasEventSyncIds) {
    signature.columns |= Bit(kEventSync);
    row.wide = e.cudaEventSyncId;
  }
  if (cupti_.version >= kHasDeviceTimestamps && e.deviceTimestamp != 0) {
    signature.columns |= Bit(kDeviceTime);
    row.word = e.deviceTimestamp;
  }
  Add(RowGroup::kHost, signature, row, {.start = last_start_});
}

void CuptiDecoder::DecodeOverhead(const CUpti_ActivityOverhead3& o) {
  const uint32_t kind = NumberAt(o, offsetof(CUpti_ActivityOverhead3, overheadKind));
  const uint32_t object = NumberAt(o, offsetof(CUpti_ActivityOverhead3, objectKind));
  Signature signature{.kind = kOverhead, .name = names.Intern(OverheadWord(kind))};
  const bool of_thread = object == CUPTI_ACTIVITY_OBJECT_THREAD;
  const bool of_stream = object == CUPTI_ACTIVITY_OBJECT_STREAM;
  Row row;
  if (of_stream) {
    const auto& at = o.objectId.dcs;
    row.lane = encoder_.StreamLane(at.deviceId, at.contextId, at.streamId);
  } else {
    row.lane = encoder_.ThreadLane(of_thread ? o.objectId.pt.threadId : 0);
  }
  if (cupti_.version >= kHasOverheadCorrelation) row.correlation = o.correlationId;
  Add(RowGroup::kHost, signature, row, TimesOf(o.start, o.end));
  const bool has_data =
      cupti_.version >= kHasOverheadData && kind == CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL;
  if (has_data) std::free(o.overheadData);  // ours to free, says cupti_activity.h
}

void CuptiDecoder::DecodeDevice(const CUpti_ActivityDevice5& d) {
  constexpr uint64_t kUuidBytes = sizeof(d.uuid.bytes);
  encoder_.AddDevice(
      {.id = d.id,
       .name = d.name == nullptr ? "" : d.name,
       .uuid = std::string(d.uuid.bytes, kUuidBytes),
       .compute_major = d.computeCapabilityMajor,
       .compute_minor = d.computeCapabilityMinor,
       .multiprocessors = d.numMultiprocessors,
       .warp_size = d.numThreadsPerWarp,
       .max_threads_per_multiprocessor = d.maxWarpsPerMultiprocessor * d.numThreadsPerWarp,
       .registers_per_multiprocessor = d.maxRegistersPerMultiprocessor,
       .shared_memory_per_multiprocessor = d.maxSharedMemoryPerMultiprocessor,
       .memory_bytes = d.globalMemorySize,
       .memory_bandwidth_kbps = d.globalMemoryBandwidth,
       .l2_bytes = d.l2CacheSize,
       .sm_clock_khz = d.coreClockRate,
       .mig = d.isMigEnabled != 0});
}

// ---- Common to all ----

CuptiDecoder::Times CuptiDecoder::TimesOf(uint64_t start, uint64_t end) {
  // 0 and 0 mean "not collected"; an end of 0 is that of work which had not ended.
  if (start == 0 || end < start) {
    ++losses_.invalid_time;
    return {.start = last_start_, .known = false};
  }
  return {.start = static_cast<int64_t>(start) + offset_ - origin_, .duration = end - start};
}

void CuptiDecoder::Add(RowGroup group, Signature& signature, Row& row, const Times& times) {
  if (row.correlation != 0) signature.columns |= Bit(kCorrelation);
  if (!times.known) {
    signature.columns |= Bit(kFlags);
    row.flags = kNoTime;
  }
  row.start = last_start_ = times.start;
  row.duration = times.duration;
  row.signature = encoder_.SignatureOf(signature);
  encoder_.Add(group, row);
  if (encoder_.IsFull()) full_(user_);
}

uint32_t CuptiDecoder::KernelName(const char* text) {
  if (text == nullptr) return 0;
  CachedName& cached = kernel_names_[(reinterpret_cast<uintptr_t>(text) >> 4) % 256];
  if (cached.text != text) cached = {text, names.Intern(text)};
  return cached.name;
}

uint32_t CuptiDecoder::CallName(uint32_t domain, uint32_t cbid) const {
  const char* name = nullptr;
  const auto which = static_cast<CUpti_CallbackDomain>(domain);
  const bool found = cupti_.callback_name != nullptr &&
                     cupti_.callback_name(which, cbid, &name) == CUPTI_SUCCESS && name != nullptr;
  if (found) return names.Intern(WithoutVersion(name));
  std::string text = domain == kRuntimeDomain ? "runtime call " : "driver call ";
  return names.Intern(text.append(std::to_string(cbid)));
}

}  // namespace daydream::tracer
