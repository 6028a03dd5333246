#include "tests/tracer/rerecord.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <protozero/pbf_writer.hpp>

#include "tests/tracer/activity_buffer.h"
#include "tracer/chunk_file.h"
#include "tracer/cuda_calls.h"
#include "tracer/cupti_decoder.h"
#include "tracer/daydream_mark.h"
#include "tracer/encoder.h"
#include "tracer/name_table.h"

namespace daydream::tracer {
namespace {

// CUPTI's clock at time 0 of the trace; any number that no time makes negative.
constexpr int64_t kOrigin = 1'000'000'000;

// Names of the calls of one recording by numbers that the recorder does not leave out.
std::map<std::pair<CUpti_CallbackDomain, uint32_t>, std::string>& CallNames() {
  static std::map<std::pair<CUpti_CallbackDomain, uint32_t>, std::string> names;
  return names;
}

CUptiResult NameOfCall(CUpti_CallbackDomain domain, uint32_t cbid, const char** name) {
  const auto known = CallNames().find({domain, cbid});
  if (known == CallNames().end()) return CUPTI_ERROR_INVALID_PARAMETER;
  *name = known->second.c_str();
  return CUPTI_SUCCESS;
}

uint8_t MemoryKind(Memory memory) {
  switch (memory) {
    case Memory::kPageable:
      return CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
    case Memory::kPinned:
      return CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    case Memory::kDevice:
      return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    case Memory::kManaged:
      return CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
    case Memory::kArray:
      return CUPTI_ACTIVITY_MEMORY_KIND_ARRAY;
    default:
      return CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN;
  }
}

uint8_t CopyKind(std::string_view name) {
  if (name.starts_with("Memcpy HtoD")) return CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  if (name.starts_with("Memcpy DtoH")) return CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  if (name.starts_with("Memcpy DtoD")) return CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
  return CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN;
}

uint32_t ContextOf(const Lane& lane) { return static_cast<uint32_t>(lane.device + 1); }

class Rerecorder {
 public:
  Rerecorder(const Trace& trace, const RerecordOptions& options)
      : trace_(trace),
        options_(options),
        encoder_(7, [](uint32_t) -> uint32_t { return 0; }),
        decoder_(
            encoder_, losses_, 0, [](void* self) { static_cast<Rerecorder*>(self)->Write(); },
            this),
        file_(SystemFileCalls()) {
    CallNames().clear();
    decoder_.SetCupti({.version = options.event_sync_ids ? 130001u : 20u,
                       .next_record = NextRecord,
                       .callback_name = NameOfCall});
    decoder_.SetOffset(-kOrigin);
  }

  void Run(const std::vector<TimedMark>& marks, const std::string& path) {
    std::string message;
    protozero::pbf_writer(message).add_message(header::kRecording, std::string());
    ASSERT_EQ(file_.Create(path.c_str(), message), 0);
    std::vector<size_t> rows(trace_.rows());
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = i;
    if (options_.calls_backwards) std::reverse(rows.begin(), rows.end());
    for (size_t row : rows) {
      ActivityBuffer buffer;
      Fill(row, buffer);
      decoder_.Decode(buffer.data(), buffer.size());
    }
    for (const TimedMark& mark : marks) AddMark(mark);
    Write();
    std::string end;
    protozero::pbf_writer writer(end);
    writer.add_uint64(index::kRows, rows_);
    ASSERT_EQ(file_.Finish(end), 0);
    EXPECT_EQ(losses_, Losses());
  }

 private:
  void Write() {
    while (encoder_.HasNews()) {
      const EncodedChunk& chunk = encoder_.MakeChunk();
      rows_ += chunk.rows;
      DdtraceChunkHeader header{.type = static_cast<uint8_t>(DdtraceChunkType::kEvents)};
      ASSERT_EQ(file_.Append(header, chunk.message), 0);
      encoder_.Written();
    }
  }

  void AddMark(const TimedMark& mark) {
    Signature signature{.kind = kMark, .name = names.Intern(mark.name)};
    signature.detail[0] = mark.kind;
    signature.columns = 1u << kValue;
    encoder_.Add(RowGroup::kMarks, {.start = mark.time_ns,
                                    .lane = encoder_.ThreadLane(mark.thread),
                                    .signature = encoder_.SignatureOf(signature),
                                    .word = static_cast<uint64_t>(mark.value)});
    if (encoder_.IsFull()) Write();
  }

  uint32_t CallId(size_t row, CUpti_CallbackDomain domain) {
    const auto [it, fresh] = calls_.try_emplace(trace_.name[row].value, 0);
    if (fresh) {
      do ++last_call_;
      while (!IsRecordedCall(domain, last_call_));
      it->second = last_call_;
      CallNames()[{domain, last_call_}] = trace_.EventName(row);
    }
    return it->second;
  }

  template <class Record>
  void FillGpu(size_t row, Record& record) {
    const Lane& lane = trace_.lanes[trace_.lane[row].index()];
    record.start = static_cast<uint64_t>(trace_.start[row].ns + kOrigin);
    record.end = static_cast<uint64_t>(trace_.End(row).ns + kOrigin);
    record.deviceId = static_cast<uint32_t>(lane.device);
    record.contextId = ContextOf(lane);
    record.streamId = static_cast<uint32_t>(lane.number);
    record.correlationId = trace_.correlation[row];
  }

