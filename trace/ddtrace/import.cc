#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "trace/ddtrace/chunks.h"
#include "trace/ddtrace/columns.h"
#include "trace/ddtrace/definitions.h"
#include "trace/ddtrace/dependencies.h"
#include "trace/ddtrace/format.h"
#include "trace/importer.h"
#include "trace/recording/lacks.h"
#include "trace/recording/rows.h"

namespace daydream {
namespace {

// Times beyond +-2^61 ns (73 years) are damage; sums of two of them cannot overflow.
constexpr int64_t kMaxNs = int64_t{1} << 61;
constexpr size_t kMaxRanks = 1 << 16;
constexpr uint32_t kNoTime = 1;  // in Rows.flags
// What a row or a definition is charged against ImportOptions::max_text_bytes: about what it
// takes in memory while it is read, and less than its JSON form would.
constexpr int64_t kChargePerItem = 64;

class Reader {
 public:
  Reader(ByteSource& source, const ImportOptions& options, TraceBuilder& builder)
      : chunks_(source),
        source_(source),
        options_(options),
        builder_(builder),
        budget_(options.max_text_bytes),
        counts_(builder),
        definitions_(builder, counts_),
        recording_(builder, counts_) {}

  absl::Status Run() {
    DD_RETURN_IF_ERROR(chunks_.Begin());
    while (true) {
      DD_ASSIGN_OR_RETURN(const std::optional<DdtraceChunks::Chunk> chunk, chunks_.Next());
      if (!chunk) break;
      absl::StatusOr<std::string> message = UnpackChunk(chunk->header, chunk->payload);
      if (!message.ok()) {
        chunks_.Reject();
        continue;
      }
      if (!FollowSequence(*chunk)) continue;
      DD_RETURN_IF_ERROR(Charge(static_cast<int64_t>(message->size())));
      DD_RETURN_IF_ERROR(ReadChunk(*chunk, *message));
      if (options_.progress) options_.progress(chunks_.offset(), source_.total());
    }
    return Finish();
  }

 private:
  absl::Status Charge(int64_t bytes) {
    budget_ -= bytes;
    if (budget_ >= 0) return absl::OkStatus();
    return MakeStatus(absl::StatusCode::kResourceExhausted,
                      {.code = "E0225",
                       .what = "this .ddtrace file holds more than may be read",
                       .where = source_.name(),
                       .why = fmt::format("the limit is {} bytes", options_.max_text_bytes)});
  }

  // Notices lost chunks; false when this one was read already.
  bool FollowSequence(const DdtraceChunks::Chunk& chunk) {
    counts_.SetOffset(chunk.offset);
    const uint64_t sequence = chunk.header.sequence;
    if (sequence < next_sequence_) {
      counts_.Malformed("repeated chunks", "the file holds them twice", 1, false);
      return false;
    }
    lost_chunks_ += sequence - next_sequence_;
    next_sequence_ = sequence + 1;
    return true;
  }

  absl::Status ReadChunk(const DdtraceChunks::Chunk& chunk, const std::string& message) {
    google::protobuf::Arena arena;
    switch (static_cast<DdtraceChunkType>(chunk.header.type)) {
      case DdtraceChunkType::kHeader: {
        auto* header = google::protobuf::Arena::CreateMessage<pb::Header>(&arena);
        if (!header->ParseFromString(message)) break;
        ReadHeader(*header);
        return absl::OkStatus();
      }
      case DdtraceChunkType::kEvents: {
        auto* events = google::protobuf::Arena::CreateMessage<pb::EventChunk>(&arena);
        if (!events->ParseFromString(message)) break;
        return ReadEvents(*events);
      }
      case DdtraceChunkType::kIndex: {
        auto* index = google::protobuf::Arena::CreateMessage<pb::Index>(&arena);
        if (!index->ParseFromString(message)) break;
        has_index_ = true;
        index_rows_ = index->rows();
        end_ = index->end();
        if (index->has_loss()) ReadLoss(index->loss());
        return absl::OkStatus();
      }
      default:
        counts_.Note("chunks of an unknown type", "written by a newer daydream",
                     (chunk.header.flags & kDdtraceMayIgnore) == 0);
        return absl::OkStatus();
    }
    ++unreadable_chunks_;
    return absl::OkStatus();
  }

