#include "trace/ddtrace/proto.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace daydream {

pb::LaneKind ToProto(LaneKind kind) {
  switch (kind) {
    case LaneKind::kThread:
      return pb::LANE_KIND_THREAD;
    case LaneKind::kStream:
      return pb::LANE_KIND_STREAM;
    case LaneKind::kChannel:
      return pb::LANE_KIND_CHANNEL;
  }
  return pb::LANE_KIND_UNSPECIFIED;
}

pb::Kind ToProto(EventKind kind) {
  switch (kind) {
    case EventKind::kOp:
      return pb::KIND_OP;
    case EventKind::kAnnotation:
      return pb::KIND_ANNOTATION;
    case EventKind::kFrame:
      return pb::KIND_FRAME;
    case EventKind::kCall:
      return pb::KIND_CALL;
    case EventKind::kKernel:
      return pb::KIND_KERNEL;
    case EventKind::kMemcpy:
      return pb::KIND_MEMCPY;
    case EventKind::kMemset:
      return pb::KIND_MEMSET;
    case EventKind::kSync:
      return pb::KIND_SYNC;
  }
  return pb::KIND_UNSPECIFIED;
}

pb::Memory ToProto(Memory memory) {
  switch (memory) {
    case Memory::kUnknown:
      return pb::MEMORY_UNSPECIFIED;
    case Memory::kPageable:
      return pb::MEMORY_PAGEABLE;
    case Memory::kPinned:
      return pb::MEMORY_PINNED;
    case Memory::kDevice:
      return pb::MEMORY_DEVICE;
    case Memory::kManaged:
      return pb::MEMORY_MANAGED;
    case Memory::kArray:
      return pb::MEMORY_ARRAY;
  }
  return pb::MEMORY_UNSPECIFIED;
}

pb::SyncKind ToProto(SyncKind kind) {
  switch (kind) {
    case SyncKind::kUnknown:
      return pb::SYNC_KIND_UNSPECIFIED;
    case SyncKind::kEvent:
      return pb::SYNC_KIND_EVENT;
    case SyncKind::kStreamWaitEvent:
      return pb::SYNC_KIND_STREAM_WAIT_EVENT;
    case SyncKind::kStream:
      return pb::SYNC_KIND_STREAM;
    case SyncKind::kContext:
      return pb::SYNC_KIND_CONTEXT;
  }
  return pb::SYNC_KIND_UNSPECIFIED;
}

void FillEach(const RecordingCost::Each& from, pb::RecordingCostOfEach* to) {
  to->set_ns(from.ns);
  to->set_error_ns(from.error_ns);
}

void FillCost(const RecordingCost& from, pb::RecordingCost* to) {
  to->set_steps_with(from.steps_with);
  to->set_steps_without(from.steps_without);
  to->set_with_ns(from.with.ns);
  to->set_without_ns(from.without.ns);
  to->set_with_spread_ns(from.with_spread.ns);
  to->set_without_spread_ns(from.without_spread.ns);
  to->set_drift_ns(from.drift.ns);
  to->set_hidden_ns(from.hidden.ns);
  if (from.call) FillEach(*from.call, to->mutable_call());
  if (from.work) FillEach(*from.work, to->mutable_work());
  if (from.layer_mark) FillEach(*from.layer_mark, to->mutable_layer_mark());
}

void FillProvenance(const Provenance& from, pb::Provenance* to) {
  to->set_importer(from.importer);
  to->set_format(from.format);
  to->set_source(from.source);
  to->set_synthetic(from.synthetic);
  for (const auto& [what, version] : from.software) {
    pb::KeyValue* entry = to->add_software();
    entry->set_key(what);
    entry->set_value(version);
  }
  to->set_input_events(from.input_events);
  for (const ImportCount& count : from.counts) {
    pb::Count* entry = to->add_counts();
    entry->set_what(count.what);
    entry->set_count(count.count);
    entry->set_loss(count.loss);
    entry->set_reason(count.reason);
    if (count.first_byte >= 0) entry->set_first_byte(count.first_byte);
    entry->set_repair(count.repair);
  }
  for (const auto& [name, rows] : from.tables_not_read) {
    pb::KeyValue* entry = to->add_tables_not_read();
    entry->set_key(name);
    entry->set_value(std::to_string(rows));
  }
  to->set_no_waits(from.no_waits);
  to->set_planned(from.planned);
  if (from.cost != RecordingCost()) FillCost(from.cost, to->mutable_cost());
}

void FillDevice(const Device& from, pb::Device* to) {
  to->set_id(from.id);
  to->set_name(from.name);
  to->set_memory_bytes(from.memory_bytes);
  to->set_compute_major(from.compute_major);
  to->set_compute_minor(from.compute_minor);
  to->set_multiprocessors(from.multiprocessors);
  to->set_warp_size(from.warp_size);
  to->set_max_threads_per_multiprocessor(from.max_threads_per_multiprocessor);
  to->set_registers_per_multiprocessor(from.registers_per_multiprocessor);
  to->set_shared_memory_per_multiprocessor(from.shared_memory_per_multiprocessor);
  to->set_sm_clock_khz(static_cast<uint64_t>(from.clock_khz));
  to->set_memory_bandwidth_kbps(static_cast<uint64_t>(from.memory_bandwidth_kbps));
  to->set_launched_multiprocessors(from.launched_multiprocessors);
}

