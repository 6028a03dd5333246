#include "tracer/encoder.h"

#include <algorithm>
#include <cstring>
#include <protozero/pbf_writer.hpp>

#include "tracer/name_table.h"

namespace daydream::tracer {
namespace {

using protozero::pbf_writer;

// More texts than this do not come into one chunk: well below kDdtraceMaxRaw
// (trace/ddtrace/frame.h).
constexpr size_t kMaxNameBytes = 1 << 20;
constexpr size_t kMaxVarint = 10;
// In Row::columns: every row has this one.
constexpr uint32_t kEveryRow = 1;

// A message inside of the message that `out` holds.
struct Inner {
  Inner(std::string& out, uint32_t field) : outer(out), writer(outer, field) {}
  pbf_writer outer, writer;
};

constexpr uint64_t Pack(uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; }

size_t HashOf(const Signature& signature) {
  // Odd constants with well-mixed bits: the first of SplitMix64 and the golden ratio.
  uint64_t hash = Pack(signature.kind, signature.name) ^ signature.columns;
  for (size_t i = 0; i + 1 < Signature::kDetails; i += 2) {
    hash = (hash ^ Pack(signature.detail[i], signature.detail[i + 1])) * 0xbf58476d1ce4e5b9u;
    hash ^= hash >> 29;
  }
  return (hash ^ signature.detail[Signature::kDetails - 1]) * 0x9e3779b97f4a7c15u >> 16;
}

// Differences wrap, as the reader's sums do.
class Delta {
 public:
  explicit Delta(uint64_t last = 0) : last_(last) {}
  char* Put(char* out, uint64_t value) {
    const auto delta = static_cast<int64_t>(value - last_);
    last_ = value;
    return out + protozero::add_varint_to_buffer(out, protozero::encode_zigzag64(delta));
  }