  void ReadHeader(const pb::Header& header) {
    if (has_header_) {
      counts_.Malformed("second headers", "a file has one header", 1, false);
      return;
    }
    has_header_ = true;
    const int64_t origin = header.clock_origin_ns();
    if (origin > -kMaxNs && origin < kMaxNs) {
      builder_.SetClockBase(origin);
    } else {
      counts_.Malformed("clock readings", "more than 73 years away from 0", 1, false);
    }
    const size_t ranks = std::min<size_t>(kMaxRanks, header.ranks().size());
    for (size_t i = 0; i < ranks; ++i) {
      const pb::Rank& rank = header.ranks(static_cast<int>(i));
      builder_.AddRank(rank.has_rank() ? rank.rank() : -1,
                       rank.has_world_size() ? rank.world_size() : -1);
      if (!rank.has_cost()) continue;
      builder_.provenance().rank_costs.resize(i + 1);
      builder_.provenance().rank_costs.back() = FromProto(rank.cost());
    }
    definitions_.SetRanks(ranks);
    if (header.has_provenance()) ReadProvenance(header.provenance());
    rank_known_ = ranks > 0 && header.ranks(0).has_rank();
    if (header.has_recording()) ReadRecording(header.recording());
    definitions_.SetRecorded(!has_provenance_);
  }

  void ReadRecording(const pb::Recording& recording) {
    for (const pb::KeyValue& entry : recording.software()) {
      builder_.AddSoftware(entry.key(), entry.value());
    }
    for (const pb::KeyValue& lack : recording.lacks()) {
      builder_.AddSoftware(std::string(kLacks) + lack.key(), lack.value());
    }
    const auto add = [&](std::string what, uint32_t version) {
      const std::string text = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
      if (version != 0) builder_.AddSoftware(std::move(what), text);
    };
    add("CUDA driver", recording.cuda_driver_version());
    add("CUDA runtime", recording.cuda_runtime_version());
    if (recording.cupti_version() != 0) {
      builder_.AddSoftware("CUPTI", std::to_string(recording.cupti_version()));
    }
  }

  void ReadProvenance(const pb::Provenance& from) {
    Provenance& to = builder_.provenance();
    has_provenance_ = true;
    to.importer = from.importer();
    to.format = from.format();
    to.source = from.source();
    to.synthetic = from.synthetic();
    to.input_events = from.input_events();
    to.cost = FromProto(from.cost());
    to.no_waits = from.no_waits();
    to.planned = from.planned();
    for (const pb::KeyValue& table : from.tables_not_read()) {
      uint64_t rows = 0;
      const std::string& text = table.value();
      std::from_chars(text.data(), text.data() + text.size(), rows);
      builder_.AddTableNotRead(table.key(), rows);
    }
    for (const pb::KeyValue& entry : from.software()) {
      builder_.AddSoftware(entry.key(), entry.value());
    }
    for (const pb::Count& count : from.counts()) {
      builder_.Count(count.what(), count.reason(), count.loss(), count.count(),
                     count.has_first_byte() ? count.first_byte() : -1, !count.repair());
      if (!count.repair()) counts_.CountNotRows(count.count());
    }
  }

  void ReadLoss(const pb::Loss& loss) {
    // Events with an invalid time are in the file.
    loss_ = {loss.cupti_dropped(), loss.no_buffer(), loss.unknown_kind(),
             loss.writer_backpressure()};
    lost_bytes_ = loss.lost_bytes();
    not_written_ = loss.not_written();
    write_error_ = loss.write_error();
    unnamed_ = loss.unnamed();
  }

  // ---- Rows ----