void FillLaunch(const KernelDetail& from, pb::Launch* to) {
  to->set_grid_x(from.grid[0]);
  to->set_grid_y(from.grid[1]);
  to->set_grid_z(from.grid[2]);
  to->set_block_x(from.block[0]);
  to->set_block_y(from.block[1]);
  to->set_block_z(from.block[2]);
  to->set_registers_per_thread(from.registers_per_thread);
  to->set_shared_memory_bytes(from.shared_memory_bytes);
}

std::optional<EventKind> FromProto(pb::Kind kind) {
  switch (kind) {
    case pb::KIND_OP:
      return EventKind::kOp;
    case pb::KIND_ANNOTATION:
      return EventKind::kAnnotation;
    case pb::KIND_FRAME:
      return EventKind::kFrame;
    case pb::KIND_CALL:
      return EventKind::kCall;
    case pb::KIND_KERNEL:
      return EventKind::kKernel;
    case pb::KIND_MEMCPY:
      return EventKind::kMemcpy;
    case pb::KIND_MEMSET:
      return EventKind::kMemset;
    case pb::KIND_SYNC:
      return EventKind::kSync;
    default:
      return std::nullopt;
  }
}

LaneKind FromProto(pb::LaneKind kind) {
  switch (kind) {
    case pb::LANE_KIND_STREAM:
      return LaneKind::kStream;
    case pb::LANE_KIND_CHANNEL:
      return LaneKind::kChannel;
    default:
      return LaneKind::kThread;
  }
}

Memory FromProto(pb::Memory memory) {
  switch (memory) {
    case pb::MEMORY_PAGEABLE:
      return Memory::kPageable;
    case pb::MEMORY_PINNED:
      return Memory::kPinned;
    case pb::MEMORY_DEVICE:
      return Memory::kDevice;
    case pb::MEMORY_MANAGED:
      return Memory::kManaged;
    case pb::MEMORY_ARRAY:
      return Memory::kArray;
    default:
      return Memory::kUnknown;
  }
}

SyncKind FromProto(pb::SyncKind kind) {
  switch (kind) {
    case pb::SYNC_KIND_EVENT:
      return SyncKind::kEvent;
    case pb::SYNC_KIND_STREAM_WAIT_EVENT:
      return SyncKind::kStreamWaitEvent;
    case pb::SYNC_KIND_STREAM:
      return SyncKind::kStream;
    case pb::SYNC_KIND_CONTEXT:
      return SyncKind::kContext;
    default:
      return SyncKind::kUnknown;
  }
}

StreamType StreamTypeOf(uint32_t flags) {
  return flags <= static_cast<uint32_t>(StreamType::kDefault) ? static_cast<StreamType>(flags)
                                                              : StreamType::kUnknown;
}

std::optional<RecordingCost::Each> EachFromProto(bool there, const pb::RecordingCostOfEach& from) {
  if (!there || !std::isfinite(from.ns()) || !std::isfinite(from.error_ns())) return std::nullopt;
  return RecordingCost::Each{from.ns(), from.error_ns()};
}

RecordingCost FromProto(const pb::RecordingCost& from) {
  const auto time = [](int64_t ns) { return Duration{std::max<int64_t>(0, ns)}; };
  return {.steps_with = from.steps_with(),
          .steps_without = from.steps_without(),
          .with = time(from.with_ns()),
          .without = time(from.without_ns()),
          .with_spread = time(from.with_spread_ns()),
          .without_spread = time(from.without_spread_ns()),
          .drift = time(from.drift_ns()),
          .call = EachFromProto(from.has_call(), from.call()),
          .work = EachFromProto(from.has_work(), from.work()),
          .layer_mark = EachFromProto(from.has_layer_mark(), from.layer_mark()),
          .hidden = time(from.hidden_ns())};
}

Device FromProto(const pb::Device& from) {
  Device to;
  to.id = from.id();
  to.name = from.name();
  to.memory_bytes = from.memory_bytes();
  to.compute_major = from.compute_major();
  to.compute_minor = from.compute_minor();
  to.multiprocessors = from.multiprocessors();
  to.warp_size = from.warp_size();
  to.max_threads_per_multiprocessor = from.max_threads_per_multiprocessor();
  to.registers_per_multiprocessor = from.registers_per_multiprocessor();
  to.shared_memory_per_multiprocessor = from.shared_memory_per_multiprocessor();
  constexpr uint64_t kMost = uint64_t{1} << 50;
  to.clock_khz = static_cast<int64_t>(std::min(from.sm_clock_khz(), kMost));
  to.memory_bandwidth_kbps = static_cast<int64_t>(std::min(from.memory_bandwidth_kbps(), kMost));
  to.launched_multiprocessors = from.launched_multiprocessors();
  return to;
}

}  // namespace daydream
