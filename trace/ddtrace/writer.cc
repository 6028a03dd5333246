#include "trace/ddtrace/writer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "trace/bytes/atomic_file.h"
#include "trace/ddtrace/format.h"
#include "trace/ddtrace/proto.h"

namespace daydream {
namespace {

using Sink = std::function<absl::Status(std::string_view)>;

// A chunk ends early when its definitions reach this size, well below kDdtraceMaxRaw.
constexpr size_t kMaxDefinitionBytes = 1 << 20;
constexpr uint32_t kFormatMinor = 1;

constexpr uint32_t Bit(pb::Column column) { return 1u << column; }

// What makes two signatures equal: kind, name, and up to six words by kind.
using SignatureKey = std::array<uint64_t, 8>;

uint64_t Pack(uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; }

// The details of one row, as far as it has any.
struct RowDetails {
  const KernelDetail* kernel = nullptr;
  const CopyDetail* copy = nullptr;
  const OpDetail* op = nullptr;
  const SyncDetail* sync = nullptr;
};

RowDetails DetailsOf(const Trace& trace, size_t row) {
  RowDetails details;
  const uint32_t id = trace.detail[row];
  if (id == kNone) return details;
  switch (trace.kind[row]) {
    case EventKind::kOp:
      details.op = &trace.ops[id];
      break;
    case EventKind::kKernel:
      details.kernel = &trace.kernels[id];
      break;
    case EventKind::kMemcpy:
    case EventKind::kMemset:
      details.copy = &trace.copies[id];
      break;
    case EventKind::kSync:
      details.sync = &trace.syncs[id];
      break;
    case EventKind::kAnnotation:
    case EventKind::kFrame:
    case EventKind::kCall:
      break;
  }
  return details;
}

uint32_t ColumnsOf(const Trace& trace, size_t row, const RowDetails& d) {
  uint32_t columns = 0;
  if (trace.correlation[row] != 0) columns |= Bit(pb::COLUMN_CORRELATION);
  if (d.copy) columns |= Bit(pb::COLUMN_BYTES);
  if (d.op && d.op->sequence != -1) columns |= Bit(pb::COLUMN_SEQUENCE);
  if (d.kernel && d.kernel->graph_node != 0) columns |= Bit(pb::COLUMN_GRAPH_NODE);
  if (d.sync && d.sync->event != -1) columns |= Bit(pb::COLUMN_EVENT);
  if (d.sync && d.sync->record_correlation != 0) columns |= Bit(pb::COLUMN_RECORD_CORRELATION);
  return columns;
}

SignatureKey KeyOf(const Trace& trace, size_t row, const RowDetails& d) {
  SignatureKey key{};
  const auto kind = static_cast<uint32_t>(trace.kind[row]);
  const bool detailed = d.kernel || d.copy || d.op || d.sync;
  key[0] = Pack(kind, detailed ? 1 : 0);
  key[1] = trace.name[row].value;
  if (d.kernel) {
    const KernelDetail& k = *d.kernel;
    key[2] = Pack(k.grid[0], k.grid[1]);
    key[3] = Pack(k.grid[2], k.block[0]);
    key[4] = Pack(k.block[1], k.block[2]);
    key[5] = Pack(k.registers_per_thread, k.shared_memory_bytes);
    key[6] = k.collective;
    key[7] = Pack(k.layer.value, k.backward ? 1 : 0);
  } else if (d.copy) {
    key[2] = Pack(static_cast<uint32_t>(d.copy->from), static_cast<uint32_t>(d.copy->to));
  } else if (d.op) {
    key[2] = static_cast<uint64_t>(d.op->forward_thread);
    key[3] = Pack(d.op->shapes.value, d.op->types.value);
    key[4] = d.op->collective;
  } else if (d.sync) {
    key[2] = static_cast<uint64_t>(d.sync->stream);
    key[3] = static_cast<uint64_t>(d.sync->wait_on_stream);
    key[4] = static_cast<uint64_t>(d.sync->kind);
  }
  return key;
}

// The last entry of each delta-coded column of the chunk.
struct LastEntries {
  int64_t start = 0, correlation = 0, sequence = 0, graph_node = 0, event = 0, record = 0;
};

int64_t Delta(int64_t value, int64_t& last) {
  // Wraps like the reader does, so that any two values have a difference.
  const auto delta =
      static_cast<int64_t>(static_cast<uint64_t>(value) - static_cast<uint64_t>(last));
  last = value;
  return delta;
}

class Encoder {
 public:
  Encoder(const Trace& trace, const DdtraceOptions& options, Sink sink)
      : trace_(trace),
        sink_(std::move(sink)),
        rows_per_chunk_(std::clamp<size_t>(options.rows_per_chunk, 1, 65536)),
        string_ids_(trace.names->size(), kNone),
        collective_ids_(trace.collectives.size(), kNone) {}

