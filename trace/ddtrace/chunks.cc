#include "trace/ddtrace/chunks.h"

#include <algorithm>

namespace daydream {
namespace {

// Consumed bytes are dropped from the buffer when they are this many, and half of it: what is moved
// each time is never more than what was consumed.
constexpr size_t kDropSize = 1 << 20;

}  // namespace

DdtraceChunks::DdtraceChunks(ByteSource& source) : source_(source) {
  window_ = source.InMemory();
  at_end_ = !window_.empty();
}

absl::StatusOr<bool> DdtraceChunks::Ensure(size_t n) {
  if (window_.size() - pos_ >= n) return true;
  // Bytes before pos_ are kept until now because Reject() may step back into the last chunk.
  if (!at_end_ && pos_ >= std::max(kDropSize, buffer_.size() / 2)) {
    const size_t drop = pos_ - chunk_size_;
    buffer_.erase(0, drop);
    base_ += static_cast<int64_t>(drop);
    pos_ -= drop;
    window_ = buffer_;
  }
  while (!at_end_ && window_.size() - pos_ < n) {
    absl::StatusOr<std::string_view> piece = source_.Next();
    if (!piece.ok() && !absl::IsDataLoss(piece.status())) return piece.status();
    // A damaged compressed stream ends where it is damaged; the missing index tells.
    at_end_ = !piece.ok() || piece->empty();
    if (at_end_) break;
    buffer_.append(*piece);
    window_ = buffer_;
  }
  return window_.size() - pos_ >= n;
}

void DdtraceChunks::Skip(size_t n) {
  if (first_damage_ < 0) first_damage_ = offset();
  damaged_bytes_ += static_cast<int64_t>(n);
  pos_ += n;
}

absl::Status DdtraceChunks::Begin() {
  DD_ASSIGN_OR_RETURN(const bool enough, Ensure(kDdtraceMagic.size()));
  const std::string_view family = kDdtraceMagic.substr(0, kDdtraceMagic.size() - 1);
  if (!enough || !Rest().starts_with(family)) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0220",
                       .what = "this is not a .ddtrace file",
                       .where = source_.name(),
                       .why = fmt::format("it does not begin with {}", kDdtraceMagic),
                       .fix = "leave out --from, so that the format is found by content"});
  }
  if (!Rest().starts_with(kDdtraceMagic)) {
    return MakeStatus(absl::StatusCode::kUnimplemented,
                      {.code = "E0221",
                       .what = "this .ddtrace file has a format that this program cannot read",
                       .where = source_.name(),
                       .why = "it was written by a newer daydream",
                       .fix = "update daydream"});
  }
  pos_ += kDdtraceMagic.size();
  return absl::OkStatus();
}

absl::StatusOr<std::optional<DdtraceChunks::Chunk>> DdtraceChunks::Next() {
  chunk_size_ = 0;
  while (true) {
    DD_ASSIGN_OR_RETURN(const bool header_here, Ensure(kDdtraceHeaderSize));
    if (!header_here) break;
    if (const auto header = DecodeChunkHeader(Rest())) {
      const size_t size = kDdtraceHeaderSize + header->stored_size;
      DD_ASSIGN_OR_RETURN(const bool payload_here, Ensure(size));
      if (payload_here) {
        const Chunk chunk{*header, Rest().substr(kDdtraceHeaderSize, header->stored_size),
                          offset()};
        pos_ += size;
        chunk_size_ = size;
        return std::optional<Chunk>(chunk);
      }
    }
    const size_t next = Rest().find(kDdtraceChunkMagic, 1);
    // A magic may begin in the last 3 bytes of what is in memory.
    const size_t keep = at_end_ ? 0 : kDdtraceChunkMagic.size() - 1;
    Skip(next != std::string_view::npos ? next : Rest().size() - keep);
  }
  const std::string_view rest = Rest();
  if (!rest.empty() && !(rest.size() == kDdtraceTrailerSize && DecodeTrailer(rest))) {
    Skip(rest.size());
  }
  return std::optional<Chunk>();
}

void DdtraceChunks::Reject() {
  pos_ -= chunk_size_;
  chunk_size_ = 0;
  Skip(kDdtraceChunkMagic.size());
}

}  // namespace daydream