 private:
  uint64_t last_;
};

char* PutVarint(char* out, uint64_t value) {
  return out + protozero::add_varint_to_buffer(out, value);
}

void EncodeSignature(const Signature& s, std::string* out) {
  using namespace signature;
  Inner inner(*out, definitions::kSignatures);
  pbf_writer& writer = inner.writer;
  writer.add_enum(signature::kKind, static_cast<int32_t>(s.kind));
  if (s.name != 0) writer.add_uint32(kName, s.name);
  switch (s.kind) {
    case Kind::kKernel: {
      pbf_writer launch(writer, kLaunch);
      for (uint32_t i = 0; i < Signature::kDetails; ++i) {
        if (s.detail[i] != 0) launch.add_uint32(i + 1, s.detail[i]);
      }
      break;
    }
    case Kind::kMemcpy:
    case Kind::kMemset: {
      pbf_writer copy(writer, kCopy);
      copy.add_enum(kCopyFrom, static_cast<int32_t>(s.detail[0]));
      copy.add_enum(kCopyTo, static_cast<int32_t>(s.detail[1]));
      if (s.detail[2] != 0) copy.add_int32(kCopyPeer, static_cast<int32_t>(s.detail[2] - 1));
      if (s.detail[3] != 0) copy.add_uint32(kCopyFlags, s.detail[3]);
      break;
    }
    case Kind::kSync:
    case Kind::kEventRecord: {
      pbf_writer sync(writer, signature::kSync);
      sync.add_enum(kSyncKind, static_cast<int32_t>(s.detail[0]));
      if (s.detail[1] != 0) sync.add_int64(kSyncStream, int64_t{s.detail[1]} - 1);
      sync.add_uint32(kSyncContext, s.detail[2]);
      break;
    }
    case Kind::kCall: {
      pbf_writer api(writer, kApi);
      api.add_uint32(kApiDomain, s.detail[0]);
      api.add_uint32(kApiCbid, s.detail[1]);
      break;
    }
    case Kind::kMark: {
      pbf_writer mark(writer, signature::kMark);
      mark.add_enum(kMarkKind, static_cast<int32_t>(s.detail[0]));
      break;
    }
    default:
      break;
  }
}

// In the place of a context: a lane of a thread. Context ids count from 1.
constexpr uint32_t kThreads = 0xffffffff;

}  // namespace

Encoder::Encoder(uint32_t process, uint32_t (*thread_name)(uint32_t thread), size_t limit)
    : process_(process), thread_name_(thread_name), slots_(1024), limit_(limit) {
  for (std::vector<Row>& group : groups_) group.reserve(kMaxRows);
}

// ---- Dictionaries ----

uint32_t Encoder::LaneOf(uint64_t key, const LaneState& state) {
  CachedLane& cached = lane_cache_[(key ^ key >> 32) % lane_cache_.size()];
  if (cached.key == key && cached.lane != kNoLane) return cached.lane;
  const auto next = static_cast<uint32_t>(lanes_.size());
  const auto [known, is_new] = lane_ids_.try_emplace(key, next);
  if (is_new) {
    lanes_.push_back(state);
    if (state.kind == lane::kThread) lanes_.back().name = thread_name_(state.number);
  }
  cached = {key, known->second};
  return known->second;
}

uint32_t Encoder::ThreadLane(uint32_t thread) {
  return LaneOf(Pack(kThreads, thread), {.kind = lane::kThread, .number = thread});
}

uint32_t Encoder::StreamLane(uint32_t device, uint32_t context, uint32_t stream) {
  if (context == kThreads) context = 0;  // both are of no context
  const uint32_t id =
      LaneOf(Pack(context, stream),
             {.kind = lane::kStream, .device = device, .context = context, .number = stream});
  if (device != kUnknownDevice) lanes_[id].device = device;
  return id;
}

void Encoder::SetStream(uint32_t context, uint32_t stream, int32_t priority, uint32_t flags) {
  streams_[Pack(context, stream)] = {priority, flags};
}

void Encoder::SetContext(uint32_t context, uint32_t device, uint32_t null_stream) {
  context_device_[context] = device;
  Inner inner(new_devices_and_contexts_, definitions::kContexts);
  pbf_writer& writer = inner.writer;
  writer.add_uint32(context::kId, context);
  writer.add_int32(context::kDevice, static_cast<int32_t>(device));
  writer.add_uint32(context::kNullStream, null_stream);
}

void Encoder::AddDevice(const DeviceFacts& d) {
  Inner inner(new_devices_and_contexts_, definitions::kDevices);
  pbf_writer& writer = inner.writer;
  writer.add_int32(device::kId, static_cast<int32_t>(d.id));
  writer.add_bytes(device::kName, d.name);
  writer.add_bytes(device::kUuid, d.uuid);
  writer.add_int32(device::kComputeMajor, static_cast<int32_t>(d.compute_major));
  writer.add_int32(device::kComputeMinor, static_cast<int32_t>(d.compute_minor));
  writer.add_int32(device::kMultiprocessors, static_cast<int32_t>(d.multiprocessors));
  writer.add_uint64(device::kMemoryBytes, d.memory_bytes);
  writer.add_int32(device::kWarpSize, static_cast<int32_t>(d.warp_size));
  writer.add_int32(device::kMaxThreads, static_cast<int32_t>(d.max_threads_per_multiprocessor));
  writer.add_int64(device::kRegisters, static_cast<int64_t>(d.registers_per_multiprocessor));
  writer.add_int64(device::kSharedMemory, static_cast<int64_t>(d.shared_memory_per_multiprocessor));
  writer.add_uint64(device::kSmClock, d.sm_clock_khz);
  writer.add_uint64(device::kMemoryBandwidth, d.memory_bandwidth_kbps);
  writer.add_uint64(device::kL2Bytes, d.l2_bytes);
  writer.add_bool(device::kMig, d.mig);
}

uint32_t Encoder::SignatureOf(const Signature& signature) {
  const size_t mask = slots_.size() - 1;
  size_t at = HashOf(signature) & mask;
  for (; slots_[at] != 0; at = (at + 1) & mask) {
    if (signatures_[slots_[at] - 1].signature == signature) return slots_[at] - 1;
  }
  Signature plain{.kind = signature.kind, .columns = signature.columns};
  // Of a kernel this is its shape; of others, what the row is: there are few.
  if (signature.kind != kKernel) plain.detail[0] = signature.detail[0];
  if (signatures_.size() >= limit_ && !(signature == plain)) {
    ++reduced_;
    return SignatureOf(plain);
  }
  signatures_.push_back({signature});
  slots_[at] = static_cast<uint32_t>(signatures_.size());
  EncodeSignature(signature, &new_signatures_);
  if (signatures_.size() * 2 > slots_.size()) GrowSlots();
  return static_cast<uint32_t>(signatures_.size() - 1);
}

void Encoder::GrowSlots() {
  slots_.assign(slots_.size() * 2, 0);
  const size_t mask = slots_.size() - 1;
  for (uint32_t id = 0; id < signatures_.size(); ++id) {
    size_t at = HashOf(signatures_[id].signature) & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    slots_[at] = id + 1;
  }
}

// ---- Contents ----

void Encoder::Add(RowGroup group, const Row& row) {
  std::vector<Row>& rows = groups_[static_cast<size_t>(group)];
  rows.push_back(row);
  const uint32_t columns = signatures_[row.signature].signature.columns | kEveryRow;
  rows.back().columns = static_cast<uint16_t>(columns);
  all_columns_ |= columns;
  ++rows_;
  ++total_rows_;
}

void Encoder::AddGraphNode(const GraphNode& node, int64_t clock_origin_ns) {
  const uint32_t thread = ThreadLane(node.thread);
  Inner inner(nodes_and_clocks_, event_chunk::kGraphNodes);
  pbf_writer& writer = inner.writer;
  writer.add_uint32(graph_node::kGraph, node.graph);
  writer.add_uint64(graph_node::kNode, node.node);
  writer.add_uint32(graph_node::kType, node.type);
  if (node.origin_node != 0) writer.add_uint64(graph_node::kOrigin, node.origin_node);
  writer.add_int64(graph_node::kCreated, node.created_ns - clock_origin_ns);
  writer.add_uint32(graph_node::kLane, thread);
}

void Encoder::AddClock(const ClockReading& reading, int64_t clock_origin_ns) {
  Inner inner(nodes_and_clocks_, event_chunk::kClocks);
  pbf_writer& writer = inner.writer;
  writer.add_int64(clock_snapshot::kTrace, reading.monotonic_ns - clock_origin_ns);
  writer.add_int64(clock_snapshot::kRealtime, reading.realtime_ns);
  writer.add_int64(clock_snapshot::kMonotonic, reading.monotonic_ns);
  writer.add_int64(clock_snapshot::kCupti, reading.cupti_ns);
  writer.add_uint32(clock_snapshot::kUncertainty, reading.uncertainty_ns);
}

void EncodeLosses(const Losses& l, std::string* out) {
  pbf_writer writer(*out);
  writer.add_uint64(loss::kCuptiDropped, l.cupti_dropped);
  writer.add_uint64(loss::kNoBuffer, l.no_buffer);
  writer.add_uint64(loss::kUnknownKind, l.unknown_kind);
  writer.add_uint64(loss::kBackpressure, l.writer_backpressure);
  writer.add_uint64(loss::kInvalidTime, l.invalid_time);
  writer.add_uint64(loss::kLostBytes, l.lost_bytes);
  writer.add_uint64(loss::kNotWritten, l.not_written);
  writer.add_uint32(loss::kWriteError, l.write_error);
  writer.add_uint64(loss::kUnnamed, l.unnamed);
}

void Encoder::SetLosses(const Losses& losses) {
  losses_.clear();
  EncodeLosses(losses, &losses_);
}

bool Encoder::HasNews() const {
  return rows_ > 0 || !nodes_and_clocks_.empty() || !losses_.empty() ||
         !new_devices_and_contexts_.empty() || !new_signatures_.empty() ||
         lanes_written_ < lanes_.size();
}

// ---- Chunks ----

// False when some had to stay for the next chunk.
bool Encoder::EncodeStrings(std::string* out) {
  pbf_writer writer(*out);
  const uint32_t all = names.size();
  names_in_chunk_ = names_written_;
  const uint32_t first = empty_name_written_ ? names_written_ + 1 : 0;
  if (!empty_name_written_) writer.add_bytes(definitions::kStrings, "", 0);
  while (names_in_chunk_ < all && out->size() < kMaxNameBytes) {
    const std::string_view text = names.Text(++names_in_chunk_);
    writer.add_bytes(definitions::kStrings, text.data(), text.size());
  }
  if (!out->empty() && first != 0) writer.add_uint32(definitions::kFirstString, first);
  return names_in_chunk_ == all;
}

void Encoder::EncodeLane(const LaneState& state, std::string* out) const {
  Inner inner(*out, definitions::kLanes);
  pbf_writer& writer = inner.writer;
  writer.add_enum(lane::kKind, state.kind);
  if (state.name != 0) writer.add_uint32(lane::kName, state.name);
  if (state.kind == lane::kThread) {
    writer.add_int64(lane::kProcess, process_);
    writer.add_int64(lane::kNumber, state.number);
    return;
  }
  uint32_t device = state.device;
  if (device == kUnknownDevice) {
    const auto known = context_device_.find(state.context);
    device = known == context_device_.end() ? 0 : known->second;
  }
  writer.add_int32(lane::kDevice, static_cast<int32_t>(device));
  writer.add_int64(lane::kNumber, state.number == kNoStream ? -1 : int64_t{state.number});
  writer.add_uint32(lane::kContext, state.context);
  const auto facts = streams_.find(Pack(state.context, state.number));
  if (facts == streams_.end()) return;
  writer.add_int32(lane::kPriority, facts->second.priority);
  writer.add_uint32(lane::kFlags, facts->second.flags);
}

void Encoder::EncodeLanes(std::string* out) {
  lanes_in_chunk_ = static_cast<uint32_t>(lanes_.size());
  if (lanes_written_ == lanes_in_chunk_) return;
  pbf_writer(*out).add_uint32(definitions::kFirstLane, lanes_written_);
  for (uint32_t i = lanes_written_; i < lanes_in_chunk_; ++i) EncodeLane(lanes_[i], out);
}

bool Encoder::EncodeDefinitions() {
  std::string all;
  const bool all_names = EncodeStrings(&all);
  if (all_names) {
    EncodeLanes(&all);
    if (!new_signatures_.empty()) {
      pbf_writer(all).add_uint32(definitions::kFirstSignature, signatures_written_);
    }
    all += new_signatures_;
    all += new_devices_and_contexts_;
  }
  chunk_.has_definitions = !all.empty();
  if (!all.empty()) pbf_writer(chunk_.message).add_message(event_chunk::kDefinitions, all);
  return all_names;
}

void Encoder::EncodeUsed(std::string* out) {
  ++chunk_number_;
  used_.clear();
  for (const std::vector<Row>& group : groups_) {
    for (const Row& row : group) {
      SignatureState& state = signatures_[row.signature];
      if (state.chunk == chunk_number_) continue;
      state.chunk = chunk_number_;
      state.used = static_cast<uint32_t>(used_.size());
      used_.push_back(row.signature);
    }
  }
  pbf_writer writer(*out);
  writer.add_packed_uint32(rows::kUsedSignature, used_.begin(), used_.end());
  for (uint32_t& used : used_) used = signatures_[used].signature.columns;
  writer.add_packed_uint32(rows::kUsedColumns, used_.begin(), used_.end());
}

template <class Put>
void Encoder::PutColumn(uint32_t field, uint32_t column, std::string* out, Put put) {
  if ((all_columns_ >> column & 1) == 0) return;
  char* end = scratch_.data();
  for (const std::vector<Row>& group : groups_) {
    for (const Row& row : group) {
      if ((row.columns >> column & 1) != 0) end = put(end, row);
    }
  }
  pbf_writer(*out).add_bytes(field, scratch_.data(), static_cast<size_t>(end - scratch_.data()));
}

void Encoder::EncodeRows() {
  const Row* first = nullptr;
  for (const std::vector<Row>& group : groups_) {
    for (const Row& row : group) {
      if (first == nullptr) {
        first = &row;
        chunk_.first_ns = chunk_.last_ns = row.start;
      }
      const auto end = static_cast<int64_t>(static_cast<uint64_t>(row.start) + row.duration);
      chunk_.first_ns = std::min(chunk_.first_ns, row.start);
      chunk_.last_ns = std::max(chunk_.last_ns, end);
    }
  }
  const auto base = static_cast<uint64_t>(first->start);
  scratch_.resize(rows_ * kMaxVarint);
  std::string out;
  EncodeUsed(&out);

  Delta start(base), correlation, graph_node, graph, event, event_sync, device_time;
  const auto put = [&](uint32_t field, uint32_t column, auto each) {
    PutColumn(field, column, &out, each);
  };
  put(rows::kStart, 0,
      [&](char* p, const Row& row) { return start.Put(p, static_cast<uint64_t>(row.start)); });
  put(rows::kDuration, 0, [](char* p, const Row& row) { return PutVarint(p, row.duration); });
  put(rows::kLane, 0, [](char* p, const Row& row) { return PutVarint(p, row.lane); });
  put(rows::kSignature, 0,
      [this](char* p, const Row& row) { return PutVarint(p, signatures_[row.signature].used); });
  put(rows::kCorrelation, kCorrelation,
      [&](char* p, const Row& row) { return correlation.Put(p, row.correlation); });
  put(rows::kBytes, kBytes, [](char* p, const Row& row) { return PutVarint(p, row.word); });
  put(rows::kGraphNode, kGraphNode,
      [&](char* p, const Row& row) { return graph_node.Put(p, row.wide); });
  put(rows::kGraph, kGraph, [&](char* p, const Row& row) { return graph.Put(p, row.small); });
  put(rows::kEvent, kEvent, [&](char* p, const Row& row) { return event.Put(p, row.small); });
  put(rows::kEventSync, kEventSync,
      [&](char* p, const Row& row) { return event_sync.Put(p, row.wide); });
  put(rows::kReturnCode, kReturnCode,
      [](char* p, const Row& row) { return PutVarint(p, row.word); });
  put(rows::kDeviceTime, kDeviceTime,
      [&](char* p, const Row& row) { return device_time.Put(p, row.word); });
  put(rows::kValue, kValue, [](char* p, const Row& row) { return PutVarint(p, row.word); });
  put(rows::kFlags, kFlags, [](char* p, const Row& row) { return PutVarint(p, row.flags); });

  pbf_writer writer(chunk_.message);
  writer.add_sint64(event_chunk::kBase, first->start);
  writer.add_message(event_chunk::kRows, out);
  chunk_.rows = static_cast<uint32_t>(rows_);
}

const EncodedChunk& Encoder::MakeChunk() {
  chunk_.message.clear();
  chunk_.first_ns = chunk_.last_ns = 0;
  chunk_.rows = 0;
  only_names_ = !EncodeDefinitions();
  if (only_names_) return chunk_;
  if (rows_ > 0) EncodeRows();
  chunk_.message += nodes_and_clocks_;
  if (!losses_.empty()) pbf_writer(chunk_.message).add_message(event_chunk::kLoss, losses_);
  return chunk_;
}

void Encoder::Forget() {
  for (std::vector<Row>& group : groups_) group.clear();
  rows_ = 0;
  all_columns_ = 0;
  nodes_and_clocks_.clear();
  losses_.clear();
}

void Encoder::Written() {
  names_written_ = names_in_chunk_;
  empty_name_written_ = true;
  if (only_names_) return;
  lanes_written_ = lanes_in_chunk_;
  signatures_written_ = static_cast<uint32_t>(signatures_.size());
  new_signatures_.clear();
  new_devices_and_contexts_.clear();
  Forget();
}

uint32_t Encoder::Lost() {
  const auto lost = static_cast<uint32_t>(rows_);
  Forget();
  return lost;
}

}  // namespace daydream::tracer
