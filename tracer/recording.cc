#include "tracer/recording.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <protozero/pbf_writer.hpp>

#include "tracer/chunk_file.h"
#include "tracer/cupti_decoder.h"
#include "tracer/daydream_mark.h"
#include "tracer/encoder.h"
#include "tracer/graph_nodes.h"
#include "tracer/marks.h"
#include "tracer/name_table.h"

namespace daydream::tracer {
namespace {

using protozero::pbf_writer;

constexpr uint32_t kFormatMinor = 1;
// The index lists no more chunks than these: far below kDdtraceMaxRaw.
constexpr size_t kMaxIndexedChunks = 1 << 16;
// Of the index, beside its list of chunks: totals, its header and the trailer.
constexpr size_t kIndexRest = 4096;

// The kernel's name of a thread of this process.
uint32_t ThreadName(uint32_t thread) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/self/task/%u/comm", thread);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[64];
  const ssize_t size = read(file, text, sizeof(text));
  close(file);
  if (size <= 1) return 0;
  return names.Intern({text, static_cast<size_t>(size) - 1});  // without the line end
}

void AddPair(pbf_writer& writer, uint32_t field, const std::pair<std::string, std::string>& pair) {
  pbf_writer entry(writer, field);
  entry.add_bytes(recording::kKey, pair.first);
  entry.add_bytes(recording::kValue, pair.second);
}

std::string EncodeHeader(const RecordingFacts& facts) {
  std::string out;
  pbf_writer writer(out);
  writer.add_uint32(header::kFormatMinor, kFormatMinor);
  writer.add_bytes(header::kWriter, "daydream");
  writer.add_enum(header::kClock, header::kClockMonotonic);
  writer.add_int64(header::kClockOrigin, facts.clock_origin_ns);
  {
    pbf_writer rank(writer, header::kRanks);
    if (facts.rank >= 0) rank.add_int32(header::kRankRank, facts.rank);
    if (facts.world_size >= 0) rank.add_int32(header::kRankWorldSize, facts.world_size);
    if (facts.local_rank >= 0) rank.add_int32(header::kRankLocalRank, facts.local_rank);
  }
  pbf_writer process(writer, header::kRecording);
  process.add_uint32(recording::kPid, facts.pid);
  process.add_uint32(recording::kParentPid, facts.parent_pid);
  process.add_bytes(recording::kHostname, facts.hostname);
  for (const std::string& word : facts.argv) process.add_bytes(recording::kArgv, word);
  process.add_bytes(recording::kBootId, facts.boot_id);
  process.add_bytes(recording::kSessionId, facts.session_id);
  process.add_uint32(recording::kCuptiVersion, facts.cupti_version);
  process.add_uint32(recording::kDriverVersion, facts.cuda_driver_version);
  process.add_uint32(recording::kRuntimeVersion, facts.cuda_runtime_version);
  process.add_bytes(recording::kCuptiPath, facts.cupti_path);
  for (const std::string& kind : facts.enabled_kinds) {
    process.add_bytes(recording::kEnabledKinds, kind);
  }
  for (const auto& pair : facts.environment) AddPair(process, recording::kEnvironment, pair);
  for (const auto& pair : facts.software) AddPair(process, recording::kSoftware, pair);
  for (const auto& pair : facts.lacks) AddPair(process, recording::kLacks, pair);
  return out;
}

// Marks whose value says something even when it is 0.
bool HasValue(uint32_t kind) {
  switch (kind) {
    case DAYDREAM_STEP:
    case DAYDREAM_BACKWARD_ENTER:
    case DAYDREAM_BACKWARD_EXIT:
    case DAYDREAM_RANK:
    case DAYDREAM_COLLECTIVE:
      return true;
    default:
      return false;
  }
}

}  // namespace

class Recording::Impl {
 public:
  Impl(const FileCalls& calls, const RecordingFacts& facts)
      : origin_(facts.clock_origin_ns),
        file_(calls),
        encoder_(facts.pid, ThreadName),
        decoder_(
            encoder_, losses_, origin_, [](void* user) { static_cast<Impl*>(user)->WriteChunks(); },
            this) {}