  void Fill(size_t row, ActivityBuffer& buffer) {
    const uint32_t detail = trace_.detail[row];
    const bool has_detail = detail != Id<void>::kNoneValue;
    const auto start = static_cast<uint64_t>(trace_.start[row].ns + kOrigin);
    const auto end = static_cast<uint64_t>(trace_.End(row).ns + kOrigin);
    switch (trace_.kind[row]) {
      case EventKind::kCall: {
        CUpti_ActivityAPI& call = buffer.Runtime();
        const std::string_view name = trace_.EventName(row);
        const bool driver = name.size() > 2 && name.starts_with("cu") && std::isupper(name[2]);
        if (driver) call.kind = CUPTI_ACTIVITY_KIND_DRIVER;
        call.cbid = CallId(row, driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API);
        call.start = start;
        call.end = end;
        call.threadId = static_cast<uint32_t>(trace_.lanes[trace_.lane[row].index()].number);
        call.correlationId = trace_.correlation[row];
        return;
      }
      case EventKind::kKernel: {
        CUpti_ActivityKernel10& kernel = buffer.Kernel();
        FillGpu(row, kernel);
        kernel.name = names_of_kernels_.emplace(trace_.EventName(row)).first->c_str();
        if (!has_detail) return;
        const KernelDetail& d = trace_.kernels[detail];
        const auto n = [](uint32_t value) { return static_cast<int32_t>(value); };
        kernel.gridX = n(d.grid[0]), kernel.gridY = n(d.grid[1]), kernel.gridZ = n(d.grid[2]);
        kernel.blockX = n(d.block[0]), kernel.blockY = n(d.block[1]), kernel.blockZ = n(d.block[2]);
        kernel.registersPerThread = static_cast<uint16_t>(d.registers_per_thread);
        kernel.staticSharedMemory = n(d.shared_memory_bytes);
        kernel.graphNodeId = d.graph_node;
        return;
      }
      case EventKind::kMemcpy: {
        CUpti_ActivityMemcpy6& copy = buffer.Memcpy();
        FillGpu(row, copy);
        copy.copyKind = CopyKind(trace_.EventName(row));
        if (!has_detail) return;
        copy.srcKind = MemoryKind(trace_.copies[detail].from);
        copy.dstKind = MemoryKind(trace_.copies[detail].to);
        copy.bytes = trace_.copies[detail].bytes;
        return;
      }
      case EventKind::kMemset: {
        CUpti_ActivityMemset4& memset = buffer.Memset();
        FillGpu(row, memset);
        memset.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
        if (has_detail) memset.bytes = trace_.copies[detail].bytes;
        return;
      }
      case EventKind::kSync:
        return FillSync(row, buffer);
      default:
        return;
    }
  }

  // The wait, and once for each the record of the event that it waits for.
  void FillSync(size_t row, ActivityBuffer& buffer) {
    const Lane& lane = trace_.lanes[trace_.lane[row].index()];
    const SyncDetail& d = trace_.syncs[trace_.detail[row]];
    CUpti_ActivitySynchronization2& sync = buffer.Sync();
    sync.type = static_cast<CUpti_ActivitySynchronizationType>(d.kind);
    sync.start = static_cast<uint64_t>(trace_.start[row].ns + kOrigin);
    sync.end = static_cast<uint64_t>(trace_.End(row).ns + kOrigin);
    sync.correlationId = trace_.correlation[row];
    sync.contextId = ContextOf(lane);
    if (lane.number >= 0) sync.streamId = static_cast<uint32_t>(lane.number);
    if (d.event >= 0) sync.cudaEventId = static_cast<uint32_t>(d.event);
    if (d.record_correlation == 0 || d.event < 0) return;
    sync.cudaEventSyncId = d.record_correlation;
    if (!recorded_.insert(d.record_correlation).second) return;
    CUpti_ActivityCudaEvent2& event = buffer.Event();
    event.correlationId = d.record_correlation;
    event.contextId = ContextOf(lane);
    event.streamId = static_cast<uint32_t>(d.wait_on_stream);
    event.eventId = static_cast<uint32_t>(d.event);
    event.deviceId = static_cast<uint32_t>(lane.device);
    event.cudaEventSyncId = d.record_correlation;
  }

  const Trace& trace_;
  const RerecordOptions& options_;
  Losses losses_;
  Encoder encoder_;
  CuptiDecoder decoder_;
  ChunkFile file_;
  std::map<uint32_t, uint32_t> calls_;  // by NameId
  uint32_t last_call_ = 0;
  std::set<std::string, std::less<>> names_of_kernels_;
  std::set<uint32_t> recorded_;
  uint64_t rows_ = 0;
};

std::vector<TimedMark> MarksOfAnnotations(const Trace& trace) {
  std::vector<TimedMark> marks;
  for (size_t row = 0; row < trace.rows(); ++row) {
    if (trace.kind[row] != EventKind::kAnnotation) continue;
    const auto thread = static_cast<uint32_t>(trace.lanes[trace.lane[row].index()].number);
    const std::string name(trace.EventName(row));
    constexpr std::string_view kStep = "ProfilerStep#";
    if (name.starts_with(kStep)) {
      const int64_t number = std::atoll(name.c_str() + kStep.size());
      marks.push_back({trace.start[row].ns, thread, DAYDREAM_STEP, "", number});
      marks.push_back({trace.End(row).ns, thread, DAYDREAM_STEP, "", number + 1});
      continue;
    }
    marks.push_back({trace.start[row].ns, thread, DAYDREAM_RANGE_BEGIN, name});
    marks.push_back({trace.End(row).ns, thread, DAYDREAM_RANGE_END, ""});
  }
  return marks;
}

}  // namespace

void Rerecord(const Trace& trace, const std::vector<TimedMark>& marks,
              const RerecordOptions& options, const std::string& path) {
  std::vector<TimedMark> all = marks;
  if (options.annotations) {
    for (TimedMark& mark : MarksOfAnnotations(trace)) all.push_back(std::move(mark));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const TimedMark& a, const TimedMark& b) { return a.time_ns < b.time_ns; });
  Rerecorder(trace, options).Run(all, path);
}

}  // namespace daydream::tracer
