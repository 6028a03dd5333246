#include "trace/ddtrace/definitions.h"

#include <fmt/format.h>

#include "trace/ddtrace/format.h"
#include "trace/demangle.h"

namespace daydream {
namespace {

constexpr size_t kMaxLanes = (size_t{1} << 16) + 1;  // one more than TraceBuilder accepts
constexpr size_t kMaxDevices = 4096;
constexpr std::string_view kLostName = "(lost name)";

bool HasDetail(const DdtraceSignature& to, const pb::Signature& from) {
  if (!to.kind) return false;
  switch (*to.kind) {
    case EventKind::kOp:
      return from.has_op();
    case EventKind::kKernel:
      return from.has_launch();
    case EventKind::kMemcpy:
    case EventKind::kMemset:
      return from.has_copy();
    case EventKind::kSync:
      return from.has_sync();
    default:
      return false;
  }
}

}  // namespace

void DdtraceDefinitions::Read(const pb::Definitions& definitions) {
  uint64_t refused = 0;
  for (int i = 0; i < definitions.strings_size(); ++i) {
    const NameId name = builder_.names().Intern(definitions.strings(i));
    refused += !strings_.Set(uint64_t{definitions.first_string()} + i, name);
  }
  for (int i = 0; i < definitions.lanes_size(); ++i) {
    const LaneId lane = ReadLane(definitions.lanes(i));
    refused += !lane.valid() || !lanes_.Set(uint64_t{definitions.first_lane()} + i, lane);
  }
  for (int i = 0; i < definitions.collectives_size(); ++i) {
    const uint32_t row = ReadCollective(definitions.collectives(i));
    refused += !collectives_.Set(uint64_t{definitions.first_collective()} + i, row);
  }
  for (int i = 0; i < definitions.signatures_size(); ++i) {
    refused += !signatures_.Set(uint64_t{definitions.first_signature()} + i,
                                ReadSignature(definitions.signatures(i)));
  }
  for (const pb::Device& device : definitions.devices()) {
    if (devices_++ < kMaxDevices) builder_.AddDevice(FromProto(device));
  }
  for (const pb::Context& context : definitions.contexts()) {
    if (default_streams_.size() < kMaxDevices) {
      default_streams_.emplace(context.device(), context.null_stream());
    }
  }
  counts_.Malformed("definitions with an impossible id", "taken, or far from the others", refused,
                    false);
}

void DdtraceDefinitions::FinishLanes() {
  for (size_t i = 0; i < builder_.lanes(); ++i) {
    const LaneId id(i);
    const Lane lane = builder_.lane(id);
    const bool stream = lane.kind == LaneKind::kStream;
    if (stream && default_streams_.contains({lane.device, lane.number})) {
      builder_.SetStreamType(id, StreamType::kDefault);
    }
    if (builder_.names().Get(lane.name).empty()) {
      builder_.NameLane(id, fmt::format("{} {}", stream ? "stream" : "thread", lane.number));
    }
  }
}

NameId DdtraceDefinitions::TextOf(uint32_t id) {
  if (const NameId* name = strings_.Find(id)) return *name;
  counts_.Note("lost names", kDdtraceDamage, true);
  return builder_.names().Intern(kLostName);
}

LaneId DdtraceDefinitions::ReadLane(const pb::Lane& from) {
  if (lane_definitions_++ >= kMaxLanes) return LaneId::None();
  int32_t rank = from.rank();
  if (rank < 0 || (rank > 0 && static_cast<size_t>(rank) >= ranks_)) {
    counts_.Malformed("lanes of an unknown rank", "taken for the first rank", 1, false);
    rank = 0;
  }
  const LaneId lane = builder_.AddLane(FromProto(from.kind()), from.process(), from.number(),
                                       from.has_device() ? from.device() : -1, rank);
  if (from.has_name()) builder_.NameLane(lane, builder_.names().Get(TextOf(from.name())));
  const StreamType type = StreamTypeOf(from.flags());
  if (type != StreamType::kUnknown) builder_.SetStreamType(lane, type);
  return lane;
}

uint32_t DdtraceDefinitions::ReadCollective(const pb::Collective& from) {
  CollectiveDetail to;
  to.name = TextOf(from.has_name(), from.name());
  to.dtype = TextOf(from.has_dtype(), from.dtype());
  to.process_group = TextOf(from.has_process_group(), from.process_group());
  to.elements_in = from.elements_in();
  to.elements_out = from.elements_out();
  to.group_size = from.group_size();
  return builder_.AddCollective(to);
}

DdtraceSignature DdtraceDefinitions::ReadSignature(const pb::Signature& from) {
  DdtraceSignature to;
  to.kind = FromProto(from.kind());
  to.stored_kind = from.kind();
  to.name = TextOf(from.name());
  if (recorded_ && from.kind() == pb::KIND_KERNEL) {
    to.name = builder_.names().Intern(Demangle(builder_.names().Get(to.name)));
  }
  uint32_t collective = kNone;
  if (from.has_collective()) {
    const uint32_t* row = collectives_.Find(from.collective());
    if (row) collective = *row;
    if (!row) counts_.Note("lost collectives", kDdtraceDamage, true);
  }
  if (from.has_launch()) {
    const pb::Launch& launch = from.launch();
    to.kernel.grid = {launch.grid_x(), launch.grid_y(), launch.grid_z()};
    to.kernel.block = {launch.block_x(), launch.block_y(), launch.block_z()};
    to.kernel.registers_per_thread = launch.registers_per_thread();
    to.kernel.shared_memory_bytes = launch.shared_memory_bytes();
    to.kernel.collective = collective;
    to.kernel.layer = TextOf(from.has_layer(), from.layer());
    to.kernel.backward = from.backward();
  }
  to.copy.from = FromProto(from.copy().from());
  to.copy.to = FromProto(from.copy().to());
  if (from.has_op()) {
    const pb::Op& op = from.op();
    to.op.forward_thread = op.has_forward_thread() ? op.forward_thread() : -1;
    to.op.shapes = TextOf(op.has_shapes(), op.shapes());
    to.op.types = TextOf(op.has_types(), op.types());
    to.op.collective = collective;
  }
  const pb::Sync& sync = from.sync();
  to.sync.kind = FromProto(sync.kind());
  to.sync.stream = sync.has_stream() ? sync.stream() : -1;
  to.sync.wait_on_stream = sync.has_wait_on_stream() ? sync.wait_on_stream() : -1;
  to.context = sync.context();
  const auto mark = static_cast<uint32_t>(from.mark().kind());
  if (mark <= static_cast<uint32_t>(MarkKind::kCollective)) to.mark = static_cast<MarkKind>(mark);
  to.has_detail = HasDetail(to, from);
  return to;
}

}  // namespace daydream