  void AddMark(uint32_t thread, const MarkRecord& mark) {
    const uint32_t kind = mark.kind & ~kMarkBytes;
    Signature signature{.kind = kMark, .name = mark.name};
    signature.detail[0] = kind;
    if ((mark.kind & kMarkBytes) != 0) {
      signature.columns = 1u << kBytes;
    } else if (mark.value != 0 || HasValue(kind)) {
      signature.columns = 1u << kValue;
    }
    encoder_.Add(RowGroup::kMarks, {.start = mark.time_ns - origin_,
                                    .lane = encoder_.ThreadLane(thread),
                                    .signature = encoder_.SignatureOf(signature),
                                    .word = static_cast<uint64_t>(mark.value)});
    if (encoder_.IsFull()) WriteChunks();
  }

  // Writes all that came together; in more than one chunk when there are many names.
  int WriteChunks() {
    while (encoder_.HasNews()) {
      const EncodedChunk& chunk = encoder_.MakeChunk();
      DdtraceChunkHeader header{.type = static_cast<uint8_t>(DdtraceChunkType::kEvents)};
      header.first_ns = chunk.first_ns;
      header.last_ns = chunk.last_ns;
      if (chunk.has_definitions) header.flags = kDdtraceHasDefinitions;
      const uint64_t offset = file_.size();
      if (const int error = file_.Append(header, chunk.message, index_.size() + kIndexRest)) {
        if (first_error_ == 0) first_error_ = error;
        losses_.not_written += encoder_.Lost();
        if (losses_.write_error == 0) losses_.write_error = static_cast<uint32_t>(error);
        return error;
      }
      Index(offset, header, chunk);
      encoder_.Written();
    }
    return 0;
  }

  int Flush() {
    if (losses_ != stored_losses_) {
      encoder_.SetLosses(losses_);
      stored_losses_ = losses_;
    }
    return WriteChunks();
  }

  int Close(RecordingEnd end, int32_t detail) {
    const int error = Flush();
    pbf_writer writer(index_);
    std::string loss;
    EncodeLosses(losses_, &loss);
    writer.add_message(index::kLoss, loss);
    writer.add_enum(index::kEnd, static_cast<int32_t>(end));
    writer.add_int32(index::kEndDetail, detail);
    writer.add_int64(index::kEndNs, last_ns_);
    writer.add_uint64(index::kRows, stored_rows_);
    const int finish_error = file_.Finish(index_);
    return error != 0 ? error : finish_error;
  }

  const int64_t origin_;
  Losses losses_, stored_losses_;
  ChunkFile file_;
  Encoder encoder_;
  CuptiDecoder decoder_;
  uint64_t stored_rows_ = 0;
  int64_t last_ns_ = 0;
  int first_error_ = 0;
  // Of the whole process, when the file was opened: earlier ones are no loss of this file.
  uint64_t dropped_marks_ = DroppedMarks(), dropped_nodes_ = DroppedGraphNodes();
  uint64_t dropped_names_ = DroppedNames();

 private:
  void Index(uint64_t offset, const DdtraceChunkHeader& header, const EncodedChunk& chunk) {
    stored_rows_ += chunk.rows;
    last_ns_ = std::max(last_ns_, chunk.last_ns);
    if (file_.chunks() > kMaxIndexedChunks) return;
    pbf_writer writer(index_);
    pbf_writer ref(writer, index::kChunks);
    ref.add_uint64(chunk_ref::kOffset, offset);
    const uint64_t stored = file_.size() - offset - kDdtraceHeaderSize;
    ref.add_uint32(chunk_ref::kStored, static_cast<uint32_t>(stored));
    ref.add_uint32(chunk_ref::kRaw, static_cast<uint32_t>(chunk.message.size()));
    ref.add_int64(chunk_ref::kFirst, chunk.first_ns);
    ref.add_int64(chunk_ref::kLast, chunk.last_ns);
    ref.add_uint32(chunk_ref::kType, header.type);
    ref.add_bool(chunk_ref::kHasDefinitions, chunk.has_definitions);
    ref.add_uint32(chunk_ref::kRows, chunk.rows);
  }

