#include "trace/ddtrace/format.h"

#include <zstd.h>

#include <cstring>
#include <new>

namespace daydream {
namespace {

// A zstd block makes at most 128 KiB and takes at least 4 bytes (RFC 8878, section 3.1.1.2), so a
// header that claims more than this is lying and no memory is taken for it.
constexpr uint64_t kMaxRatio = (128 << 10) / 4;

}  // namespace

void ChunkPacker::FreeContext::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

absl::StatusOr<std::string_view> ChunkPacker::Pack(DdtraceChunkHeader header,
                                                   std::string_view message) {
  if (message.size() > kDdtraceMaxRaw) {
    return InvalidArgument(
        "one part of this trace needs {} bytes, more than a .ddtrace chunk "
        "may hold ({})",
        message.size(), kDdtraceMaxRaw);
  }
  if (context_ == nullptr) context_.reset(ZSTD_createCCtx());
  if (context_ == nullptr) throw std::bad_alloc();  // as a vector would
  const size_t most = kDdtraceHeaderSize + ZSTD_compressBound(message.size());
  if (room_ < most) {
    chunk_ = std::make_unique_for_overwrite<char[]>(most);
    room_ = most;
  }
  char* const payload = chunk_.get() + kDdtraceHeaderSize;
  const size_t stored = ZSTD_compressCCtx(context_.get(), payload, room_ - kDdtraceHeaderSize,
                                          message.data(), message.size(), kDdtraceZstdLevel);
  if (ZSTD_isError(stored)) return DataLoss("zstd: {}", ZSTD_getErrorName(stored));
  header.codec = static_cast<uint8_t>(DdtraceCodec::kZstd);
  header.raw_size = static_cast<uint32_t>(message.size());
  header.stored_size = static_cast<uint32_t>(stored);
  header.payload_crc = Crc32c({payload, stored});
  const auto encoded = EncodeChunkHeader(header);
  std::memcpy(chunk_.get(), encoded.data(), encoded.size());
  return std::string_view(chunk_.get(), kDdtraceHeaderSize + stored);
}

absl::StatusOr<std::string> UnpackChunk(const DdtraceChunkHeader& header,
                                        std::string_view payload) {
  if (payload.size() != header.stored_size || Crc32c(payload) != header.payload_crc) {
    return DataLoss("the checksum does not fit");
  }
  if (header.raw_size > kDdtraceMaxRaw) return DataLoss("the chunk is too large");
  if (header.codec == static_cast<uint8_t>(DdtraceCodec::kStored)) {
    if (header.raw_size != header.stored_size) return DataLoss("the two sizes differ");
    return std::string(payload);
  }
  if (header.codec != static_cast<uint8_t>(DdtraceCodec::kZstd)) {
    return DataLoss("codec {} is not known", header.codec);
  }
  // A frame that states another size than the header is refused before any memory is taken.
  const unsigned long long stated = ZSTD_getFrameContentSize(payload.data(), payload.size());
  if (stated != ZSTD_CONTENTSIZE_UNKNOWN && stated != header.raw_size) {
    return DataLoss("the compressed size does not fit");
  }
  if (header.raw_size > header.stored_size * kMaxRatio) return DataLoss("the size is impossible");
  std::string message(header.raw_size, '\0');
  const size_t made =
      ZSTD_decompress(message.data(), message.size(), payload.data(), payload.size());
  if (ZSTD_isError(made)) return DataLoss("zstd: {}", ZSTD_getErrorName(made));
  if (made != header.raw_size) return DataLoss("the unpacked size does not fit");
  return message;
}

}  // namespace daydream