  absl::Status Run() {
    DD_RETURN_IF_ERROR(Put(kDdtraceMagic));
    DD_RETURN_IF_ERROR(WriteHeader());
    String(NameId(0));  // id 0 is the empty text
    for (const Lane& lane : trace_.lanes) AddLane(lane);
    for (const Device& device : trace_.devices) {
      FillDevice(device, chunk_.mutable_definitions()->add_devices());
    }
    if (trace_.rows() == 0) DD_RETURN_IF_ERROR(Flush());
    for (size_t row = 0; row < trace_.rows(); ++row) {
      AddRow(row);
      const bool full = rows_ >= rows_per_chunk_ || definition_bytes_ >= kMaxDefinitionBytes;
      if (full || row + 1 == trace_.rows()) DD_RETURN_IF_ERROR(Flush());
    }
    DD_RETURN_IF_ERROR(WriteAllocations());
    DD_RETURN_IF_ERROR(WriteDependencies());
    return WriteIndex();
  }

 private:
  absl::Status Put(std::string_view bytes) {
    offset_ += bytes.size();
    return sink_(bytes);
  }

  absl::Status PutChunk(DdtraceChunkHeader header, const google::protobuf::MessageLite& message) {
    message_.clear();
    if (!message.SerializeToString(&message_)) {
      return InvalidArgument("one part of this trace is too large for a .ddtrace file");
    }
    header.sequence = sequence_++;
    DD_ASSIGN_OR_RETURN(const std::string_view chunk, packer_.Pack(header, message_));
    pb::ChunkRef* ref = index_.add_chunks();
    ref->set_offset(offset_);
    ref->set_stored(static_cast<uint32_t>(chunk.size() - kDdtraceHeaderSize));
    ref->set_raw(static_cast<uint32_t>(message_.size()));
    ref->set_first_ns(header.first_ns);
    ref->set_last_ns(header.last_ns);
    ref->set_type(header.type);
    ref->set_has_definitions((header.flags & kDdtraceHasDefinitions) != 0);
    ref->set_rows(static_cast<uint32_t>(rows_));
    return Put(chunk);
  }

  absl::Status WriteHeader() {
    pb::Header header;
    header.set_format_minor(kFormatMinor);
    header.set_writer("daydream");
    header.set_clock_origin_ns(trace_.clock_origin_ns);
    for (size_t i = 0; i < trace_.ranks.size(); ++i) {
      const Rank& rank = trace_.ranks[i];
      pb::Rank* entry = header.add_ranks();
      if (rank.rank != -1) entry->set_rank(rank.rank);
      if (rank.world_size != -1) entry->set_world_size(rank.world_size);
      const std::vector<RecordingCost>& costs = trace_.provenance.rank_costs;
      if (i < costs.size()) FillCost(costs[i], entry->mutable_cost());
    }
    FillProvenance(trace_.provenance, header.mutable_provenance());
    return PutChunk({.type = static_cast<uint8_t>(DdtraceChunkType::kHeader)}, header);
  }

  absl::Status WriteIndex() {
    index_.set_end(pb::Index::END_COMPLETE);
    index_.set_rows(trace_.rows());
    const pb::Index index = index_;  // PutChunk adds to index_; the index does not list itself
    const uint64_t index_offset = offset_;
    rows_ = 0;
    DD_RETURN_IF_ERROR(PutChunk({.type = static_cast<uint8_t>(DdtraceChunkType::kIndex)}, index));
    const auto trailer = EncodeTrailer(index_offset);
    return Put({trailer.data(), trailer.size()});
  }

  absl::Status Flush() {
    DdtraceChunkHeader header{.type = static_cast<uint8_t>(DdtraceChunkType::kEvents)};
    header.first_ns = first_ns_;
    header.last_ns = last_ns_;
    if (chunk_.has_definitions()) {
      header.flags |= kDdtraceHasDefinitions;
      pb::Definitions* definitions = chunk_.mutable_definitions();
      definitions->set_first_string(strings_ - definitions->strings_size());
      definitions->set_first_lane(lanes_ - definitions->lanes_size());
      definitions->set_first_signature(static_cast<uint32_t>(signature_ids_.size()) -
                                       definitions->signatures_size());
      definitions->set_first_collective(collectives_ - definitions->collectives_size());
    }
    DD_RETURN_IF_ERROR(PutChunk(header, chunk_));
    chunk_.Clear();
    used_.clear();
    last_ = {};
    rows_ = 0;
    definition_bytes_ = 0;
    first_ns_ = last_ns_ = 0;
    return absl::OkStatus();
  }