  std::string index_;  // Index.chunks so far
};

constinit Recording::Impl* Recording::abandoned_ = nullptr;

Recording::Recording(const FileCalls& calls) : impl_(nullptr), calls_(calls) {}

Recording::~Recording() { delete impl_; }

int Recording::Open(const char* path, const RecordingFacts& facts) {
  delete impl_;
  impl_ = new Impl(calls_, facts);
  const int error = impl_->file_.Create(path, EncodeHeader(facts));
  if (error != 0) {
    delete impl_;
    impl_ = nullptr;
  }
  return error;
}

bool Recording::is_open() const { return impl_ != nullptr && impl_->file_.is_open(); }

void Recording::SetCupti(const CuptiDecoding& cupti) { impl_->decoder_.SetCupti(cupti); }

void Recording::SetCuptiOffset(int64_t ns) { impl_->decoder_.SetOffset(ns); }

void Recording::AddBuffer(uint8_t* buffer, size_t valid) { impl_->decoder_.Decode(buffer, valid); }

void Recording::AddMarks() {
  TakeMarks(
      [](void* user, uint32_t thread, const MarkRecord* marks, size_t count) {
        for (size_t i = 0; i < count; ++i) static_cast<Impl*>(user)->AddMark(thread, marks[i]);
      },
      impl_);
  for (const GraphNode& node : TakeGraphNodes()) {
    impl_->encoder_.AddGraphNode(node, impl_->origin_);
  }
  const uint64_t marks = DroppedMarks(), nodes = DroppedGraphNodes(), names = DroppedNames();
  impl_->losses_.writer_backpressure += marks - impl_->dropped_marks_;
  impl_->losses_.no_buffer += nodes - impl_->dropped_nodes_;
  impl_->losses_.unnamed += names - impl_->dropped_names_;
  impl_->dropped_marks_ = marks;
  impl_->dropped_names_ = names;
  impl_->dropped_nodes_ = nodes;
}

void Recording::AddClock(const ClockReading& reading) {
  impl_->encoder_.AddClock(reading, impl_->origin_);
}

void Recording::AddNote(std::string_view text, int64_t monotonic_ns) {
  const auto thread = static_cast<uint32_t>(getpid());
  impl_->AddMark(
      thread,
      {.time_ns = monotonic_ns, .value = 0, .name = names.Intern(text), .kind = DAYDREAM_NOTE});
}

void Recording::AddLosses(const Losses& more) {
  Losses& all = impl_->losses_;
  all.cupti_dropped += more.cupti_dropped;
  all.no_buffer += more.no_buffer;
  all.unknown_kind += more.unknown_kind;
  all.writer_backpressure += more.writer_backpressure;
  all.invalid_time += more.invalid_time;
  all.lost_bytes += more.lost_bytes;
  all.not_written += more.not_written;
  if (all.write_error == 0) all.write_error = more.write_error;
  all.unnamed += more.unnamed;
}

int Recording::Flush() { return impl_->Flush(); }

int Recording::Close(RecordingEnd end, int32_t detail) {
  if (const uint64_t reduced = impl_->encoder_.reduced_signatures(); reduced > 0) {
    AddNote("events without name or shape=" + std::to_string(reduced) + ", for there were too many",
            impl_->origin_ + impl_->last_ns_);
  }
  return impl_->Close(end, detail);
}

void Recording::AbandonInChild() {
  if (impl_ == nullptr) return;
  impl_->file_.Close();
  abandoned_ = impl_;
  impl_ = nullptr;
}

const Losses& Recording::losses() const { return impl_->losses_; }

uint64_t Recording::rows() const { return impl_->encoder_.total_rows(); }

uint64_t Recording::bytes() const { return impl_->file_.size(); }

int Recording::first_error() const { return impl_->first_error_; }

}  // namespace daydream::tracer
