#include "trace/ddtrace/process.h"

#include "trace/ddtrace/chunks.h"
#include "trace/ddtrace/format.h"
#include "trace/ddtrace/proto.h"

namespace daydream {
namespace {

// The recorder reads its clocks when it opens the file, so an early chunk has the reading.
constexpr int kChunks = 16;

void ReadHeader(const pb::Recording& from, RecordedProcess& to) {
  to.session = from.session_id();
  to.host = from.hostname();
  to.boot = from.boot_id();
}

// Beyond 73 years it is damage.
std::optional<int64_t> WallOffset(const pb::ClockSnapshot& clock) {
  constexpr int64_t kMost = int64_t{1} << 61;
  const auto possible = [](int64_t ns) { return ns >= 0 && ns < kMost; };
  if (!possible(clock.realtime_ns()) || !possible(clock.monotonic_ns())) return std::nullopt;
  return clock.realtime_ns() - clock.monotonic_ns();
}

}  // namespace

absl::StatusOr<RecordedProcess> ReadRecordedProcess(ByteSource& source) {
  RecordedProcess process;
  DdtraceChunks chunks(source);
  if (!chunks.Begin().ok()) return process;
  for (int i = 0; i < kChunks && !process.wall_offset_ns; ++i) {
    DD_ASSIGN_OR_RETURN(const std::optional<DdtraceChunks::Chunk> chunk, chunks.Next());
    if (!chunk) break;
    const absl::StatusOr<std::string> message = UnpackChunk(chunk->header, chunk->payload);
    if (!message.ok()) {
      chunks.Reject();
      continue;
    }
    pb::Header header;
    pb::EventChunk events;
    switch (static_cast<DdtraceChunkType>(chunk->header.type)) {
      case DdtraceChunkType::kHeader:
        if (!header.ParseFromString(*message) || !header.has_recording()) return process;
        ReadHeader(header.recording(), process);
        break;
      case DdtraceChunkType::kEvents:
        if (!events.ParseFromString(*message) || events.clocks().empty()) break;
        process.wall_offset_ns = WallOffset(events.clocks(0));
        break;
      default:
        break;
    }
  }
  return process;
}

}  // namespace daydream