  // In chunks of their own, behind all rows.
  absl::Status WriteAllocations() {
    for (size_t begin = 0; begin < trace_.allocations.size(); begin += rows_per_chunk_) {
      pb::Allocations* to = chunk_.mutable_allocations();
      int64_t last = 0;
      const size_t end = std::min(begin + rows_per_chunk_, trace_.allocations.size());
      for (size_t i = begin; i < end; ++i) {
        const Allocation& a = trace_.allocations[i];
        to->add_at(Delta(a.at.ns, last));
        to->add_lane(a.lane.valid() ? a.lane.value + 1 : 0);
        to->add_device(a.device);
        to->add_bytes(a.bytes);
        to->add_allocated(static_cast<uint64_t>(a.allocated + 1));
        to->add_reserved(static_cast<uint64_t>(a.reserved + 1));
      }
      DD_RETURN_IF_ERROR(Flush());
    }
    return absl::OkStatus();
  }

  absl::Status WriteDependencies() {
    const std::vector<DataDependency>& all = trace_.dependencies;
    for (size_t begin = 0; begin < all.size(); begin += rows_per_chunk_) {
      pb::Dependencies* to = chunk_.mutable_dependencies();
      int64_t last = 0;
      for (size_t i = begin; i < std::min(begin + rows_per_chunk_, all.size()); ++i) {
        to->add_consumer(Delta(all[i].consumer, last));
        to->add_producer(int64_t{all[i].producer} - int64_t{all[i].consumer});
      }
      DD_RETURN_IF_ERROR(Flush());
    }
    return absl::OkStatus();
  }

  uint32_t String(NameId id) {
    uint32_t& known = string_ids_[id.index()];
    if (known == kNone) {
      known = strings_++;
      const std::string_view text = trace_.names->Get(id);
      chunk_.mutable_definitions()->add_strings(text.data(), text.size());
      definition_bytes_ += text.size() + 4;
    }
    return known;
  }

  uint32_t CollectiveOf(uint32_t row) {
    uint32_t& known = collective_ids_[row];
    if (known != kNone) return known;
    known = collectives_++;
    const CollectiveDetail& from = trace_.collectives[row];
    pb::Collective to;
    if (from.name.valid()) to.set_name(String(from.name));
    if (from.dtype.valid()) to.set_dtype(String(from.dtype));
    if (from.process_group.valid()) to.set_process_group(String(from.process_group));
    to.set_elements_in(from.elements_in);
    to.set_elements_out(from.elements_out);
    to.set_group_size(from.group_size);
    *chunk_.mutable_definitions()->add_collectives() = to;
    definition_bytes_ += 32;
    return known;
  }

  void AddLane(const Lane& from) {
    pb::Lane to;
    to.set_kind(ToProto(from.kind));
    if (from.name.valid()) to.set_name(String(from.name));
    to.set_rank(from.rank);
    if (from.device != -1) to.set_device(from.device);
    to.set_process(from.process);
    to.set_number(from.number);
    to.set_flags(static_cast<uint32_t>(from.stream));
    *chunk_.mutable_definitions()->add_lanes() = to;
    ++lanes_;
    definition_bytes_ += 32;
  }

  // The row of the chunk's table of used signatures. Rows of equal names and details have equal
  // ones: mostly that is all that is to be looked at.
  uint32_t SignatureOf(size_t row, const RowDetails& d, uint32_t columns) {
    const Alike alike{trace_.name[row].value, trace_.detail[row],
                      columns << 8 | static_cast<uint32_t>(trace_.kind[row]), sequence_};
    auto& [known, used] =
        recent_[(alike.name + 31 * alike.detail + 7 * alike.kind_and_columns) % recent_.size()];
    if (known == alike) return used;
    known = alike;
    return used = FindSignature(row, d, columns);
  }

  uint32_t FindSignature(size_t row, const RowDetails& d, uint32_t columns) {
    const auto next = static_cast<uint32_t>(signature_ids_.size());
    const auto [known, is_new] = signature_ids_.try_emplace(KeyOf(trace_, row, d), next);
    if (is_new) AddSignature(row, d);
    const auto next_used = static_cast<uint32_t>(used_.size());
    const auto [used, is_first] = used_.try_emplace(Pack(known->second, columns), next_used);
    if (is_first) {
      chunk_.mutable_rows()->add_used_signature(known->second);
      chunk_.mutable_rows()->add_used_columns(columns);
    }
    return used->second;
  }