  absl::Status ReadEvents(const pb::EventChunk& chunk) {
    const pb::Definitions& definitions = chunk.definitions();
    DD_RETURN_IF_ERROR(
        Charge(kChargePerItem * (int64_t{definitions.strings_size()} + definitions.lanes_size() +
                                 definitions.signatures_size() + definitions.collectives_size() +
                                 chunk.graph_nodes_size())));
    definitions_.Read(definitions);
    for (const pb::GraphNode& node : chunk.graph_nodes()) {
      const LaneId* lane = definitions_.FindLane(node.lane());
      recording_.AddGraphNode(node.node(), node.origin_node(),
                              node.has_lane() && lane ? *lane : LaneId::None(),
                              Instant{node.created_ns()});
    }
    if (chunk.has_loss()) ReadLoss(chunk.loss());
    const pb::Rows& rows = chunk.rows();
    DD_RETURN_IF_ERROR(Charge(kChargePerItem * int64_t{rows.start_size()}));
    const auto [fewest, most] = std::minmax(
        {rows.start_size(), rows.duration_size(), rows.lane_size(), rows.signature_size()});
    counts_.Malformed("incomplete events", "a column of the chunk is too short", most - fewest,
                      true);
    stored_rows_ = SaturatingAdd(stored_rows_, static_cast<uint64_t>(most));
    DdtraceColumns columns(rows);
    uint64_t start = static_cast<uint64_t>(chunk.base_ns());
    for (int i = 0; i < fewest; ++i) {
      start += static_cast<uint64_t>(rows.start(i));
      ReadRow(rows, i, static_cast<int64_t>(start), columns);
    }
    counts_.Malformed("values without an event", "columns of a chunk do not fit each other",
                      columns.mismatch(), false);
    DD_RETURN_IF_ERROR(Charge(kChargePerItem * int64_t{chunk.dependencies().consumer_size()}));
    dependencies_.Read(chunk.dependencies());
    return ReadAllocations(chunk.allocations());
  }

  absl::Status ReadAllocations(const pb::Allocations& from) {
    DD_RETURN_IF_ERROR(Charge(kChargePerItem * int64_t{from.at_size()}));
    const int count = std::min({from.at_size(), from.lane_size(), from.device_size(),
                                from.bytes_size(), from.allocated_size(), from.reserved_size()});
    // More than any device has: damage.
    constexpr int64_t kMostBytes = int64_t{1} << 48;
    uint64_t at = 0, refused = static_cast<uint64_t>(from.at_size() - count);
    auto total = [](uint64_t stored) { return static_cast<int64_t>(stored) - 1; };
    for (int i = 0; i < count; ++i) {
      at += static_cast<uint64_t>(from.at(i));
      const auto time = static_cast<int64_t>(at);
      const bool fits = time >= -kMaxNs && time <= kMaxNs && from.bytes(i) >= -kMostBytes &&
                        from.bytes(i) <= kMostBytes && from.allocated(i) <= kMostBytes &&
                        from.reserved(i) <= kMostBytes;
      if (!fits) {
        ++refused;
        continue;
      }
      const LaneId* lane = from.lane(i) == 0 ? nullptr : definitions_.FindLane(from.lane(i) - 1);
      builder_.AddAllocation({.at = Instant{time},
                              .lane = lane != nullptr ? *lane : LaneId::None(),
                              .device = from.device(i),
                              .bytes = from.bytes(i),
                              .allocated = total(from.allocated(i)),
                              .reserved = total(from.reserved(i))});
    }
    counts_.Malformed("impossible allocations", "time or size out of range", refused, false);
    return absl::OkStatus();
  }

  void ReadRow(const pb::Rows& rows, int i, int64_t start, DdtraceColumns& columns) {
    const uint32_t used = rows.signature(i);
    const bool used_ok = used < static_cast<uint32_t>(rows.used_signature_size()) &&
                         used < static_cast<uint32_t>(rows.used_columns_size());
    if (!used_ok) return counts_.Malformed("events with an impossible id", "signature", 1, true);
    const DdtraceExtras extras = columns.Take(rows.used_columns(used));
    const DdtraceSignature* signature = definitions_.FindSignature(rows.used_signature(used));
    const LaneId* lane = definitions_.FindLane(rows.lane(i));
    if (!signature || !lane) {
      return counts_.Input("events of a lost definition", kDdtraceDamage, true);
    }
    const uint64_t duration = rows.duration(i);
    if (start < -kMaxNs || start > kMaxNs || duration > uint64_t{kMaxNs}) {
      return counts_.Malformed("events with an impossible time", "beyond 73 years", 1, true);
    }
    TraceBuilder::Event event{.start = Instant{start},
                              .duration = Duration{static_cast<int64_t>(duration)},
                              .lane = *lane,
                              .name = signature->name};
    if (extras.correlation >= 0 && extras.correlation <= int64_t{UINT32_MAX}) {
      event.correlation = static_cast<uint32_t>(extras.correlation);
    } else {
      counts_.Malformed("impossible correlation ids", "not in 32 bits", 1, false);
    }
    if (!has_provenance_ && (extras.flags & kNoTime) != 0) {
      return counts_.Input("events without a time", "CUPTI did not collect it", true);
    }
    if (!signature->kind) return ReadOtherKind(*signature, event, extras);
    event.kind = *signature->kind;
    if (has_provenance_) {
      if (signature->has_detail) event.detail = AddDetail(*signature, extras);
      return builder_.AddEvent(event);
    }
    if (event.kind == EventKind::kSync) {
      SyncDetail sync = signature->sync;
      sync.event = extras.event;
      return recording_.AddWait(event, sync, signature->context,
                                static_cast<uint64_t>(extras.event_sync));
    }
    if (signature->has_detail) event.detail = AddDetail(*signature, extras);
    recording_.AddEvent(event);
  }

  uint32_t AddDetail(const DdtraceSignature& signature, const DdtraceExtras& extras) {
    switch (*signature.kind) {
      case EventKind::kOp: {
        OpDetail op = signature.op;
        op.sequence = extras.sequence;
        return builder_.AddOp(op);
      }
      case EventKind::kKernel: {
        KernelDetail kernel = signature.kernel;
        kernel.graph_node = static_cast<uint64_t>(extras.graph_node);
        return builder_.AddKernel(kernel);
      }
      case EventKind::kMemcpy:
      case EventKind::kMemset: {
        CopyDetail copy = signature.copy;
        copy.bytes = extras.bytes;
        return builder_.AddCopy(copy);
      }
      case EventKind::kSync: {
        SyncDetail sync = signature.sync;
        sync.event = extras.event;
        sync.record_correlation = static_cast<uint32_t>(extras.record_correlation);
        return builder_.AddSync(sync);
      }
      default:
        return kNone;
    }
  }

  // Kinds that only recorders write.
  void ReadOtherKind(const DdtraceSignature& signature, TraceBuilder::Event event,
                     const DdtraceExtras& extras) {
    switch (signature.stored_kind) {
      case pb::KIND_EVENT_RECORD:
        return recording_.AddEventRecord({.correlation = event.correlation,
                                          .context = signature.context,
                                          .event = extras.event,
                                          .event_sync = static_cast<uint64_t>(extras.event_sync),
                                          .stream = builder_.lane(event.lane).number});
      case pb::KIND_GRAPH_LAUNCH:
        // What ran inside is not known: one piece of GPU work as long as all of it.
        event.kind = EventKind::kKernel;
        event.name = builder_.names().Intern(fmt::format("CUDA graph {}", extras.graph));
        return recording_.AddEvent(event);
      case pb::KIND_MARK:
        return recording_.AddMark({.at = event.start,
                                   .lane = event.lane,
                                   .name = event.name,
                                   .kind = signature.mark,
                                   .value = static_cast<int64_t>(extras.value),
                                   .bytes = extras.bytes});
      case pb::KIND_OVERHEAD:
        return recording_.AddOverhead(event.duration);
      default:
        return counts_.Input("events of an unknown kind", "written by a newer daydream", true);
    }
  }

  // ---- The end ----

  void CountRecordingLosses() {
    constexpr std::array<std::string_view, 4> kWhat = {
        "events dropped by CUPTI", "events without a buffer", "records of an unknown kind",
        "events that the writer had no time for"};
    for (size_t i = 0; i < kWhat.size(); ++i) {
      counts_.Input(kWhat[i], "lost while recording", true, loss_[i]);
    }
    counts_.Note("bytes of CUPTI that could not be read", "behind a record of an unknown kind",
                 true, lost_bytes_);
    counts_.Input(kNotWritten,
                  write_error_ == 0
                      ? std::string("lost while recording")
                      : fmt::format("the file could not grow: {}", std::strerror(write_error_)),
                  true, not_written_);
    counts_.Note("marks without a name",
                 "the program made more different texts than there is room for", false, unnamed_);
    switch (end_) {
      case pb::Index::END_SIGNAL:
      case pb::Index::END_EXEC:
      case pb::Index::END_ERROR:
        counts_.Note("recordings that ended early", "the program was stopped", false);
        break;
      default:
        break;
    }
  }