  void AddSignature(size_t row, const RowDetails& d) {
    pb::Signature to;
    to.set_kind(ToProto(trace_.kind[row]));
    to.set_name(String(trace_.name[row]));
    if (d.kernel) {
      FillLaunch(*d.kernel, to.mutable_launch());
      if (d.kernel->collective != kNone) to.set_collective(CollectiveOf(d.kernel->collective));
      if (d.kernel->layer.valid()) to.set_layer(String(d.kernel->layer));
      to.set_backward(d.kernel->backward);
    } else if (d.copy) {
      to.mutable_copy()->set_from(ToProto(d.copy->from));
      to.mutable_copy()->set_to(ToProto(d.copy->to));
    } else if (d.op) {
      pb::Op* op = to.mutable_op();
      if (d.op->forward_thread != -1) op->set_forward_thread(d.op->forward_thread);
      if (d.op->shapes.valid()) op->set_shapes(String(d.op->shapes));
      if (d.op->types.valid()) op->set_types(String(d.op->types));
      if (d.op->collective != kNone) to.set_collective(CollectiveOf(d.op->collective));
    } else if (d.sync) {
      pb::Sync* sync = to.mutable_sync();
      sync->set_kind(ToProto(d.sync->kind));
      if (d.sync->stream != -1) sync->set_stream(d.sync->stream);
      if (d.sync->wait_on_stream != -1) sync->set_wait_on_stream(d.sync->wait_on_stream);
    }
    *chunk_.mutable_definitions()->add_signatures() = std::move(to);
    definition_bytes_ += 48;
  }

  void AddRow(size_t row) {
    const RowDetails d = DetailsOf(trace_, row);
    const uint32_t columns = ColumnsOf(trace_, row, d);
    const uint32_t signature = SignatureOf(row, d, columns);
    const int64_t start = trace_.start[row].ns;
    const int64_t end = trace_.End(row).ns;
    if (rows_ == 0) {
      chunk_.set_base_ns(start);
      last_.start = first_ns_ = start;
      last_ns_ = end;
    }
    first_ns_ = std::min(first_ns_, start);
    last_ns_ = std::max(last_ns_, end);
    pb::Rows* rows = chunk_.mutable_rows();
    rows->add_start(Delta(start, last_.start));
    rows->add_duration(static_cast<uint64_t>(trace_.duration[row].ns));
    rows->add_lane(trace_.lane[row].value);
    rows->add_signature(signature);
    if (columns & Bit(pb::COLUMN_CORRELATION)) {
      rows->add_correlation(Delta(trace_.correlation[row], last_.correlation));
    }
    if (d.copy) rows->add_bytes(d.copy->bytes);
    if (columns & Bit(pb::COLUMN_SEQUENCE)) {
      rows->add_sequence(Delta(d.op->sequence, last_.sequence));
    }
    if (columns & Bit(pb::COLUMN_GRAPH_NODE)) {
      rows->add_graph_node(Delta(static_cast<int64_t>(d.kernel->graph_node), last_.graph_node));
    }
    if (columns & Bit(pb::COLUMN_EVENT)) rows->add_event(Delta(d.sync->event, last_.event));
    if (columns & Bit(pb::COLUMN_RECORD_CORRELATION)) {
      rows->add_record_correlation(Delta(d.sync->record_correlation, last_.record));
    }
    ++rows_;
  }

  const Trace& trace_;
  Sink sink_;
  const size_t rows_per_chunk_;
  std::vector<uint32_t> string_ids_, collective_ids_;  // by NameId, by row of collectives
  absl::flat_hash_map<SignatureKey, uint32_t> signature_ids_;
  absl::flat_hash_map<uint64_t, uint32_t> used_;  // (signature id, columns) of this chunk
  struct Alike {
    uint32_t name = 0, detail = 0, kind_and_columns = 0;
    uint32_t chunk = 0;  // the first has a header alone
    bool operator==(const Alike&) const = default;
  };
  struct Recent {
    Alike alike;
    uint32_t used = 0;
  };
  std::array<Recent, 1024> recent_{};
  uint32_t strings_ = 0, lanes_ = 0, collectives_ = 0, sequence_ = 0;
  uint64_t offset_ = 0;
  pb::Index index_;
  pb::EventChunk chunk_;  // the chunk being filled
  LastEntries last_;
  size_t rows_ = 0, definition_bytes_ = 0;
  int64_t first_ns_ = 0, last_ns_ = 0;
  std::string message_;
  ChunkPacker packer_;
};

}  // namespace

absl::Status WriteDdtrace(const Trace& trace, const std::string& path,
                          const DdtraceOptions& options) {
  DD_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, options.overwrite));
  Encoder encoder(trace, options, [&](std::string_view bytes) { return file.Append(bytes); });
  DD_RETURN_IF_ERROR(encoder.Run());
  return file.Commit();
}

absl::StatusOr<std::string> SerializeDdtrace(const Trace& trace, const DdtraceOptions& options) {
  std::string file;
  Encoder encoder(trace, options, [&](std::string_view bytes) {
    file.append(bytes);
    return absl::OkStatus();
  });
  DD_RETURN_IF_ERROR(encoder.Run());
  return file;
}

}  // namespace daydream