  bool CountDamage() {
    const auto bytes = static_cast<uint64_t>(chunks_.damaged_bytes());
    const bool damaged =
        bytes > 0 || lost_chunks_ > 0 || unreadable_chunks_ > 0 || !has_index_ || !has_header_;
    counts_.SetOffset(chunks_.first_damage());
    counts_.Note("damaged bytes", "no part of a readable chunk", true, bytes);
    counts_.Note("lost chunks", kDdtraceDamage, true,
                 SaturatingAdd(lost_chunks_, unreadable_chunks_));
    counts_.Note("missing headers", "clock, ranks and origin of the trace are not known", true,
                 !has_header_);
    counts_.Note("missing indexes", "the file was cut off, or its recording was killed", true,
                 !has_index_);
    // The index knows how many events there were; without it the provenance may.
    uint64_t lost = 0;
    const uint64_t known = SaturatingAdd(builder_.events(), counts_.not_rows());
    if (has_index_) {
      if (index_rows_ > stored_rows_) lost = index_rows_ - stored_rows_;
    } else if (has_provenance_ && builder_.provenance().input_events > known) {
      lost = builder_.provenance().input_events - known;
    }
    counts_.Input("events in damaged chunks", kDdtraceDamage, true, lost);
    return damaged || lost > 0;
  }

  absl::Status Finish() {
    if (!has_header_ && !has_index_ && stored_rows_ == 0) {
      return Refuse("E0222", "nothing in this .ddtrace file can be read",
                    "it was cut off at its very beginning, or overwritten");
    }
    if (!has_provenance_) {
      definitions_.FinishLanes();
      recording_.Finish(rank_known_);
    }
    const bool damaged = CountDamage();
    const bool whole = !damaged && counts_.malformed() == 0 && has_provenance_;
    if (whole) dependencies_.AddTo(builder_);
    counts_.Note("dependencies", kDdtraceDamage, true, whole ? 0 : dependencies_.size());
    if (damaged && stored_rows_ == 0 && index_rows_ > 0) {
      return Refuse("E0222", "nothing in this .ddtrace file can be read",
                    "all of its chunks of events are damaged");
    }
    CountRecordingLosses();
    if (!has_provenance_) {
      builder_.provenance().input_events = SaturatingAdd(builder_.events(), counts_.not_rows());
    }
    if (options_.strict && (damaged || counts_.malformed() > 0)) {
      return Refuse("E0223", "this .ddtrace file is damaged", "--strict asks for all of it");
    }
    const double share = static_cast<double>(counts_.malformed()) /
                         static_cast<double>(std::max<uint64_t>(stored_rows_, 1));
    if (counts_.malformed() > 0 && share > options_.max_malformed) {
      return Refuse("E0224", "too many events of this .ddtrace file are malformed",
                    fmt::format("{} of {}", counts_.malformed(), stored_rows_));
    }
    return absl::OkStatus();
  }

  absl::Status Refuse(std::string code, std::string what, std::string why) {
    return MakeStatus(absl::StatusCode::kDataLoss, {.code = std::move(code),
                                                    .what = std::move(what),
                                                    .where = source_.name(),
                                                    .why = std::move(why),
                                                    .fix = "make or copy the file again"});
  }

  DdtraceChunks chunks_;
  ByteSource& source_;
  const ImportOptions& options_;
  TraceBuilder& builder_;
  int64_t budget_;  // bytes that may still be read
  DdtraceCounts counts_;
  DdtraceDefinitions definitions_;
  RecordingRows recording_;  // rows of files that were not converted

  bool has_header_ = false, has_index_ = false, has_provenance_ = false, rank_known_ = false;
  DdtraceDependencies dependencies_;
  uint64_t next_sequence_ = 0, lost_chunks_ = 0, unreadable_chunks_ = 0;
  uint64_t stored_rows_ = 0;  // in the chunks that were read
  uint64_t index_rows_ = 0;   // in all chunks, says the index
  std::array<uint64_t, 4> loss_{};
  uint64_t lost_bytes_ = 0, not_written_ = 0, unnamed_ = 0;
  uint32_t write_error_ = 0;
  pb::Index::End end_ = pb::Index::END_UNSPECIFIED;
};

absl::Status ImportDdtrace(ByteSource& source, const ImportOptions& options,
                           TraceBuilder& builder) {
  return Reader(source, options, builder).Run();
}

// A newer major version is ours too, so that the error can say so.
bool Sniff(std::string_view head) {
  return head.starts_with(kDdtraceMagic.substr(0, kDdtraceMagic.size() - 1));
}

}  // namespace

const Importer kDdtrace = {.name = "ddtrace",
                           .summary = "daydream's own trace format (.ddtrace)",
                           .sniff = Sniff,
                           .import = ImportDdtrace,
                           .recorder = {.writer = "daydream trace, daydream import",
                                        .record = "daydream trace -- PROGRAM",
                                        .answers = "everything; shapes of ops only if imported"}};

}  // namespace daydream
